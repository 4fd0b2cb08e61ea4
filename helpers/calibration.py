"""Calibration: which engine writes faster on this machine, measured once for each model and noted beside it."""

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from helpers.machine import machine
from helpers.weights import WEIGHTS, weights_folder

# The last one, which everything else is built on, is always there.
PACKAGES = {"openvino": "openvino_genai", "llamacpp": "xllamacpp", "transformers": "transformers"}
ENGINES = tuple(PACKAGES)
"""In the order in which they are tried where nothing was measured."""
LIMIT = 300
"""Seconds for an engine to load the model and write a batch."""
PROMPT = (
    "Summarise in one paragraph: " + "A tree of summaries is searched from its leaves up to its root. " * 20
)


def engines(file: Path) -> list[str]:
    """Return the engines to load a GGUF file with, the fastest first.

    ``WORKBENCH_BACKEND`` leaves one; without it they are in the order measured by `calibrate`, and OpenVINO comes
    first where nothing was measured.
    """
    chosen = os.environ.get("WORKBENCH_BACKEND")
    if chosen and chosen not in ENGINES:
        raise ValueError(f"no backend {chosen!r}: WORKBENCH_BACKEND is one of {', '.join(ENGINES)}")
    if chosen:
        return [chosen]
    seconds = _noted_seconds(file)
    return sorted(_installed(), key=lambda engine: seconds.get(engine) or LIMIT)


def calibrate(model: str) -> str | None:
    """Measure once how fast each engine writes with a model here, and note it beside the weights.

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
    if os.environ.get("WORKBENCH_BACKEND") or len(_installed()) == 1:
        return None
    file = weights_folder() / WEIGHTS[model].file
    seconds = _noted_seconds(file)
    if not seconds:
        seconds = {engine: _measure(model, engine) for engine in _installed()}
        if not any(seconds.values()):
            raise RuntimeError(f"no engine writes with {model} on this machine")
        note = {"machine": machine(), "seconds for a batch": seconds}
        _note(file).write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")
    rates = ", ".join(f"{engine} {f'{took} s' if took else 'none'}" for engine, took in seconds.items())
    return f"{model}: {engines(file)[0]} writes on this machine (the same batch: {rates})"


def batch_seconds(model: str) -> float:
    """Return the seconds for two prompts of 300 tokens, the model being loaded and warm."""
    from helpers.backends import load_gguf  # which chooses by this module

    generate = load_gguf(WEIGHTS[model], {"max_new_tokens": 32, "repetition_penalty": 1.0})
    generate([PROMPT[:200]])
    started = time.perf_counter()
    generate([PROMPT, PROMPT])
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


def _installed():
    return [engine for engine, package in PACKAGES.items() if find_spec(package)]


def _note(file):
    return file.with_suffix(".seconds.json")


def _noted_seconds(file):
    """Return the seconds measured on this machine: the folder of the weights may serve several."""
    try:
        note = json.loads(_note(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note["seconds for a batch"] if note["machine"] == machine() else {}
