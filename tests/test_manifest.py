"""How a live run becomes the recording."""

import pytest

from helpers import manifest


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(manifest, "ROOT", tmp_path)
    monkeypatch.setattr(manifest, "RECORDED", tmp_path / "data" / "recorded")
    folder = tmp_path / "build" / "live" / "cpu"
    folder.mkdir(parents=True)
    (folder / "tree.jsonl").write_text('{"key": "k", "value": 1}\n')
    (folder / "tree.jsonl.lock").write_text("")
    return folder


def test_a_run_that_was_stopped_is_not_promoted(run):
    with pytest.raises(ValueError, match="no whole live run"):
        manifest.promote("cpu")


def test_a_whole_run_is_copied_without_its_locks(run, tmp_path):
    (run / "manifest.json").write_text("{}")
    assert "2 files" in manifest.promote("cpu")
    assert sorted(p.name for p in (tmp_path / "data/recorded/cpu").iterdir()) == [
        "manifest.json",
        "tree.jsonl",
    ]


def test_a_run_that_is_too_large_to_commit_is_refused(run, monkeypatch):
    (run / "manifest.json").write_text("{}")
    monkeypatch.setattr(manifest, "MAX_RECORDING_BYTES", 10)
    with pytest.raises(ValueError, match="over the 10"):
        manifest.promote("cpu")
