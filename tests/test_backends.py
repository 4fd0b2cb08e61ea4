"""Backends through the real libraries: a transformers pipeline on a model of a few hundred weights, HTTP."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers
from langchain_huggingface import HuggingFacePipeline
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from helpers import backends, engines, likelihood
from helpers.backends import ModelMissing, chat_prompt, load_gguf, load_hub, load_server
from helpers.evaluation import keyword_match
from helpers.fetch import WEIGHTS

DECODING = {"max_new_tokens": 1, "repetition_penalty": 1.0, "greedy": True}
WORDS = ["<pad>", "<bos>", "<user>", "<assistant>", "[UNK]", "ANSWER", "what", "is", "LoRA", "?", "now"]
TEMPLATE = (
    "<bos>{% for message in messages %}<user> {{ message.content }} {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def tokenizer():
    """One token a word; like Llama's, it puts <bos> in front of whatever it is given unless told not to."""
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="<pad>",
        bos_token="<bos>",
        additional_special_tokens=["<user>", "<assistant>"],
        chat_template=TEMPLATE,
    )


@pytest.fixture
def model():
    """Says ANSWER to everything: no layer changes the constant embedding, and only ANSWER's row meets it.

    `model.inputs` lists the token ids that reached it, a tensor a batch.
    """
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=16,
        tie_word_embeddings=False,
        eos_token_id=None,
        bos_token_id=1,
    )
    tiny = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        tiny.model.embed_tokens.weight.fill_(1)
        tiny.model.layers[0].self_attn.o_proj.weight.zero_()
        tiny.model.layers[0].mlp.down_proj.weight.zero_()
        tiny.lm_head.weight.zero_()
        tiny.lm_head.weight[WORDS.index("ANSWER")] = 1
    tiny.inputs = []
    generate = tiny.generate

    def noting(*args, **kwargs):
        tiny.inputs.append(kwargs["input_ids"])
        return generate(*args, **kwargs)

    tiny.generate = noting
    return tiny


def read_by(model, tokenizer):
    """The prompts as the model read them, padding included."""
    return [tokenizer.decode(row).split() for batch in model.inputs for row in batch]


# Transformers.


def test_the_plain_pipeline_gives_the_prompt_back(model, tokenizer):
    # This is the trap, and the reason for the next test: the source let this through to summaries and scores.
    pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
    echo = HuggingFacePipeline(pipeline=pipe, pipeline_kwargs={"max_new_tokens": 1}).invoke("what is LoRA ?")
    assert "what is LoRA ?" in echo
    assert keyword_match(echo, ["LoRA"])


def test_only_the_answer_comes_out(model, tokenizer):
    # Bug bank 17: a pipeline that returns prompt + " ANSWER".
    generate = backends._pipeline_generate(model, tokenizer, DECODING)
    assert generate(["what is LoRA ?"]) == ["ANSWER"]
    assert not keyword_match(generate(["what is LoRA ?"])[0], ["LoRA"])


def test_the_chat_template_is_applied_exactly_once(model, tokenizer):
    # Bug bank 18: one <bos>, one role marker, though the tokenizer would add a <bos> of its own.
    assert tokenizer("what").input_ids == [WORDS.index("<bos>"), WORDS.index("what")]
    backends._pipeline_generate(model, tokenizer, DECODING)(["what is LoRA ?"])
    assert read_by(model, tokenizer) == [["<bos>", "<user>", "what", "is", "LoRA", "?", "<assistant>"]]


def test_prompts_of_different_length_are_one_batch_padded_on_the_left(model, tokenizer):
    generate = backends._pipeline_generate(model, tokenizer, DECODING)
    assert generate(["what is LoRA ?", "now ?"]) == ["ANSWER", "ANSWER"]
    assert [len(batch) for batch in model.inputs] == [2]
    assert read_by(model, tokenizer)[1] == ["<pad>"] * 2 + ["<bos>", "<user>", "now", "?", "<assistant>"]


def test_a_tokenizer_without_pad_token_pads_with_its_end_token(model, tokenizer):
    tokenizer.pad_token, tokenizer.eos_token = None, "now"
    backends._pipeline_generate(model, tokenizer, DECODING)(["what is LoRA ?", "?"])
    assert read_by(model, tokenizer)[1][:4] == ["now", "now", "now", "<bos>"]


