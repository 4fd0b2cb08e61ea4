"""The machine that figures were made on."""

import os
import platform
from pathlib import Path


def machine() -> dict:
    """Return what this machine is, without its name."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model
        )
    return {"system": platform.system(), "processor": model, "cores": cores()}


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS, not on Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
