"""Oracles that several test files share."""

import torch


def log_likelihood(passes, prompt, text):
    """Return the log probability of a text after a prompt's tokens, by one reading of both without a cache."""
    tokens = passes.encode(text)
    with torch.inference_mode():
        logits = passes._model(torch.tensor([prompt + tokens])).logits[0]
    steps = torch.log_softmax(logits[len(prompt) - 1 : -1], -1)
    return float(steps[range(len(tokens)), tokens].sum())
