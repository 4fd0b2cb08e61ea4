"""Likelihoods: on a fake model whose every logit depends on all tokens before it."""

import itertools

import numpy as np
import pytest
from fakes import random_vector
from scipy.special import log_softmax

from helpers import likelihood
from helpers.likelihood import Reader
from helpers.profiles import load_profile

WORDS = ["<user>", "<assistant>", "the", "cat", "sat", "on", "mat", "banana"]


class FakePasses:
    """One token a word. `shapes` lists the rows that were read, `prompts` counts the prompts."""

    window = 12

    def __init__(self):
        self.shapes, self.prompts = [], 0

    def encode(self, text):
        return [WORDS.index(word) for word in text.split()]

    def encode_chat(self, prompt):
        return self.encode(f"<user> {prompt} <assistant>")

    def read_prompt(self, tokens):
        self.prompts += 1
        self._prompt = tokens
        return self.logits(tokens)

    def read_rows(self, rows, mask):
        self.shapes.append(rows.shape)
        return np.stack([self._row(row, seen) for row, seen in zip(rows, mask, strict=True)])

    def _row(self, row, seen):
        tokens = [token for token, is_seen in zip(row, seen, strict=True) if is_seen]
        read = [self.logits([*self._prompt, *tokens[: end + 1]]) for end in range(len(tokens))]
        return np.vstack(
            [*read, np.full((len(row) - len(tokens), len(WORDS)), np.nan)]
        )  # padding says nothing

    @staticmethod
    def logits(tokens):
        return random_vector(str(list(map(int, tokens))), len(WORDS)).astype(np.float32)


@pytest.fixture
def passes():
    return FakePasses()


@pytest.fixture
def reader(passes):
    return Reader(passes, "fake")


def direct(prompt, continuation):
    """The same sum without cache, batch and padding."""
    fake = FakePasses()
    before, tokens = fake.encode_chat(prompt), fake.encode(continuation)
    return sum(
        log_softmax(fake.logits([*before, *tokens[:place]]).astype(float))[token]
        for place, token in enumerate(tokens)
    )


def test_the_sum_over_the_tokens_of_each_continuation(reader):
    texts = ["cat", "the cat", "the mat sat on the cat", "banana", "cat sat"]
    values = reader.log_likelihoods("the cat", texts)
    assert values == pytest.approx([direct("the cat", text) for text in texts], abs=1e-5)
    assert all(isinstance(value, float) and value < 0 for value in values)


def test_the_probabilities_of_all_words_add_up_to_one(reader):
    assert np.exp(reader.log_likelihoods("the", WORDS)).sum() == pytest.approx(1, abs=1e-5)
    pairs = [" ".join(pair) for pair in itertools.product(WORDS, repeat=2)]
    assert np.exp(reader.log_likelihoods("the", pairs)).sum() == pytest.approx(1, abs=1e-5)


def test_a_continuation_of_two_parts_is_their_product(reader):
    # log p(ab|c) = log p(a|c) + log p(b|c,a): the second from a fake whose prompt ends with a.
    both, first = reader.log_likelihoods("the", ["cat sat", "cat"])
    fake = FakePasses()
    after = log_softmax(fake.logits(fake.encode("<user> the <assistant> cat")).astype(float))
    assert both == pytest.approx(first + after[WORDS.index("sat")], abs=1e-5)


def test_the_prompt_is_read_once(reader, passes):
    reader.log_likelihoods("the", ["cat sat", "cat", "mat"])
    assert passes.prompts == 1
    assert passes.shapes == [(1, 1)]  # the last token of a text is never read


def test_small_batches_of_like_length_change_nothing(reader, passes, monkeypatch):
    texts = ["the cat sat on", "cat sat", "mat", "the mat", "on the mat"]
    whole = reader.log_likelihoods("cat", texts)
    assert passes.shapes.pop() == (4, 3)
    monkeypatch.setattr(likelihood, "BATCH_TOKENS", 4)
    assert reader.log_likelihoods("cat", texts) == pytest.approx(whole)
    assert passes.shapes == [(1, 3), (2, 2), (1, 1)]


def test_a_continuation_over_the_size_of_a_batch_is_read_alone(reader, passes, monkeypatch):
    monkeypatch.setattr(likelihood, "BATCH_TOKENS", 2)
    assert len(reader.log_likelihoods("cat", ["the cat sat on"] * 2)) == 2
    assert passes.shapes == [(1, 3)] * 2


def test_no_continuations_cost_nothing(reader, passes):
    assert reader.log_likelihoods("the", []) == []
    assert passes.prompts == 0


def test_an_empty_continuation_is_an_error(reader):
    with pytest.raises(ValueError, match="an empty continuation"):
        reader.log_likelihoods("the", ["cat", ""])


def test_what_does_not_fit_the_window_is_refused_before_it_is_read(reader, passes):
    assert reader.log_likelihoods("the " * 8, ["cat sat"])  # 8 + 2 of the template + 2 = 12
    with pytest.raises(
        ValueError, match="prompt of 10 tokens and a continuation of 3 .* a window of 12: lower the budget"
    ):
        reader.log_likelihoods("the " * 8, ["cat", "cat sat on"])
    assert passes.prompts == 1


def test_tokens_are_counted_as_continuations_have_them(reader):
    assert reader.count_tokens("the cat sat") == 3
    assert reader.count_tokens("") == 0


def test_the_writer_of_the_profile_reads(monkeypatch):
    asked = []
    monkeypatch.setattr(likelihood, "_load_passes", lambda model: asked.append(model) or FakePasses())
    cpu, tiny = (Reader.load(load_profile(name)) for name in ("cpu", "tiny"))
    assert asked == ["qwen2.5-coder-1.5b", "smollm2-135m"]
    assert cpu.identity != tiny.identity
    assert cpu.identity == Reader.load(load_profile("cpu")).identity


def test_a_server_gives_no_likelihoods():
    with pytest.raises(ValueError, match="a server gives no likelihoods.*WORKBENCH_PROFILE"):
        Reader.load(load_profile("server"))


@pytest.mark.parametrize("name", ["openvino", "transformers"])
def test_the_engine_is_the_writers(monkeypatch, tmp_path, name):
    monkeypatch.setenv("WORKBENCH_BACKEND", name)
    monkeypatch.setattr(likelihood, "gguf_file", lambda weights: tmp_path / weights.file)
    monkeypatch.setattr(likelihood.OpenVinoPasses, "load", lambda file, window: ("openvino", file, window))
    monkeypatch.setattr(likelihood.TransformersPasses, "load", lambda file: ("transformers", file))
    passes = likelihood._load_passes("smollm2-135m")
    assert passes[:2] == (name, tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert passes[2:] == ((8192,) if name == "openvino" else ())


def test_a_model_of_the_hub_reads_through_transformers(monkeypatch):
    monkeypatch.setattr(likelihood, "hub_model", lambda name, four_bit: (name, four_bit))
    monkeypatch.setattr(likelihood, "TransformersPasses", lambda *parts: parts)
    assert likelihood._load_passes("some/writer") == ("some/writer", True)
