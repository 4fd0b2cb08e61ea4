"""Backends: how a profile's writer is really run. Each loader returns a function from prompts to answers.

A model is in memory once, however many writers there are of it: of summaries, gists, answers and verdicts.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

from helpers.engines import engines
from helpers.fetch import Weights, weights_folder
from helpers.llamacpp import load_llamacpp

Generate = Callable[[list[str]], list[str]]
"""Prompts in (without chat template), answers out (without the prompt)."""


class ModelMissing(RuntimeError):
    """Weights that are not on this machine, with the command that brings them."""


def load_gguf(weights: Weights, decoding: dict) -> Generate:
    """Load a GGUF file by the fastest engine that is here, or by the next one where that does not load it.

    OpenVINO and llama.cpp read the file as it is, keep the weights packed and batch continuously; transformers
    has to unpack it. ``WORKBENCH_BACKEND`` (``openvino``, ``llamacpp`` or ``transformers``) overrides the choice.
    """
    file = gguf_file(weights)
    loaders = {"openvino": _load_openvino, "llamacpp": load_llamacpp, "transformers": _load_transformers}
    order = engines(file)
    for engine, following in pairwise(order):
        try:
            return loaders[engine](file, decoding, weights.window)
        except (ImportError, RuntimeError, OSError, ValueError) as error:
            warnings.warn(f"{engine} does not load {file.name}, {following} has to: {error}", stacklevel=2)
    return loaders[order[-1]](file, decoding, weights.window)


def gguf_file(weights: Weights) -> Path:
    """Return the path of a weights file; raise `ModelMissing` if it is not on this machine."""
    file = weights_folder() / weights.file
    if not file.exists():
        raise ModelMissing(f"{weights.file} is not on this machine: python -m helpers fetch")
    return file


def _load_openvino(file, decoding, window) -> Generate:
    import openvino_genai

    pipeline = _openvino_pipeline(file)
    config = openvino_genai.GenerationConfig(
        max_new_tokens=decoding["max_new_tokens"],
        repetition_penalty=decoding["repetition_penalty"],
        do_sample=False,
        apply_chat_template=True,
    )
    tokenizer = pipeline.get_tokenizer()

    def generate(prompts: list[str]) -> list[str]:
        sizes = (openvino_chat_ids(tokenizer, prompt).shape[1] for prompt in prompts)
        _check_window(sizes, decoding["max_new_tokens"], window)
        return [text.strip() for text in pipeline.generate(prompts, config).texts]

    return generate


@cache
def _openvino_pipeline(file):
    import openvino_genai

    scheduler = openvino_genai.SchedulerConfig()
    scheduler.cache_size = 2  # GB of key-value cache, about 70,000 tokens of the cpu profile's writer
    return openvino_genai.LLMPipeline(str(file), "CPU", scheduler_config=scheduler)


def openvino_chat_ids(tokenizer, prompt: str):
    """Return the tokens of a prompt in the chat template of an OpenVINO tokenizer, a tensor of shape (1, tokens)."""
    message = [{"role": "user", "content": prompt}]
    chat = tokenizer.apply_chat_template(message, add_generation_prompt=True)
    return tokenizer.encode(chat, add_special_tokens=False).input_ids


def _load_transformers(file, decoding, _window) -> Generate:
    return _pipeline_generate(*_model_to_write_with(file), decoding)


@cache
def _model_to_write_with(file):
    return unpacked_model(file, writing_dtype())


def writing_dtype():
    """Return torch's bfloat16 if this processor multiplies it, where it writes three times faster, else float32."""
    import torch

    abilities = torch.cpu.get_capabilities()
    multiplies = any(abilities.get(name) for name in ("avx512_bf16", "amx_bf16"))
    return torch.bfloat16 if multiplies else torch.float32


def unpacked_model(file: Path, dtype=None):
    """Return model and tokenizer of a GGUF file, by default in float32.

    The type is given to transformers, since `Module.to` would round the frequencies of positions, too.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent,
        gguf_file=file.name,
        quantization_config=GgufConfig(dequantize=True),
        dtype=dtype or torch.float32,
    )
    return model, tokenizer


def load_hub(name, decoding, four_bit) -> Generate:
    """Load a model from the hub to write with."""
    return _pipeline_generate(*hub_model(name, four_bit=four_bit), decoding)


@cache
def hub_model(name: str, *, four_bit: bool):
    """Return model and tokenizer from the hub: NF4 with float16 arithmetic as in the source, or plain float16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    four_bits = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float16
    )
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(
            name,
            device_map="auto",
            dtype=torch.float16,
            quantization_config=four_bits if four_bit else None,
        )
    except OSError as error:
        raise ModelMissing(f"{name} is not to be had: python -m helpers fetch gpu ({error})") from error
    return model, tokenizer


def _pipeline_generate(model, tokenizer, decoding) -> Generate:
    """Return a function that batches prompts through LangChain's HuggingFacePipeline, chat template on."""
    from langchain_huggingface import HuggingFacePipeline
    from transformers import pipeline

    tokenizer.padding_side = "left"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    window = model.config.max_position_embeddings
    llm = HuggingFacePipeline(pipeline=pipeline("text-generation", model=model, tokenizer=tokenizer))
    # Passed with each call: HuggingFacePipeline ignores those it is made with, and would then give the prompt
    # back in front of each answer. The template has written the special tokens already, so none are added.
    options = {
        "return_full_text": False,
        "add_special_tokens": False,
        "do_sample": False,
        "max_new_tokens": decoding["max_new_tokens"],
        "repetition_penalty": decoding["repetition_penalty"],
    }

    def generate(prompts: list[str]) -> list[str]:
        chats = [chat_prompt(tokenizer, prompt) for prompt in prompts]
        sizes = (len(tokenizer(chat, add_special_tokens=False).input_ids) for chat in chats)
        _check_window(sizes, decoding["max_new_tokens"], window)
        # LangChain cuts the prompts into batches, and then so does the pipeline in it: both need the size.
        llm.batch_size = len(chats)
        answers = llm.batch(chats, pipeline_kwargs=options | {"batch_size": len(chats)})
        return [text.strip() for text in answers]

    return generate


def _check_window(sizes, new_tokens, window):
    """Refuse prompts that leave no room for their answers: an engine would cut them, or write nonsense."""
    longest = max(sizes)
    if longest + new_tokens > window:
        raise ValueError(
            f"a prompt of {longest} tokens is too long for a window of {window}: lower the budget"
        )


def chat_prompt(tokenizer, prompt: str) -> str:
    """Return the prompt in the tokenizer's chat template (as it is where there is none)."""
    if not tokenizer.chat_template:
        return prompt
    message = [{"role": "user", "content": prompt}]
    return tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)


def load_server(model, decoding) -> Generate:
    """Use an OpenAI-compatible endpoint (vLLM, TGI, Ollama, llama.cpp), which applies the template itself."""
    from langchain_openai import ChatOpenAI

    address = os.environ.get("WORKBENCH_SERVER_URL")
    if not address:
        raise ModelMissing("set WORKBENCH_SERVER_URL, for instance to http://localhost:8000/v1")
    chat = ChatOpenAI(
        base_url=address,
        api_key=os.environ.get("WORKBENCH_SERVER_KEY", "none"),
        model=model,
        temperature=0,
        max_tokens=decoding["max_new_tokens"],
        max_retries=3,
    )
    return lambda prompts: [message.content.strip() for message in chat.batch(prompts)]
