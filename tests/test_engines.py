"""Which engine writes: the environment's, else the one measured faster here, else OpenVINO."""

import json

import pytest

from helpers import engines as module
from helpers.engines import PACKAGES, engines
from helpers.machine import machine


@pytest.fixture
def file(monkeypatch, tmp_path):
    monkeypatch.delenv("WORKBENCH_BACKEND", raising=False)
    monkeypatch.setattr(module, "installed", lambda: list(PACKAGES))
    return tmp_path / "model.gguf"


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
    assert engines(file) == list(PACKAGES)
    file.with_suffix(".seconds.json").write_text('{"mach')
    assert engines(file) == list(PACKAGES)


def test_the_environment_overrides_the_note(file, monkeypatch):
    note(file, {"openvino": 9.0, "transformers": 3.0})
    monkeypatch.setenv("WORKBENCH_BACKEND", "openvino")
    assert engines(file) == ["openvino"]
