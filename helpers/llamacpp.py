"""llama.cpp: a GGUF file run by xllamacpp, which brings it compiled (llama-cpp-python is compiled by its user)."""

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from helpers.machine import cores

# Prompts that are answered at once, and the most tokens that one and its answer may have (about 1 GB for all).
SLOTS, SLOT_TOKENS = 4, 8192
WAY_OUT = "lower the budget, or name another engine in WORKBENCH_BACKEND"


class LlamaCpp:
    """A model that answers chats, `SLOTS` of them at once.

    Parameters
    ----------
    file : Path
        Of a GGUF model with a chat template.
    window : int
        Tokens that a prompt and its answer may have; at most `SLOT_TOKENS`.
    """

    def __init__(self, file: Path, window: int):
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_parallel, params.n_ctx = SLOTS, SLOTS * min(window, SLOT_TOKENS)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = cores()
        params.cache_prompt, params.cache_ram_mib = False, 0
        params.warmup, params.verbosity = False, -1
        params.api_keys = [secrets.token_hex()]  # it listens on a port of this machine, for nobody
        self._server = xllamacpp.Server(params)

    def chats(self, prompts: Sequence[str], max_tokens: int, **options) -> list[dict]:
        """Return the completion of each prompt, as an OpenAI-compatible endpoint gives it.

        Raises
        ------
        ValueError
            If a prompt and its answer do not fit a slot.
        """

        def chat(prompt):
            request = {"messages": [{"role": "user", "content": prompt}], "max_tokens": max_tokens}
            completion = self._server.handle_chat_completions(request | options)
            if "error" in completion:
                raise ValueError(f"llama.cpp: {completion['error']['message']}: {WAY_OUT}")
            written = completion["usage"]["completion_tokens"]
            if completion["choices"][0]["finish_reason"] == "length" and written < max_tokens:
                raise ValueError(f"llama.cpp had room for {written} tokens of an answer: {WAY_OUT}")
            return completion

        with ThreadPoolExecutor(SLOTS) as pool:
            return list(pool.map(chat, prompts))


def load_llamacpp(file: Path, decoding: dict, window: int) -> Callable[[list[str]], list[str]]:
    """Load a GGUF file; return a function from prompts (without chat template) to answers, see `helpers.backends`."""
    model = _server(file, window)
    options = {
        "max_tokens": decoding["max_new_tokens"],
        "repeat_penalty": decoding["repetition_penalty"],
        "repeat_last_n": window,
        "temperature": 0,
    }

    def generate(prompts: list[str]) -> list[str]:
        completions = model.chats(prompts, **options)
        return [completion["choices"][0]["message"]["content"].strip() for completion in completions]

    return generate


@cache
def _server(file, window):
    """One of each model, whatever is written with it."""
    return LlamaCpp(file, window)
