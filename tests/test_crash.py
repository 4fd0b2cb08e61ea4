"""Builds that are killed, and builds that meet: nothing that is in the journal is ever paid for again."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fakes import CountingWriter
from test_tree import build_sixteen

from helpers.recording import content_key

TESTS = Path(__file__).parent

BUILD = """
import json, sys, time
from fakes import CountingWriter
from test_tree import build_sixteen

def pay(number, texts):
    with open(sys.argv[2], "a") as bill:
        bill.write(json.dumps(texts) + "\\n")
    time.sleep(0.03)

print("ready", flush=True)
build_sixteen(CountingWriter(fails=pay), sys.argv[1])
"""


def start(*arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", BUILD, *map(str, arguments)], env=environment, **pipes)


def lines(file):
    """The whole lines of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def summaries(journal):
    """The keys of the summaries that a journal holds."""
    return {entry["key"] for entry in lines(journal) if "level" in entry}


def call_key(texts):
    return content_key("summary", CountingWriter.identity, texts)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_build_killed_at_random_moments_repeats_no_paid_call(tmp_path, seed):  # bug 9
    chance = random.Random(seed)
    journal, bill = tmp_path / "journal.jsonl", tmp_path / "bill.jsonl"
    kills = 0
    for _ in range(3):
        kept, before = summaries(journal), len(lines(bill))
        with start(journal, bill) as process:
            process.stdout.readline()
            time.sleep(chance.uniform(0, 0.15))
            process.send_signal(signal.SIGKILL)
        kills += process.returncode == -signal.SIGKILL
        assert summaries(journal) >= kept, "a kill lost what was there"
        calls = [call_key(texts) for texts in lines(bill)[before:]]
        assert not kept & set(calls), "a call was repeated"
        assert len(calls) <= len(summaries(journal) - kept) + 1, "only the call under way may be lost"
    assert kills

    kept, writer = summaries(journal), CountingWriter()
    tree = build_sixteen(writer, journal)
    assert len(writer.calls) == 9 - len(kept)
    assert tree.nodes == build_sixteen(CountingWriter(), None).nodes


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
