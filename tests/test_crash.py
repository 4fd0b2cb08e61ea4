"""Builds that are killed, run out of disk, or meet: nothing that is in the journal is ever paid for again."""

import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes import CountingWriter
from test_tree import build_sixteen

from helpers.recording import JournalError, content_key

TESTS = Path(__file__).parent
# Children of a server that has imported everything already: they start within milliseconds.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])

BUILD = """
import json, sys
from fakes import CountingWriter
from test_tree import build_sixteen

def pay(number, texts):
    with open(sys.argv[2], "a") as bill:
        bill.write(json.dumps(texts) + "\\n")

build_sixteen(CountingWriter(fails=pay), sys.argv[1])
"""


@pytest.fixture(autouse=True)
def python_path(monkeypatch):
    """What the processes below import from."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS.parent)]))


def start(*arguments):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", BUILD, *map(str, arguments)], **pipes)


def lines(file):
    """The whole lines of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def summaries(journal):
    """The keys of the summaries that a journal holds."""
    return {entry["key"] for entry in lines(journal) if "level" in entry}


def call_key(texts):
    return content_key("summary", CountingWriter.identity, texts)


def build_and_bill(journal, bill, ready):
    """A build in a process of its own; every call goes on the bill before it is answered."""

    def pay(number, texts):
        with bill.open("a") as file:
            file.write(json.dumps(texts) + "\n")
        time.sleep(0.002)

    ready.set()
    build_sixteen(CountingWriter(fails=pay), journal)


def killed_after(seconds, journal, bill):
    """Start a build, and kill it after some time; return whether that was before its end."""
    ready = PROCESSES.Event()
    process = PROCESSES.Process(target=build_and_bill, args=(journal, bill, ready))
    process.start()
    assert ready.wait(timeout=60)
    time.sleep(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode == -signal.SIGKILL


def test_builds_killed_at_twenty_random_moments_repeat_no_paid_call(tmp_path):  # bug 9
    chance, uninterrupted = random.Random(0), build_sixteen(CountingWriter(), None).nodes
    kills = builds = 0
    while kills < 20:
        journal, bill = tmp_path / f"journal{builds}.jsonl", tmp_path / f"bill{builds}.jsonl"
        killed = True
        while killed:
            kept, before = summaries(journal), len(lines(bill))
            killed = killed_after(chance.uniform(0, 0.04), journal, bill)
            assert summaries(journal) >= kept, "a kill lost what was there"
            calls = [call_key(texts) for texts in lines(bill)[before:]]
            assert not kept & set(calls), "a call was repeated"
            assert len(calls) <= len(summaries(journal) - kept) + 1, "only the call under way may be lost"
            kills += killed
        writer = CountingWriter()
        assert build_sixteen(writer, journal).nodes == uninterrupted
        assert writer.calls == []
        builds += 1


def build_within(bytes_of_disk, journal, errors):
    """A build in a process of its own that can write no file larger than that."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_of_disk, resource.RLIM_INFINITY))
    try:
        build_sixteen(CountingWriter(), journal)
    except JournalError as error:
        errors.put(str(error))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_build_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path, share):
    whole = build_sixteen(CountingWriter(), tmp_path / "whole.jsonl")
    journal, errors = tmp_path / "journal.jsonl", PROCESSES.Queue()
    room = round(share * (tmp_path / "whole.jsonl").stat().st_size)
    process = PROCESSES.Process(target=build_within, args=(room, journal, errors))
    process.start()
    assert "cannot write journal.jsonl: File too large. Earlier entries are safe" in errors.get(timeout=60)
    process.join()
    assert process.exitcode == 0
    assert journal.read_bytes() == b"" or journal.read_bytes().endswith(b"}\n"), "half a line is left"

    kept, writer = summaries(journal), CountingWriter()
    assert build_sixteen(writer, journal).nodes == whole.nodes
    assert len(writer.calls) == 9 - len(kept)


def test_of_two_builds_on_one_journal_the_second_is_refused(tmp_path):
    journal, bill = tmp_path / "journal.jsonl", tmp_path / "bill.jsonl"
    errors = []

    def meet(number, texts):
        if number == 3:
            with start(journal, bill) as process:
                errors.append(process.communicate()[1])

    tree = build_sixteen(CountingWriter(fails=meet), journal)
    assert "JournalError: another run is writing journal.jsonl: wait for it or stop it" in errors[0]
    assert lines(bill) == [], "the second must not pay for anything"
    assert tree.nodes == build_sixteen(CountingWriter(), None).nodes
