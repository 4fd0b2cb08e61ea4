"""Forward passes: transformers on a model of random weights, OpenVINO's files with a stand-in for its converter."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from oracles import log_likelihood
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from helpers.likelihood import Reader
from helpers.passes import TransformersPasses, openvino_folder

WORDS = ["[UNK]", "<user>", "<assistant>", "the", "cat", "sat", "on", "mat"]


@pytest.fixture
def passes():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=32,
        initializer_range=1.0,  # wide, so that every token before matters
    )
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    template = "<user> {{ messages[0].content }} <assistant>"
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, chat_template=template)
    return TransformersPasses(LlamaForCausalLM(config).eval(), tokenizer)


def test_transformers_gives_the_sums_of_a_direct_reading(passes):
    texts = ["cat", "the cat sat on the mat", "mat sat", "on the mat"]
    prompt = passes.encode_chat("the cat")
    assert prompt == [1, 3, 4, 2]
    values = Reader(passes, "random").log_likelihoods("the cat", texts)
    for text, value in zip(texts, values, strict=True):
        assert value == pytest.approx(log_likelihood(passes, prompt, text), abs=1e-4)


def test_transformers_keeps_the_cache_as_the_prompt_left_it(passes):
    passes.read_prompt(passes.encode_chat("the cat"))
    rows, mask = np.array([[5, 6], [7, 0]]), np.array([[1, 1], [1, 0]])
    first = passes.read_rows(rows, mask)
    assert first.shape == (2, 2, len(WORDS))
    assert np.array_equal(passes.read_rows(rows, mask), first)
    assert np.allclose(passes.read_rows(rows[:1], mask[:1]), first[:1], atol=1e-5)


def test_the_window_is_the_models(passes):
    assert passes.window == 32


@pytest.fixture
def converter(monkeypatch):
    """Stands for OpenVINO, which writes its files beside the GGUF file that it loads."""
    loaded = []

    def pipeline(file, device, enable_save_ov_model):
        loaded.append(file)
        if converter.fails:
            raise RuntimeError("the disk is full")
        for name in ("openvino_model.xml", "openvino_model.bin"):
            file.with_name(name).write_text(name)

    converter = SimpleNamespace(LLMPipeline=pipeline, loaded=loaded, fails=False)
    monkeypatch.setitem(sys.modules, "openvino_genai", converter)
    return converter


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "small.q4_1.gguf"
    file.write_text("weights")
    return file


def test_a_model_is_converted_once_into_a_folder_of_its_own(converter, file):
    folder = openvino_folder(file)
    assert folder == file.parent / "small.q4_1.openvino"
    assert sorted(path.name for path in folder.iterdir()) == ["openvino_model.bin", "openvino_model.xml"]
    assert openvino_folder(file) == folder
    assert len(converter.loaded) == 1
    assert file.read_text() == "weights"


def test_a_conversion_that_fails_leaves_nothing_behind(converter, file):
    converter.fails = True
    with pytest.raises(RuntimeError, match="the disk is full"):
        openvino_folder(file)
    assert [path.name for path in file.parent.iterdir() if not path.name.endswith(".lock")] == [file.name]
    converter.fails = False
    assert openvino_folder(file).is_dir()


def test_a_conversion_without_a_model_is_an_error(converter, file, monkeypatch):
    monkeypatch.setattr(converter, "LLMPipeline", lambda *args, **options: None)
    with pytest.raises(RuntimeError, match="OpenVINO wrote no model for small.q4_1.gguf"):
        openvino_folder(file)
    assert not file.with_suffix(".openvino").exists()
