"""The journal: what was paid for once is never lost, and never paid for twice."""

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import recording
from helpers.profiles import load_profile
from helpers.recording import (
    Journal,
    JournalError,
    NotRecorded,
    content_key,
    open_recording,
    recording_mode,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "journal.jsonl"  # the folder is made by the first entry


def written(path, **entries):
    """Write a journal as an earlier run left it."""
    journal = Journal(path)
    for key, value in entries.items():
        journal.put(key, value)
    journal.close()
    return path


def reread(path):
    """Return what a fresh process would find."""
    return Journal(path)._entries


# Keys


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("a", "b"), ("b", "a")),
        ((["a", "b"],), ("a", "b")),
        ((1,), ("1",)),
        ((None,), ("",)),
        (("é",), ("e\u0301",)),
    ],
)
def test_different_parts_have_different_keys(one, other):
    assert content_key(*one) != content_key(*other)


def test_a_key_is_the_same_on_every_machine():
    # By sha256sum on the JSON text. A change of this value would orphan every recording there is.
    assert content_key("call", {"b": 1, "a": "é"}) == "9119a4cf6c9e011e5da111bb"
    assert content_key("call", {"a": "é", "b": 1}) == content_key("call", {"b": 1, "a": "é"})


# Put and get


def test_an_entry_is_on_disk_when_put_returns_and_a_fresh_journal_replays_it(path):
    journal = Journal(path)
    journal.put("k", {"text": "Zürich 树"}, prompt="for human readers")
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "key": "k",
        "prompt": "for human readers",
        "value": {"text": "Zürich 树"},
    }
    assert Journal(path).get("k") == {"text": "Zürich 树"}


@settings(max_examples=30, deadline=None)
@given(entries=st.dictionaries(st.text(), JSON, max_size=5))
def test_every_json_value_survives_the_file(tmp_path_factory, entries):
    path = tmp_path_factory.mktemp("any") / "journal.jsonl"
    journal = Journal(path)
    for key, value in entries.items():
        journal.put(key, value)
    journal.close()
    assert reread(path) == entries


def test_a_journal_says_how_much_was_live_and_how_much_replayed(path):
    written(path, old=1)
    journal = Journal(path)
    assert (journal.live, journal.replayed) == (0, 0)
    assert journal.get("old") == 1
    assert journal.get("new") is None  # a miss is neither
    journal.put("new", 2)
    assert journal.get("new") == 2
    assert (journal.live, journal.replayed) == (1, 2)
    assert len(journal) == 2
    assert "new" in journal
    assert "other" not in journal


def test_a_journal_without_a_path_remembers_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journal = Journal()
    assert journal.get("k") is None
    journal.put("k", "v")
    assert journal.get("k") == "v"
    assert list(tmp_path.iterdir()) == []


def test_reading_alone_leaves_no_trace(path):
    Journal(path)
    assert not path.parent.exists()


# A base that is read, a path that is written


def test_new_entries_go_to_the_path_and_the_base_stays_as_it_is(tmp_path, path):
    base = written(tmp_path / "base.jsonl", a="recorded", b="recorded")
    before = base.read_bytes()
    written(path, b="own")
    journal = Journal(path, base=[base])
    assert journal.get("a") == "recorded"
    assert journal.get("b") == "own"  # one's own run goes before the recording
    journal.put("c", "new")
    assert base.read_bytes() == before
    assert reread(path) == {"b": "own", "c": "new"}


def test_a_base_that_is_not_there_is_an_empty_one(tmp_path, path):
    assert len(Journal(path, base=[tmp_path / "none.jsonl"])) == 0


# Crashes


def test_a_half_written_last_line_is_dropped_and_the_next_entry_is_whole(path):
    written(path, a=1, b=2)
    whole = path.read_bytes()
    for cut in range(1, len(b'{"key": "b", "value": 2}\n')):
        path.write_bytes(whole[:-cut])
        kept = {"a": 1, "b": 2} if cut == 1 else {"a": 1}  # only the newline is missing: the line is valid
        assert reread(path) == kept, f"{cut} bytes missing"
        written(path, c=3)
        assert reread(path) == kept | {"c": 3}, f"{cut} bytes missing"
        assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_crash_inside_a_character_is_a_half_written_line_too(path):
    written(path, a=1, b="树")
    path.write_bytes(path.read_bytes().split("树".encode())[0] + "树".encode()[:1])
    assert reread(path) == {"a": 1}


def test_reading_does_not_mend_a_file_that_it_may_not_write(path):
    written(path, a=1)
    path.write_bytes(path.read_bytes() + b'{"key": "b"')
    before = path.read_bytes()
    assert Journal(base=[path]).get("a") == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [b"{half", b"\xff\xfe", b"null", b"[1]", b'{"value": 1}', b'"key"'])
def test_a_damaged_line_in_the_middle_is_named(path, damage):
    written(path, a=1, b=2, c=3)
    lines = path.read_bytes().split(b"\n")
    lines[1] = damage
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(JournalError, match=r"journal\.jsonl, line 2 is damaged"):
        Journal(path)
    del lines[1]  # what the message advises
    path.write_bytes(b"\n".join(lines))
    assert reread(path) == {"a": 1, "c": 3}


class FullDisk(io.FileIO):
    """A file on a disk with room for 10 more bytes."""

    def write(self, data):
        super().write(bytes(data)[:10])
        raise OSError(errno.ENOSPC, "No space left on device")


def fill_disk_at_open(patch):
    def full(self, mode="r", **_):
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(Path, "open", full)


def fill_disk_at_write(patch):
    patch.setattr(
        Path, "open", lambda self, mode, encoding: io.TextIOWrapper(io.BufferedWriter(FullDisk(self, "a")))
    )


