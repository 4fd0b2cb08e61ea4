"""The writer's throughput: tokens read and written in a second, by engine, options and size of batch, in one run.

    python benchmarks/writer.py
    WORKBENCH_PROFILE=tiny python benchmarks/writer.py --prompts 2 --output tiny.json

Prompts are those of the recorded verdicts, the longest and the shortest in turn. Reading is timed with a single token
to write; writing on prompts of a few words, without an end. The first call of each route is not timed. Seconds to load
are those of a file that the system may have kept in memory.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

from helpers.backends import chat_prompt, gguf_file, openvino_chat_ids, unpacked_model
from helpers.jsonlines import read_rows
from helpers.likelihood import padded_batches
from helpers.llamacpp import LlamaCpp
from helpers.machine import machine
from helpers.passes import openvino_folder
from helpers.profiles import load_profile
from helpers.recording import RECORDED
from helpers.weights import WEIGHTS
from timing import timed

OUTPUT = Path(__file__).parent / "results" / "writer.json"
OPENVINO_OPTIONS = {
    "as the writer runs": {},
    "float32": {"INFERENCE_PRECISION_HINT": "f32"},
    "bfloat16": {"INFERENCE_PRECISION_HINT": "bf16"},
    "activations not quantised": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"},
    "activations in groups of 128": {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "128"},
    "throughput hint": {"PERFORMANCE_HINT": "THROUGHPUT"},
}
BATCH_TOKENS, CHARACTERS_PER_TOKEN = 1024, 4


class OpenVino:
    """The writer's engine with other options, loaded from a GGUF file or from OpenVINO's own format."""

    def __init__(self, path: Path, options: dict):
        import openvino_genai

        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = 2
        self._config = openvino_genai.GenerationConfig
        self._pipeline = openvino_genai.LLMPipeline(str(path), "CPU", scheduler_config=scheduler, **options)

    def write(self, prompts: list[str], tokens: int) -> int:
        """Write so many tokens after each prompt; return how many were read."""
        self._pipeline.generate(
            prompts, self._config(max_new_tokens=tokens, ignore_eos=True, do_sample=False)
        )
        # Its own metrics give the mean of a batch.
        tokenizer = self._pipeline.get_tokenizer()
        return sum(openvino_chat_ids(tokenizer, prompt).shape[1] for prompt in prompts)


class LlamaCppRoute:
    """The same file by llama.cpp."""

    def __init__(self, file: Path, window: int):
        self._model = LlamaCpp(file, window)

    def write(self, prompts: list[str], tokens: int) -> int:
        """Write so many tokens after each prompt; return how many were read."""
        completions = self._model.chats(prompts, max_tokens=tokens, ignore_eos=True, temperature=0)
        return sum(completion["usage"]["prompt_tokens"] for completion in completions)


class Transformers:
    """A model and its tokenizer, a batch padded on the left."""

    def __init__(self, model, tokenizer):
        tokenizer.padding_side = "left"
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        self._model, self._tokenizer = model, tokenizer

    def write(self, prompts: list[str], tokens: int) -> int:
        """Write so many tokens after each prompt; return how many were read, padding left out."""
        chats = [chat_prompt(self._tokenizer, prompt) for prompt in prompts]
        batch = self._tokenizer(chats, return_tensors="pt", padding=True, add_special_tokens=False)
        self._model.generate(**batch, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)
        return int(batch["attention_mask"].sum())


def rates(route, prompts: list[str], tokens: int) -> dict:
    """Return the tokens that a route reads and writes in a second, all prompts in a batch."""
    route.write([prompts[-1][:200]], 2)
    read, reading = timed(route.write, prompts, 1)
    _, writing = timed(route.write, [prompt[:40] for prompt in prompts], tokens)
    return {"read": round(read / reading, 1), "written": round(len(prompts) * tokens / writing, 1)}


def batching(route, prompts: list[str], tokens: int) -> dict:
    """Return the seconds for all prompts in batches of a number of prompts, and of a number of tokens."""
    by_length = sorted(prompts, key=len, reverse=True)
    seconds = {}
    for size in sorted({1, len(prompts) // 2, len(prompts)}):
        batches = [by_length[i : i + size] for i in range(0, len(by_length), size)]
        seconds[f"of {size}"] = _seconds_of(route, batches, tokens)
    characters = [len(prompt) for prompt in by_length]
    numbers = padded_batches(range(len(by_length)), characters, CHARACTERS_PER_TOKEN * BATCH_TOKENS)
    batches = [[by_length[number] for number in batch] for batch in numbers]
    seconds[f"of {BATCH_TOKENS} tokens"] = _seconds_of(route, batches, tokens)
    return seconds


def _seconds_of(route, batches, tokens):
    return round(sum(timed(route.write, batch, tokens)[1] for batch in batches), 1)


def _recorded_prompts(count):
    rows = read_rows(RECORDED / "cpu" / "verdicts.jsonl")
    prompts = sorted((row["prompt"] for row in rows), key=len)
    return [prompts[-1 - i // 2] if i % 2 == 0 else prompts[i // 2] for i in range(count)]


def openvino_rows(file: Path, prompts: list[str], tokens: int) -> dict:
    """Return the rates of OpenVINO on packed weights, read from the GGUF file and from its own format."""
    rows = {"openvino, from the GGUF file": _row(lambda: OpenVino(file, {}), prompts, tokens)}
    folder = openvino_folder(file)
    for name, options in OPENVINO_OPTIONS.items():
        load = partial(OpenVino, folder, options)
        rows[f"openvino, {name}"] = _row(load, prompts, tokens)
    return rows


def llamacpp_rows(file: Path, prompts: list[str], tokens: int, window: int) -> dict:
    """Return the rates of llama.cpp on packed weights."""
    return {"llama.cpp": _row(partial(LlamaCppRoute, file, window), prompts, tokens)}


def transformers_rows(file: Path, prompts: list[str], tokens: int) -> dict:
    """Return the rates of transformers on unpacked weights."""
    import torch

    return {
        f"transformers, {str(dtype).removeprefix('torch.')}": _row(
            lambda dtype=dtype: Transformers(*unpacked_model(file, dtype)), prompts, tokens
        )
        for dtype in (torch.float32, torch.bfloat16)
    }


def _row(load, prompts, tokens):
    route, loading = timed(load)
    row = {"load seconds": round(loading, 1)} | rates(route, prompts, tokens)
    print(row, flush=True)
    return row


def with_ratios(rows: dict) -> dict:
    """Return rows with their rates as multiples of those of the writer as it runs."""
    base = rows["openvino, as the writer runs"]
    for row in rows.values():
        row |= {f"{kind}, times": round(row[kind] / base[kind], 2) for kind in ("read", "written")}
    return rows


def main() -> None:
    """Measure every route and write the results with the machine they were measured on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=24, help="written after each prompt")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    model = load_profile().writer
    file, prompts = gguf_file(WEIGHTS[model]), _recorded_prompts(options.prompts)
    started = time.perf_counter()
    measured = (file, prompts, options.tokens)
    result = {
        "machine": machine(),
        "model": WEIGHTS[model].file,
        "prompts": options.prompts,
        "tokens written after each": options.tokens,
        "routes": with_ratios(
            openvino_rows(*measured)
            | llamacpp_rows(*measured, WEIGHTS[model].window)
            | transformers_rows(*measured)
        ),
        "seconds for all prompts in batches": batching(OpenVino(file, {}), prompts, options.tokens),
        "seconds": round(time.perf_counter() - started),
    }
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