def test_the_number_of_new_tokens_is_the_one_asked_for(model, tokenizer):
    generate = backends._pipeline_generate(model, tokenizer, DECODING | {"max_new_tokens": 3})
    assert generate(["what"]) == ["ANSWER ANSWER ANSWER"]


def test_a_prompt_over_the_window_is_refused_not_cut(model, tokenizer):
    generate = backends._pipeline_generate(model, tokenizer, DECODING)
    # 16 positions - 1 new token - 3 of the template leave room for 12 words.
    assert generate(["what " * 12]) == ["ANSWER"]
    with pytest.raises(ValueError, match="a prompt of 16 tokens is too long for a window of 16"):
        generate(["what", "what " * 13])


def test_a_tokenizer_without_template_leaves_the_prompt_as_it_is(tokenizer):
    assert chat_prompt(tokenizer, "what") == "<bos><user> what <assistant>"
    tokenizer.chat_template = None
    assert chat_prompt(tokenizer, "what") == "what"


# The hub.


@pytest.fixture
def hub(monkeypatch, model, tokenizer):
    """Stands for the hub: `asked` lists the names and arguments that models were asked for with."""
    asked = []
    backends.hub_model.cache_clear()

    def pretrained(name, **kwargs):
        asked.append((name, kwargs))
        return model

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", pretrained)
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", lambda name: tokenizer)
    return asked


def test_the_writer_is_loaded_in_nf4_with_float16_arithmetic(hub):
    generate = load_hub("some/writer", DECODING, four_bit=True)
    assert generate(["what is LoRA ?"]) == ["ANSWER"]
    ((name, arguments),) = hub
    assert name == "some/writer"
    assert arguments["device_map"] == "auto"
    four_bits = arguments["quantization_config"]
    assert four_bits.load_in_4bit
    assert four_bits.bnb_4bit_quant_type == "nf4"
    assert four_bits.bnb_4bit_compute_dtype == torch.float16


def test_the_judge_is_loaded_in_plain_float16(hub):
    for tokens in (1, 2):  # of two writers, the model in memory once
        load_hub("some/judge", DECODING | {"max_new_tokens": tokens}, four_bit=False)
    assert hub == [
        ("some/judge", {"device_map": "auto", "dtype": torch.float16, "quantization_config": None}),
    ]


def test_a_writer_and_a_reader_of_likelihoods_share_a_model(hub):
    load_hub("some/writer", DECODING, four_bit=True)
    likelihood._load_passes("some/writer")
    assert len(hub) == 1


def test_a_hub_out_of_reach_names_the_model_and_the_command(monkeypatch):
    def unreachable(name):
        raise OSError("We couldn't connect to 'https://huggingface.co'")

    backends.hub_model.cache_clear()
    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", unreachable)
    with pytest.raises(ModelMissing, match="some/writer .*python -m helpers fetch gpu .*couldn't connect"):
        load_hub("some/writer", DECODING, four_bit=True)


# GGUF files.


