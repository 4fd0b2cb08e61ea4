"""llama.cpp behind a stand-in for its bindings; `live/test_live.py` runs the real ones."""

import sys
import threading
from types import SimpleNamespace

import pytest

from helpers.llamacpp import SLOT_TOKENS, SLOTS, load_llamacpp
from helpers.machine import cores

DECODING = {"max_new_tokens": 7, "repetition_penalty": 1.1}


class Server:
    """Answers in capitals; refuses what begins with "long", and cuts the answer to "cut" short."""

    def __init__(self, params):
        self.params, self.requests, self.together = params, [], None
        Server.last = self

    def handle_chat_completions(self, request):
        self.requests.append(request)
        if self.together:
            self.together.wait()
        text = request["messages"][0]["content"]
        if text.startswith("long"):
            return {"error": {"code": 400, "message": "the request exceeds the available context size"}}
        reason = "length" if text == "cut" else "stop"
        choice = {"message": {"content": f" {text.upper()}\n"}, "finish_reason": reason}
        return {"choices": [choice], "usage": {"completion_tokens": 3}}


@pytest.fixture(autouse=True)
def bindings(monkeypatch):
    def params():
        threads = SimpleNamespace(n_threads=-1), SimpleNamespace(n_threads=-1)
        return SimpleNamespace(model=SimpleNamespace(), cpuparams=threads[0], cpuparams_batch=threads[1])

    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace(CommonParams=params, Server=Server))


def test_answers_come_in_the_order_of_their_prompts(tmp_path):
    prompts = [f"prompt {i}" for i in range(3 * SLOTS)]
    assert load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)(prompts) == [p.upper() for p in prompts]


def test_a_file_is_opened_once_for_writers_of_different_length(tmp_path):
    load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)(["what"])
    first = Server.last
    load_llamacpp(tmp_path / "m.gguf", DECODING | {"max_new_tokens": 9}, 2048)(["what"])
    assert Server.last is first and [request["max_tokens"] for request in first.requests] == [7, 9]


def test_as_many_prompts_as_there_are_slots_are_answered_at_once(tmp_path):
    generate = load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)
    Server.last.together = threading.Barrier(SLOTS, timeout=10)  # breaks unless that many wait together
    assert len(generate(["what"] * 2 * SLOTS)) == 2 * SLOTS


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
    assert Server.last.params.cpuparams.n_threads == Server.last.params.cpuparams_batch.n_threads == cores()
    assert Server.last.params.api_keys, "its port would be open to every page in a browser"


def test_a_prompt_that_is_too_long_is_an_error(tmp_path):
    generate = load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)
    with pytest.raises(ValueError, match="exceeds the available context size: lower the budget, or name"):
        generate(["short", "long one"])


def test_an_answer_that_the_slot_has_no_room_for_is_an_error(tmp_path):
    generate = load_llamacpp(tmp_path / "m.gguf", DECODING, 2048)
    with pytest.raises(ValueError, match="llama.cpp had room for 3 tokens of an answer: lower the budget"):
        generate(["cut"])