def fill_disk_at_fsync(patch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(os, "fsync", full)


@pytest.mark.parametrize("fill", [fill_disk_at_open, fill_disk_at_write, fill_disk_at_fsync])
def test_a_full_disk_is_said_clearly_and_loses_nothing(path, fill, monkeypatch):
    journal = Journal(path)
    journal.put("a", 1)
    with monkeypatch.context() as patch:
        fill(patch)
        with pytest.raises(
            JournalError, match="cannot write journal.jsonl: No space left on device. Earlier"
        ):
            journal.put("b", 2)
    assert reread(path) == {"a": 1}
    # An entry that is not on disk does not count as one.
    assert "b" not in journal
    assert journal.live == 1
    # Space was freed: the same journal goes on, and no half of a line stands in the way of the next.
    journal.put("b", 3)
    journal.put("c", 4)
    assert reread(path) == {"a": 1, "b": 3, "c": 4}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_really_full_device(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.symlink_to("/dev/full")
    journal = Journal()
    journal.path = path
    journal._lock = object()  # a lock needs no room, and the device cannot be read to its end
    with pytest.raises(JournalError, match="No space left on device"):
        journal.put("a", 1)


# Two runs


def test_a_second_run_on_a_journal_is_stopped_before_it_pays(path):
    first = Journal(path)
    assert first.get("a") is None  # from here on, the first run pays
    second = Journal(path)
    with pytest.raises(JournalError, match="another run is writing journal.jsonl"):
        second.get("a")
    with pytest.raises(JournalError, match="another run is writing journal.jsonl"):
        second.put("a", "paid twice")
    first.put("a", "paid once")
    first.close()
    assert second.get("a") == "paid once"
    assert reread(path) == {"a": "paid once"}


def test_reading_what_is_there_needs_no_lock(path):
    written(path, a=1)
    writer = Journal(path)
    assert writer.get("b") is None
    assert Journal(path).get("a") == 1


ASK = """
import sys
from helpers.recording import Journal, JournalError
journal = Journal(sys.argv[1])
try:
    print("may pay" if journal.get("a") is None else "replayed")
except JournalError as error:
    print(error)
"""


def test_a_second_process_is_stopped_too(path):
    def ask():
        command = [sys.executable, "-c", ASK, str(path)]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=recording.ROOT
        ).stdout.strip()

    journal = Journal(path)
    assert journal.get("a") is None
    assert ask() == "another run is writing journal.jsonl: wait for it or stop it, then run again"
    journal.put("b", 1)
    journal.close()
    assert ask() == "may pay"
    assert reread(path) == {"b": 1}


# Modes


def test_a_strict_miss_names_the_command_that_records(tmp_path):
    base = written(tmp_path / "base.jsonl", a=1)
    strict = Journal(base=[base], strict=True)
    assert strict.get("a") == 1
    with pytest.raises(NotRecorded, match=r"a summary is not recorded \(key b\).*make compare LIVE=1"):
        strict.get("b", "a summary")
    assert (strict.live, strict.replayed) == (0, 1)


@pytest.mark.parametrize(
    ("value", "mode"), [(None, "replay"), ("", "replay"), ("live", "live"), ("strict", "strict")]
)
def test_the_environment_sets_the_mode(monkeypatch, value, mode):
    monkeypatch.delenv("WORKBENCH_MODE", raising=False)
    if value is not None:
        monkeypatch.setenv("WORKBENCH_MODE", value)
    assert recording_mode() == mode


def test_a_wrong_mode_is_refused_and_never_read_as_replay(monkeypatch):
    with pytest.raises(ValueError, match="'Strict'.*replay, live, strict"):
        open_recording("tree", load_profile("cpu"), mode="Strict")
    monkeypatch.setenv("WORKBENCH_MODE", "online")
    with pytest.raises(ValueError, match="'online'.*replay, live, strict"):
        open_recording("tree", load_profile("cpu"))


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project whose `cpu` recording holds one entry, and whose `build` holds none."""
    monkeypatch.setattr(recording, "ROOT", tmp_path)
    monkeypatch.setattr(recording, "RECORDED", tmp_path / "data" / "recorded")
    written(tmp_path / "data" / "recorded" / "cpu" / "tree.jsonl", a="recorded")
    return tmp_path


def test_replay_answers_from_the_recording_and_keeps_what_it_computes_apart(root):
    recorded = root / "data" / "recorded" / "cpu" / "tree.jsonl"
    before = recorded.read_bytes()
    journal = open_recording("tree", load_profile("cpu"), "replay")
    assert journal.get("a") == "recorded"
    assert journal.get("b") is None
    journal.put("b", "computed")
    journal.close()
    assert recorded.read_bytes() == before
    assert open_recording("tree", load_profile("cpu"), "replay").get("b") == "computed"


def test_live_leaves_the_recording_aside_and_goes_on_where_it_stopped(root):
    journal = open_recording("tree", load_profile("cpu"), "live")
    assert journal.get("a") is None
    journal.put("a", "computed")
    journal.close()
    assert open_recording("tree", load_profile("cpu"), "live").get("a") == "computed"
    assert open_recording("tree", load_profile("cpu"), "replay").get("a") == "recorded"


def test_strict_answers_from_the_recording_alone(root):
    replay = open_recording("tree", load_profile("cpu"), "replay")
    replay.put("b", "computed")
    replay.close()
    strict = open_recording("tree", load_profile("cpu"), "strict")
    assert strict.get("a") == "recorded"
    with pytest.raises(NotRecorded):
        strict.get("b")


def test_profiles_have_recordings_of_their_own(root):
    assert "a" in open_recording("tree", load_profile("cpu"), "replay")
    assert "a" not in open_recording("tree", load_profile("tiny"), "replay")