@pytest.mark.parametrize(
    ("abilities", "dtype"),
    [
        ({"avx512_f": True, "avx512_bf16": True}, torch.bfloat16),
        ({"avx512_f": True, "avx512_bf16": False, "amx_bf16": True}, torch.bfloat16),
        ({"avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, torch.float32),
        ({}, torch.float32),
    ],
)
def test_transformers_loads_in_bfloat16_only_where_the_processor_multiplies_it(abilities, dtype, monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: abilities)
    monkeypatch.setattr(backends, "unpacked_model", lambda *arguments: asked.append(arguments) or ("m", "t"))
    monkeypatch.setattr(backends, "_pipeline_generate", lambda *arguments: arguments)
    backends._model_to_write_with.cache_clear()
    for decoding in (DECODING, DECODING | {"max_new_tokens": 9}):
        assert backends._load_transformers("a.gguf", decoding, 100) == ("m", "t", decoding)
    assert asked == [("a.gguf", dtype)], "loaded once for two writers"


LOADERS = {"openvino": "_load_openvino", "llamacpp": "load_llamacpp", "transformers": "_load_transformers"}


@pytest.fixture
def weights(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_MODELS", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_BACKEND", raising=False)
    for engine, loader in LOADERS.items():
        monkeypatch.setattr(
            backends, loader, lambda file, decoding, window, engine=engine: (engine, file, decoding)
        )
    return WEIGHTS["smollm2-135m"]


def test_missing_weights_name_the_file_and_the_command(weights):
    with pytest.raises(ModelMissing, match=f"{weights.file} .*python -m helpers fetch"):
        load_gguf(weights, DECODING)


@pytest.mark.parametrize(
    ("missing", "engine"),
    [
        ((), "openvino"),
        (("openvino_genai",), "llamacpp"),
        (("openvino_genai", "xllamacpp"), "transformers"),
    ],
)
def test_the_first_engine_that_is_installed(weights, monkeypatch, tmp_path, missing, engine):
    (tmp_path / weights.file).touch()
    monkeypatch.setattr(engines, "find_spec", lambda name: name not in missing)
    assert load_gguf(weights, DECODING) == (engine, tmp_path / weights.file, DECODING)


def test_an_engine_that_was_asked_for_and_is_not_here_names_its_package(weights, monkeypatch, tmp_path):
    (tmp_path / weights.file).touch()
    monkeypatch.setenv("WORKBENCH_BACKEND", "llamacpp")
    monkeypatch.setattr(engines, "find_spec", lambda name: name != "xllamacpp")
    with pytest.raises(
        ValueError, match="WORKBENCH_BACKEND is llamacpp, which is not here: pip install xllamacpp"
    ):
        load_gguf(weights, DECODING)


@pytest.mark.parametrize("engine", LOADERS)
def test_the_environment_overrides_the_engine(weights, monkeypatch, tmp_path, engine):
    (tmp_path / weights.file).touch()
    monkeypatch.setenv("WORKBENCH_BACKEND", engine)
    assert load_gguf(weights, DECODING)[0] == engine


def test_an_unknown_engine_is_an_error_that_lists_the_known(weights, monkeypatch, tmp_path):
    (tmp_path / weights.file).touch()
    monkeypatch.setenv("WORKBENCH_BACKEND", "vllm")
    with pytest.raises(ValueError, match="no backend 'vllm'.* openvino, llamacpp, transformers"):
        load_gguf(weights, DECODING)


@pytest.mark.filterwarnings("ignore:openvino does not load")
def test_an_engine_that_does_not_load_leaves_the_work_to_the_next(weights, monkeypatch, tmp_path):
    def broken(*_arguments):
        raise ImportError("libtbb.so.12 is missing")

    (tmp_path / weights.file).touch()
    monkeypatch.setattr(backends, "_load_openvino", broken)
    monkeypatch.setattr(backends, "engines", lambda file: ["openvino", "llamacpp", "transformers"])
    with pytest.warns(UserWarning, match="openvino does not load .*, llamacpp has to: libtbb.so.12"):
        assert load_gguf(weights, DECODING)[0] == "llamacpp"
    monkeypatch.setattr(backends, "load_llamacpp", broken)
    with pytest.warns(UserWarning, match="llamacpp does not load .*, transformers has to: libtbb.so.12"):
        assert load_gguf(weights, DECODING)[0] == "transformers"


def test_an_engine_that_was_asked_for_has_no_stand_in(weights, monkeypatch, tmp_path):
    def broken(*_arguments):
        raise RuntimeError("no such instruction")

    (tmp_path / weights.file).touch()
    monkeypatch.setattr(backends, "_load_openvino", broken)
    monkeypatch.setenv("WORKBENCH_BACKEND", "openvino")
    with pytest.raises(RuntimeError, match="no such instruction"):
        load_gguf(weights, DECODING)


class FakeOpenVino:
    """Stands for `openvino_genai`: one token a character, 3 for the template; answers in capitals."""

    SchedulerConfig = SimpleNamespace

    @staticmethod
    def GenerationConfig(**options):
        return options

    class LLMPipeline:
        def __init__(self, file, device, scheduler_config):
            self.get_tokenizer = lambda: self

        def apply_chat_template(self, messages, add_generation_prompt):
            return f"<{messages[0]['content']}>{'|' * add_generation_prompt}"

        def encode(self, text, add_special_tokens):
            return SimpleNamespace(input_ids=np.zeros((1, len(text) + 5 * add_special_tokens)))

        def generate(self, prompts, config):
            return SimpleNamespace(texts=[f" {prompt.upper()} " for prompt in prompts])


def test_openvino_refuses_a_prompt_over_the_window(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "openvino_genai", FakeOpenVino)
    generate = backends._load_openvino(tmp_path / "small.gguf", DECODING, 16)
    # 16 positions - 1 new token - 3 of the template leave room for 12 characters.
    assert generate(["what", "a" * 12]) == ["WHAT", "A" * 12]
    with pytest.raises(ValueError, match="a prompt of 16 tokens is too long for a window of 16"):
        generate(["what", "a" * 13])


def test_openvino_opens_a_file_once_for_writers_of_different_length(monkeypatch, tmp_path):
    opened = []

    class Counting(FakeOpenVino):
        class LLMPipeline(FakeOpenVino.LLMPipeline):
            def __init__(self, file, *arguments, **options):
                opened.append(file)
                super().__init__(file, *arguments, **options)

            def generate(self, prompts, config):
                return SimpleNamespace(texts=[prompt[: config["max_new_tokens"]] for prompt in prompts])

    monkeypatch.setitem(sys.modules, "openvino_genai", Counting)
    short, long = (
        backends._load_openvino(tmp_path / "small.gguf", DECODING | {"max_new_tokens": tokens}, 99)
        for tokens in (2, 3)
    )
    assert (short(["what"]), long(["what"])) == (["wh"], ["wha"])
    assert opened == [str(tmp_path / "small.gguf")]


# Servers.


class ChatServer(BaseHTTPRequestHandler):
    """Speaks the OpenAI chat API, in capitals. The first `server.failures` requests fail."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers["Authorization"], body))
        if self.server.failures:
            self.server.failures -= 1
            return self._reply(503, {"error": {"message": "starting"}})
        text = f" {body['messages'][-1]['content'].upper()}\n"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return self._reply(
            200, {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        )

    def _reply(self, status, answer):
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Keep the test output free of the server's log."""


@pytest.fixture
def server(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), ChatServer) as running:
        running.asked, running.failures = [], 0
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("WORKBENCH_SERVER_URL", f"http://127.0.0.1:{running.server_port}/v1")
        monkeypatch.delenv("WORKBENCH_SERVER_KEY", raising=False)
        yield running
        running.shutdown()


def test_a_server_gets_the_bare_prompt_and_the_decoding_settings(server):
    generate = load_server("some-model", DECODING | {"max_new_tokens": 7})
    assert generate(["what is LoRA ?"]) == ["WHAT IS LORA ?"]
    ((path, key, body),) = server.asked
    assert path == "/v1/chat/completions"
    assert key == "Bearer none"
    # No template: the server applies its own.
    assert body["messages"] == [{"role": "user", "content": "what is LoRA ?"}]
    assert body["model"] == "some-model"
    assert body["temperature"] == 0
    assert 7 in (body.get("max_tokens"), body.get("max_completion_tokens"))


def test_a_batch_for_a_server_keeps_its_order(server):
    prompts = [f"prompt {i}" for i in range(6)]
    assert load_server("some-model", DECODING)(prompts) == [f"PROMPT {i}" for i in range(6)]


def test_a_server_that_is_still_starting_is_asked_again(server, monkeypatch):
    server.failures = 1
    assert load_server("some-model", DECODING)(["what"]) == ["WHAT"]
    assert len(server.asked) == 2


def test_the_key_of_a_server_comes_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("WORKBENCH_SERVER_KEY", "secret")
    load_server("some-model", DECODING)(["what"])
    assert server.asked[0][1] == "Bearer secret"


def test_without_an_address_the_server_profile_says_what_to_set(monkeypatch):
    monkeypatch.delenv("WORKBENCH_SERVER_URL", raising=False)
    with pytest.raises(ModelMissing, match="set WORKBENCH_SERVER_URL"):
        load_server("some-model", DECODING)
