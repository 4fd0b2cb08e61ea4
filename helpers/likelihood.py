"""Likelihood: how likely a model finds a text, without letting it write.

A prompt is read once; what the model keeps of it (its key-value cache) serves every continuation.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from helpers.backends import gguf_file, hub_model
from helpers.engines import engines
from helpers.passes import OpenVinoPasses, TransformersPasses
from helpers.profiles import Profile
from helpers.recording import content_key
from helpers.weights import WEIGHTS, model_hash

BATCH_TOKENS = 256
"""Tokens of continuations read at once, padding included: their logits take up to 160 MB."""


class Passes(Protocol):
    """Forward passes of a model with a chat template, see `helpers.passes`."""

    window: int

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, no special ones added."""

    def encode_chat(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt in the model's chat template."""

    def read_prompt(self, tokens: list[int]) -> np.ndarray:
        """Read a prompt, keep its key-value cache and return the logits of the token after it, shape (V,)."""

    def read_rows(self, rows: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """Return the logits after each token of each row behind the prompt, (rows, tokens) to (rows, tokens, V)."""


class Reader:
    """A model that says how likely it finds a text.

    Parameters
    ----------
    passes : Passes
    identity : str
        What, besides prompt and continuation, decides a likelihood.
    """

    def __init__(self, passes: Passes, identity: str):
        self.identity = identity
        self._passes = passes

    @classmethod
    def load(cls, profile: Profile) -> "Reader":
        """Load a profile's writer to read with it.

        Raises
        ------
        helpers.backends.ModelMissing
            If its weights are not on this machine.
        ValueError
            For a server: its interface does not give the likelihood of a given text.
        """
        model = profile.writer
        if model == "server":
            raise ValueError("a server gives no likelihoods: choose another profile (WORKBENCH_PROFILE)")
        return cls(_load_passes(model), content_key("likelihood", model_hash(model)))

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text, as a continuation has them."""
        return len(self._passes.encode(text))

    def log_likelihoods(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """Return the natural logarithm of each continuation's probability after the same prompt.

        Parameters
        ----------
        prompt : str
            Without chat template; a continuation is what the assistant says.
        continuations : sequence of str
            Each is tokenised by itself. The end of the turn is not part of it.

        Returns
        -------
        list of float
            Sums over the tokens of log p(token | prompt, tokens before it): nats, not divided by the length.

        Raises
        ------
        ValueError
            For an empty continuation, or where prompt and longest continuation do not fit the model's window.
        """
        if not continuations:
            return []
        answers = [self._passes.encode(text) for text in continuations]
        if not all(answers):
            raise ValueError("an empty continuation has no likelihood")
        tokens = self._passes.encode_chat(prompt)
        self._check_window(len(tokens), max(map(len, answers)))
        first = self._passes.read_prompt(tokens)
        sums = [_log_probability(first, answer[0]) for answer in answers]
        longer = [number for number, answer in enumerate(answers) if len(answer) > 1]
        for batch in padded_batches(longer, [len(answer) - 1 for answer in answers], BATCH_TOKENS):
            for number, rest in zip(batch, self._rest([answers[number] for number in batch]), strict=True):
                sums[number] += rest
        return sums

    def _check_window(self, prompt, longest):
        window = self._passes.window
        if prompt + longest > window:
            raise ValueError(
                f"a prompt of {prompt} tokens and a continuation of {longest} do not fit "
                f"a window of {window}: lower the budget"
            )

    def _rest(self, answers):
        """Return for each answer the log probability of all its tokens but the first."""
        # The last token is only predicted, never read.
        shape = len(answers), max(map(len, answers)) - 1
        rows, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, answer in enumerate(answers):
            rows[row, : len(answer) - 1] = answer[:-1]
            mask[row, : len(answer) - 1] = 1
        logits = self._passes.read_rows(rows, mask)
        return [
            sum(_log_probability(logits[row, place], token) for place, token in enumerate(answer[1:]))
            for row, answer in enumerate(answers)
        ]


def _load_passes(model):
    if model not in WEIGHTS:
        return TransformersPasses(*hub_model(model, four_bit=True))
    file = gguf_file(WEIGHTS[model])
    # llama.cpp is not asked for likelihoods.
    if [engine for engine in engines(file) if engine != "llamacpp"][:1] == ["openvino"]:
        return OpenVinoPasses.load(file, WEIGHTS[model].window)
    return TransformersPasses.load(file)


def _log_probability(logits, token):
    return float(logits[token] - logsumexp(logits))


def padded_batches(numbers: Sequence[int], lengths: Sequence[int], limit: int) -> list[list[int]]:
    """Divide numbers of texts into batches of like length, each up to a limit with its padding, or a single text."""
    batches = []
    for number in sorted(numbers, key=lambda number: -lengths[number]):
        # The first of a batch is its longest: all others are padded to it.
        if not batches or (len(batches[-1]) + 1) * lengths[batches[-1][0]] > limit:
            batches.append([])
        batches[-1].append(number)
    return batches
