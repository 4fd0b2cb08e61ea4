"""Measuring each engine once, in a process of its own."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from helpers import calibration
from helpers import engines as engines_module
from helpers.calibration import calibrate
from helpers.engines import PACKAGES, engines
from helpers.machine import machine
from helpers.weights import WEIGHTS

MODEL = "smollm2-135m"


@pytest.fixture
def file(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_MODELS", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_BACKEND", raising=False)
    for module in (calibration, engines_module):
        monkeypatch.setattr(module, "installed", lambda: list(PACKAGES))
    return tmp_path / WEIGHTS[MODEL].file


@pytest.fixture
def processes(monkeypatch):
    """Stand for the measuring processes: `answers` holds what each engine's prints, or its exception."""
    answers = {"openvino": "5.0", "llamacpp": "7.0", "transformers": "9.5"}

    def run(command, env, **_options):
        ran.append(env["WORKBENCH_BACKEND"])
        answer = answers[env["WORKBENCH_BACKEND"]]
        if isinstance(answer, Exception):
            raise answer
        code = 0 if answer else 1
        return SimpleNamespace(
            stdout=f"loading\n{answer}\n" if answer else "", stderr="x\nout", returncode=code
        )

    ran = []
    machine()  # asks a process for the processor, once
    monkeypatch.setattr(subprocess, "run", run)
    return SimpleNamespace(answers=answers, ran=ran)


def test_each_engine_is_measured_once_and_noted(file, processes):
    processes.answers |= {"openvino": "5.0", "transformers": "2.5"}
    line = calibrate(MODEL)
    assert line == (
        "smollm2-135m: transformers writes on this machine "
        "(the same batch: openvino 5.0 s, llamacpp 7.0 s, transformers 2.5 s)"
    )
    assert engines(file) == ["transformers", "openvino", "llamacpp"]
    assert calibrate(MODEL) == line
    assert processes.ran == ["openvino", "llamacpp", "transformers"]


def test_an_engine_that_came_later_is_measured_too(file, processes):
    note = {"machine": machine(), "seconds for a batch": {"openvino": 5.0, "transformers": 9.5}}
    file.with_suffix(".seconds.json").write_text(json.dumps(note))
    processes.answers["llamacpp"] = "4.0"
    assert calibrate(MODEL).startswith("smollm2-135m: llamacpp writes on this machine")
    assert processes.ran == ["llamacpp"]
    assert engines(file) == ["llamacpp", "openvino", "transformers"]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [("", "out"), (subprocess.TimeoutExpired("python", 300), "it takes over 300 seconds")],
)
def test_an_engine_that_fails_is_named_with_the_cause(file, processes, capsys, answer, cause):
    processes.answers["openvino"] = answer
    assert "llamacpp writes on this machine" in calibrate(MODEL)
    assert f"openvino does not write with smollm2-135m here: {cause}" in capsys.readouterr().err


def test_nothing_is_noted_when_every_engine_fails(file, processes):
    processes.answers |= dict.fromkeys(PACKAGES, "")
    with pytest.raises(RuntimeError, match="no engine writes with smollm2-135m"):
        calibrate(MODEL)
    assert not file.with_suffix(".seconds.json").exists()


def test_where_there_is_no_choice_nothing_is_measured(file, processes, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(calibration, "installed", lambda: ["transformers"])
        assert calibrate(MODEL) is None
    monkeypatch.setenv("WORKBENCH_BACKEND", "openvino")
    assert calibrate(MODEL) is None
    assert processes.ran == []


def test_the_batch_is_timed_after_a_first_call(monkeypatch):
    calls = []
    monkeypatch.setattr(calibration, "load_gguf", lambda weights, decoding: calls.append)
    assert calibration.batch_seconds(MODEL) == 0
    assert [len(call) for call in calls] == [1, 4]
