"""Which engine writes: the environment's, else the one measured faster here, else OpenVINO."""

import json
import subprocess
from types import SimpleNamespace

import pytest

from helpers import backends, calibration
from helpers.calibration import calibrate, engines
from helpers.machine import machine
from helpers.weights import WEIGHTS

MODEL = "smollm2-135m"


@pytest.fixture
def file(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_MODELS", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_BACKEND", raising=False)
    monkeypatch.setattr(calibration, "_installed", lambda: list(calibration.ENGINES))
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
    monkeypatch.setattr(subprocess, "run", run)
    return SimpleNamespace(answers=answers, ran=ran)


def note(file, seconds, **about):
    content = {"machine": machine() | about, "seconds for a batch": seconds}
    file.with_suffix(".seconds.json").write_text(json.dumps(content))


def test_openvino_comes_first_where_nothing_was_measured(file):
    assert engines(file) == ["openvino", "llamacpp", "transformers"]


def test_the_faster_engine_of_the_note_comes_first(file):
    note(file, {"openvino": 9.0, "llamacpp": 5.0, "transformers": 3.0})
    assert engines(file) == ["transformers", "llamacpp", "openvino"]


def test_an_engine_that_failed_comes_last(file):
    note(file, {"openvino": None, "llamacpp": 201.0, "transformers": 200.0})
    assert engines(file) == ["transformers", "llamacpp", "openvino"]


def test_the_note_of_another_machine_or_half_a_note_says_nothing(file):
    note(file, {"openvino": 9.0, "transformers": 3.0}, cores=1000)
    assert engines(file) == list(calibration.ENGINES)
    file.with_suffix(".seconds.json").write_text('{"mach')
    assert engines(file) == list(calibration.ENGINES)


def test_the_environment_overrides_the_note(file, monkeypatch):
    note(file, {"openvino": 9.0, "transformers": 3.0})
    monkeypatch.setenv("WORKBENCH_BACKEND", "openvino")
    assert engines(file) == ["openvino"]


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


@pytest.mark.parametrize(
    ("answer", "cause"),
    [("", "out"), (subprocess.TimeoutExpired("python", 300), "it takes over 300 seconds")],
)
def test_an_engine_that_fails_is_named_with_the_cause(file, processes, capsys, answer, cause):
    processes.answers["openvino"] = answer
    assert "llamacpp writes on this machine" in calibrate(MODEL)
    assert f"openvino does not write with smollm2-135m here: {cause}" in capsys.readouterr().err


def test_nothing_is_noted_when_every_engine_fails(file, processes):
    processes.answers |= dict.fromkeys(calibration.ENGINES, "")
    with pytest.raises(RuntimeError, match="no engine writes with smollm2-135m"):
        calibrate(MODEL)
    assert not file.with_suffix(".seconds.json").exists()


def test_where_there_is_no_choice_nothing_is_measured(file, processes, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(calibration, "_installed", lambda: ["transformers"])
        assert calibrate(MODEL) is None
    monkeypatch.setenv("WORKBENCH_BACKEND", "openvino")
    assert calibrate(MODEL) is None
    assert processes.ran == []


def test_the_batch_is_timed_after_a_first_call(monkeypatch):
    calls = []
    monkeypatch.setattr(backends, "load_gguf", lambda weights, decoding: calls.append)
    assert calibration.batch_seconds(MODEL) == 0
    assert [len(call) for call in calls] == [1, 2]
