"""Writing: summaries of clusters from the journal or the writer, in steps if over the cap, with retries."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.runnables import Runnable, RunnableLambda
from tqdm.auto import tqdm

from helpers.recording import Journal, NotRecorded, content_key
from helpers.summaries import pack_in_order

# Rounds of summaries of summaries after which a writer that does not shorten is cut instead.
MAX_STEPS = 4


class SummaryError(RuntimeError):
    """Clusters whose summary could not be written; all others are in the journal."""


@dataclass
class ClusterWriter:
    """Writes the summaries of a level; see `helpers.tree.build_tree` for what its fields mean.

    Raises
    ------
    ValueError
        If the prompt is over the cap before it holds any text.
    """

    summarise: Callable[[list[str]], str] | Runnable
    journal: Journal
    prompt_tokens: Callable[[Sequence[str]], int]
    max_prompt_tokens: int
    retries: int = 2
    backoff: float = 1.0
    progress: bool = False
    what: str = "summary"

    def __post_init__(self):
        is_runnable = isinstance(self.summarise, Runnable)
        self.runnable = self.summarise if is_runnable else RunnableLambda(self.summarise)
        self.batch_size = getattr(self.summarise, "batch_size", 8) if is_runnable else 1
        self.identity = getattr(self.summarise, "identity", "")
        if not self.fits(["x"]):
            raise ValueError(
                f"max_prompt_tokens={self.max_prompt_tokens} leaves no room for text: the prompt of a single "
                f"character has {self.prompt_tokens(['x'])} tokens"
            )

    def fits(self, texts: Sequence[str]) -> bool:
        """Return whether the prompt for these texts is within the cap."""
        return self.prompt_tokens(texts) <= self.max_prompt_tokens

    def summaries(self, clusters: Sequence[list[str]], level: int) -> list[str]:
        """Return one summary a cluster; those over the cap become summaries of summaries first."""
        clusters = list(clusters)
        for _ in range(MAX_STEPS):
            over = [i for i, texts in enumerate(clusters) if not self.fits(texts)]
            if not over:
                return self._written(clusters, level)
            packed = {i: pack_in_order(clusters[i], self.fits) for i in over}
            partial = iter(self._written([group for i in over for group in packed[i]], level))
            for i in over:
                clusters[i] = [next(partial) for _ in packed[i]]
        if not all(map(self.fits, clusters)):
            warnings.warn(
                f"level {level}: after {MAX_STEPS} rounds the writer's summaries are still over the cap; "
                "the first that fit are used",
                stacklevel=3,
            )
        return self._written([pack_in_order(texts, self.fits)[0] for texts in clusters], level)

    def _written(self, clusters, level):
        # What it is stands in the key: the summary of a single text and its gist may be in one journal.
        keys = [content_key(self.what, self.identity, texts) for texts in clusters]
        texts = {key: self.journal.get(key, f"a {self.what} of level {level}") for key in keys}
        missing = {k: c for k, c in zip(keys, clusters, strict=True) if texts[k] is None}
        # Prompts of like length in one batch waste little on padding.
        waiting = sorted(missing, key=lambda key: sum(map(len, missing[key])))
        failures = {}
        with tqdm(
            total=len(waiting), desc=f"level {level}", unit=self.what, disable=not self.progress
        ) as bar:
            for attempt in range(self.retries + 1):
                if attempt and waiting:
                    time.sleep(self.backoff * 2 ** (attempt - 1))
                failures = {}
                for start in range(0, len(waiting), self.batch_size):
                    batch = waiting[start : start + self.batch_size]
                    answers = self.runnable.batch([missing[key] for key in batch], return_exceptions=True)
                    for key, answer in zip(batch, answers, strict=True):
                        if isinstance(answer, str) and answer.strip():
                            texts[key] = answer.strip()
                            self.journal.put(key, texts[key], level=level)
                            bar.update()
                        else:
                            failures[key] = answer
                waiting = list(failures)
        if failures:
            raise _summary_error(failures, missing, level)
        return [texts[key] for key in keys]


def _summary_error(failures, missing, level):
    key, reason = next(iter(failures.items()))
    if isinstance(reason, NotRecorded):
        return reason
    cause = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else "an empty answer"
    first = " ".join(missing[key][0].split())[:60]
    return SummaryError(
        f"level {level}: {len(failures)} of {len(missing)} summaries failed, the first for the cluster of "
        f"{len(missing[key])} texts that begins {first!r} ({cause}). The others are kept: run again to go on"
    )
