"""Likelihoods by SmolLM2-135M, through both engines."""

import os

import pytest
import torch
from oracles import log_likelihood

from helpers.fetch import WEIGHTS, weights_folder
from helpers.likelihood import Reader
from helpers.profiles import load_profile

PROFILE = load_profile("tiny")
WEIGHTS_FILE = weights_folder() / WEIGHTS[PROFILE.writer].file
PROMPT = (
    "The train stops in Lyon, and then in Paris, where the journey ends. Where does the journey end? "
    "Answer with the name of the city alone."
)
TEXTS = [
    "Paris",
    "banana",
    "The journey ends in Paris, where the train stops.",
    "Lyon, where the train stops",
]

pytestmark = pytest.mark.skipif(
    not WEIGHTS_FILE.exists() and os.environ.get("WORKBENCH_REQUIRE_LIVE") != "1",
    reason=f"{WEIGHTS_FILE.name} is not on this machine: python -m helpers fetch tiny",
)


@pytest.fixture(scope="module")
def reader():
    """The tiny model in OpenVINO."""
    pytest.importorskip("openvino_genai")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_BACKEND", "openvino")
        yield Reader.load(PROFILE)


def step_by_step(reader, prompt, text):
    """The same sum, each token after a prompt of all tokens before it: no cache, no batch."""
    before, tokens = reader._passes.encode_chat(prompt), reader._passes.encode(text)
    total = 0.0
    for place, token in enumerate(tokens):
        logits = torch.tensor(reader._passes.read_prompt([*before, *tokens[:place]]))
        total += torch.log_softmax(logits, 0)[token].item()
    return total


def test_the_answer_of_the_context_is_the_likelier_one(reader):
    paris, banana, *_ = reader.log_likelihoods(PROMPT, TEXTS)
    assert banana + 5 < paris < 0


def test_cache_and_batch_change_the_sums_by_no_more_than_rounding(reader):
    values = reader.log_likelihoods(PROMPT, TEXTS)
    for text, value in zip(TEXTS, values, strict=True):
        # OpenVINO computes in 8 and 16 bits, and rounds differently for other shapes.
        assert value == pytest.approx(step_by_step(reader, PROMPT, text), abs=0.1 * reader.count_tokens(text))


def test_a_text_is_as_likely_as_its_beginning_and_then_its_end(reader):
    # log p(ab|c) - log p(a|c) is what the tokens of b add, whatever stands behind them.
    a, b, c = "The journey", " ends in Paris", ", where the train stops."
    assert reader.count_tokens(a + b + c) == sum(map(reader.count_tokens, (a, b, c)))
    values = reader.log_likelihoods(PROMPT, [a, a + b, a + b + c])
    assert values == sorted(values, reverse=True)
    before = reader._passes.encode_chat(PROMPT) + reader._passes.encode(a)
    first = torch.log_softmax(torch.tensor(reader._passes.read_prompt(before)), 0)
    [alone] = reader.log_likelihoods(PROMPT, [a + " ends"])
    assert alone - values[0] == pytest.approx(first[reader._passes.encode(" ends")[0]].item(), abs=0.2)


def test_values_repeat(reader):
    assert reader.log_likelihoods(PROMPT, TEXTS) == reader.log_likelihoods(PROMPT, TEXTS)


def test_the_prompt_stands_in_its_template_once(reader):
    tokens = reader._passes.encode_chat("Hello")
    assert tokens[-6:] == reader._passes.encode("Hello<|im_end|>\n<|im_start|>assistant\n")[-6:]
    assert tokens.count(reader._passes.encode("<|im_start|>")[0]) == 3  # system, user, assistant


def test_transformers_gives_the_sums_of_a_direct_reading(reader, monkeypatch):
    monkeypatch.setenv("WORKBENCH_BACKEND", "transformers")
    unpacked = Reader.load(PROFILE)
    passes = unpacked._passes
    prompt = passes.encode_chat(PROMPT)
    assert prompt == reader._passes.encode_chat(PROMPT)
    assert passes.window == reader._passes.window == WEIGHTS[PROFILE.writer].window
    assert unpacked.identity == reader.identity
    values = unpacked.log_likelihoods(PROMPT, TEXTS)
    assert values[1] + 5 < values[0] < 0
    for text, value in zip(TEXTS, values, strict=True):
        assert value == pytest.approx(log_likelihood(passes, prompt, text), abs=1e-2)
