"""Engines: which of those installed runs a GGUF file, the one measured fastest on this machine first."""

import json
import os
from importlib.util import find_spec
from pathlib import Path

from helpers.machine import machine

PACKAGES = {"openvino": "openvino_genai", "llamacpp": "xllamacpp", "transformers": "transformers"}
"""Engine -> package, in the order in which they are tried where nothing was measured."""
LIMIT = 300
"""Seconds for an engine to load a model and write a batch."""


def engines(file: Path) -> list[str]:
    """Return the engines to load a GGUF file with, the fastest first.

    ``WORKBENCH_BACKEND`` leaves one; without it they are in the order measured by `helpers.calibration.calibrate`, and
    OpenVINO comes first where nothing was measured.

    Raises
    ------
    ValueError
        If the environment names an engine that there is not, or that is not installed.
    """
    chosen = os.environ.get("WORKBENCH_BACKEND")
    if chosen and chosen not in PACKAGES:
        raise ValueError(f"no backend {chosen!r}: WORKBENCH_BACKEND is one of {', '.join(PACKAGES)}")
    if chosen and chosen not in installed():
        raise ValueError(f"WORKBENCH_BACKEND is {chosen}, which is not here: pip install {PACKAGES[chosen]}")
    if chosen:
        return [chosen]
    seconds = noted_seconds(file)
    return sorted(installed(), key=lambda engine: seconds.get(engine) or LIMIT)


def installed() -> list[str]:
    """Return the engines whose packages are here."""
    return [engine for engine, package in PACKAGES.items() if find_spec(package)]


def note_of(file: Path) -> Path:
    """Return where the seconds of a model stand, beside its weights."""
    return file.with_suffix(".seconds.json")


def noted_seconds(file: Path) -> dict[str, float | None]:
    """Return the seconds measured on this machine: the folder of the weights may serve several."""
    try:
        note = json.loads(note_of(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return note["seconds for a batch"] if note["machine"] == machine() else {}
