"""Profiles: the sizes of a run fit together, and a wrong name is refused."""

from dataclasses import FrozenInstanceError, replace

import pytest

from helpers.profiles import PROFILES, load_profile

MINILM_WINDOW = 254  # tokens that MiniLM reads: 256 less [CLS] and [SEP]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("WORKBENCH_PROFILE", raising=False)


def test_cpu_is_the_default():
    assert load_profile().name == "cpu"


@pytest.mark.parametrize("name", ["cpu", "tiny", "gpu", "server"])
def test_each_profile_loads_by_its_own_name(name):
    assert load_profile(name).name == name


def test_the_environment_chooses(monkeypatch):
    monkeypatch.setenv("WORKBENCH_PROFILE", "tiny")
    assert load_profile().name == "tiny"
    assert load_profile("gpu").name == "gpu"  # an argument goes before it


def test_an_empty_environment_variable_is_none_at_all(monkeypatch):
    monkeypatch.setenv("WORKBENCH_PROFILE", "")
    assert load_profile().name == "cpu"


def test_a_wrong_name_is_answered_with_the_right_ones(monkeypatch):
    monkeypatch.setenv("WORKBENCH_PROFILE", "huge")
    with pytest.raises(ValueError, match="'huge'.*cpu, tiny, gpu, server.*WORKBENCH_PROFILE"):
        load_profile()


def test_a_profile_is_varied_by_copy_never_in_place():
    cpu = load_profile()
    with pytest.raises(FrozenInstanceError):
        cpu.seed = 9
    assert replace(cpu, seed=9).seed == 9
    assert load_profile().seed == 0


def test_cpu_leaves_fit_the_embedder():
    cpu = load_profile()
    assert (cpu.chunk_tokens, cpu.chunk_overlap) == (100, 0)
    assert cpu.chunk_tokens <= MINILM_WINDOW


def test_gpu_is_the_source_s_setting():
    gpu = load_profile("gpu")
    assert (gpu.writer, gpu.judge) == ("mistralai/Mistral-7B-Instruct-v0.2", "Qwen/Qwen2-7B-Instruct")
    assert (gpu.chunk_tokens, gpu.chunk_overlap) == (1000, 100)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_sizes_of_a_profile_fit_together(profile):
    assert 0 <= profile.chunk_overlap < profile.chunk_tokens
    # An answer has room for several leaves; a summary prompt holds two leaves, or two summaries, at least.
    assert 3 * profile.chunk_tokens <= profile.token_budget
    assert 2 * profile.chunk_tokens < profile.prompt_tokens
    assert 2 * profile.summary_tokens < profile.prompt_tokens
    assert 0 < profile.threshold < 1
