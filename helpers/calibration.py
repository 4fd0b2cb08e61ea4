"""Calibration: how fast each engine writes on this machine, measured once for each model and noted beside it."""

import json
import os
import subprocess
import sys
import time

from helpers.backends import load_gguf
from helpers.engines import LIMIT, engines, installed, note_of, noted_seconds
from helpers.machine import machine
from helpers.weights import WEIGHTS, weights_folder

PROMPT = (
    "Summarise in one paragraph: " + "A tree of summaries is searched from its leaves up to its root. " * 20
)


def calibrate(model: str) -> str | None:
    """Measure how fast each engine writes with a model here, once, and note it beside the weights.

    Each engine loads in a process of its own, so that neither its memory nor its crash is ours. Delete the note
    (``.seconds.json``) to measure anew.

    Parameters
    ----------
    model : str
        A key of `helpers.weights.WEIGHTS`, its file on this machine.

    Returns
    -------
    str or None
        One line on the choice; None where there is none to make.
    """
    if os.environ.get("WORKBENCH_BACKEND") or len(installed()) == 1:
        return None
    file = weights_folder() / WEIGHTS[model].file
    seconds = noted_seconds(file)
    if new := [engine for engine in installed() if engine not in seconds]:
        seconds |= {engine: _measure(model, engine) for engine in new}
        if not any(seconds.values()):
            raise RuntimeError(f"no engine writes with {model} on this machine")
        note = {"machine": machine(), "seconds for a batch": seconds}
        note_of(file).write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    rates = ", ".join(f"{engine} {f'{took} s' if took else 'none'}" for engine, took in seconds.items())
    return f"{model}: {engines(file)[0]} writes on this machine (the same batch: {rates})"


def batch_seconds(model: str) -> float:
    """Return the seconds for four prompts of 300 tokens, the model being loaded and warm."""
    generate = load_gguf(WEIGHTS[model], {"max_new_tokens": 32, "repetition_penalty": 1.0})
    generate([PROMPT[:200]])
    started = time.perf_counter()
    generate([f"{number}. {PROMPT}" for number in range(4)])
    return round(time.perf_counter() - started, 2)


def _measure(model, engine):
    """Return the seconds of an engine; None, with a line on stderr, if it fails or takes too long."""
    command = [
        sys.executable,
        "-c",
        f"from helpers import calibration; print(calibration.batch_seconds({model!r}))",
    ]
    environment = os.environ | {"WORKBENCH_BACKEND": engine}
    print(f"timing {engine} with {model}, once for this machine", file=sys.stderr)
    try:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT)
        return float(result.stdout.split()[-1])
    except subprocess.TimeoutExpired:
        cause = f"it takes over {LIMIT} seconds"
    except (ValueError, IndexError):
        cause = result.stderr.strip().rpartition("\n")[2] or f"it ended with {result.returncode}"
    print(f"{engine} does not write with {model} here: {cause}", file=sys.stderr)
    return None
