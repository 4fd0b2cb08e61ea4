"""Timing: seconds of a call, milliseconds of a question."""

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from langchain_core.retrievers import BaseRetriever


def timed(function: Callable, *arguments) -> tuple[Any, float]:
    """Return what a call returns, and its seconds."""
    started = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - started


def milliseconds(retriever: BaseRetriever, questions: Sequence[str]) -> float:
    """Return the median milliseconds of asking each question."""
    return round(1000 * median(timed(retriever.invoke, question)[1] for question in questions), 1)
