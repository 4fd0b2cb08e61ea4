"""llama.cpp behind a stand-in for its bindings; `live/test_live.py` runs the real ones."""

import sys
import threading
from types import SimpleNamespace

import pytest

from helpers.llamacpp import SLOT_TOKENS, SLOTS, load_llamacpp

DECODING = {"max_new_tokens": 7, "repetition_penalty": 1.1}


class Server:
    """Answers in capitals; refuses what begins with "long"."""

    def __init__(self, params):
        self.params, self.requests, self.threads = params, [], set()
        Server.last = self

    def handle_chat_completions(self, request):
        self.requests.append(request)
        self.threads.add(threading.get_ident())
        text = request["messages"][0]["content"]
        if text.startswith("long"):
            return {"error": {"code": 400, "message": "the request exceeds the available context size"}}
        return {"choices": [{"message": {"content": f" {text.upper()}\n"}}]}


@pytest.fixture(autouse=True)
def bindings(monkeypatch):
    def params():
        threads = SimpleNamespace(n_threads=-1), SimpleNamespace(n_threads=-1)
        return SimpleNamespace(model=SimpleNamespace(), cpuparams=threads[0], cpuparams_batch=threads[1])

    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace(CommonParams=params, Server=Server))


def test_answers_come_in_the_order_of_their_prompts(tmp_path):
    prompts = [f"prompt {i}" for i in range(3 * SLOTS)]
    assert load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)(prompts) == [p.upper() for p in prompts]
    assert 1 <= len(Server.last.threads) <= SLOTS


def test_decoding_is_greedy_with_the_penalty_over_the_whole_window(tmp_path):
    load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)(["what"])
    assert Server.last.requests == [
        {
            "messages": [{"role": "user", "content": "what"}],
            "max_tokens": 7,
            "repeat_penalty": 1.1,
            "repeat_last_n": 2048,
            "temperature": 0,
        }
    ]


@pytest.mark.parametrize(("window", "slot"), [(2048, 2048), (32_768, SLOT_TOKENS)])
def test_each_of_the_slots_has_the_model_s_window_up_to_a_limit(tmp_path, window, slot):
    load_llamacpp(tmp_path / "m.gguf", DECODING, window)
    assert Server.last.params.n_ctx == SLOTS * slot
    assert Server.last.params.n_parallel == SLOTS
    assert Server.last.params.api_keys, "its port would be open to every page in a browser"


def test_a_prompt_that_is_too_long_is_an_error(tmp_path):
    generate = load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)
    with pytest.raises(ValueError, match="llama.cpp: the request exceeds the available context size"):
        generate(["short", "long one"])
