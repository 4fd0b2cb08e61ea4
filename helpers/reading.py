"""Reading: in which order the ranked nodes of a tree are read.

An order is a permutation of a ranking; the scores stay those of the ranking.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Literal, get_args

import numpy as np
from langchain_core.documents import Document
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.preprocessing import MultiLabelBinarizer

from helpers.budget import Hit, Ranked
from helpers.keywords import keyword_tokens

Vectors = Callable[[Sequence[str]], np.ndarray]
Reading = Literal[
    "plain", "leaves-first", "bonus", "alternate", "top-first", "summary-first", "mmr", "diverse", "coverage"
]
READINGS: tuple[str, ...] = get_args(Reading)

BONUS, DIVERSE_BONUS = 0.1, 0.15
"""Cosine added to that of summaries in ``bonus``, and in ``diverse``."""
RELEVANCE, DIVERSE_RELEVANCE = 0.6, 0.7
"""Weight of the cosine to the question in ``mmr``, and in ``diverse``; the rest weighs likeness to what was read."""
SPREAD = 0.1
"""In ``coverage``, a hit that is this much less near than the best one gives its words about a third of the weight."""
POOL = 200
"""Hits among which `mmr` and `coverage` choose; those below follow as ranked."""


def ordered(ranked: Ranked, reading: Reading, vectors: Vectors) -> Ranked:
    """Return a ranking in the order of a way of reading.

    Parameters
    ----------
    ranked : iterable of (Document, float)
        Leaves and summaries with their cosines, the best first.
    reading : str
        ``plain``: as ranked (the paper's collapsed tree). ``bonus``: summaries as if their cosine were 0.1 higher.
        ``alternate``: summaries and leaves in turn. ``top-first``: the best node of the highest level, then as
        ranked. ``summary-first``: the best summary of any level, then as ranked. ``leaves-first``: plain RAG, the
        summaries after all leaves. ``mmr``: see `mmr`. ``diverse``: `mmr` with a bonus for summaries of 0.15 and
        more weight for the question. ``coverage``: see `coverage`, ahead of ``plain`` and ``diverse`` on broad
        questions about stories where leaves have gists (``benchmarks/quality.py``).
    vectors : callable
        Ids to unit vectors, shape (n, d), such as `helpers.index.VectorIndex.vectors`; only `mmr` asks it.
    """
    if reading in _WALKS:
        return _WALKS[reading](ranked, vectors)
    return _ORDERS[reading](list(ranked))


def bonus(ranked: Sequence[Hit]) -> list[Hit]:
    """Return hits by their cosine, that of summaries raised by `BONUS`; ties as ranked."""
    return sorted(ranked, key=lambda hit: -round(hit[1] + BONUS * (_level(hit) > 0), 6))


def alternate(ranked: Sequence[Hit]) -> list[Hit]:
    """Return summaries and leaves in turn, a summary first; when one kind ends, the rest of the other."""
    summaries = [hit for hit in ranked if _level(hit) > 0]
    leaves = [hit for hit in ranked if _level(hit) == 0]
    return [hit for pair in zip_longest(summaries, leaves) for hit in pair if hit is not None]


def top_first(ranked: Sequence[Hit]) -> list[Hit]:
    """Return the best hit of the highest level, then the others as ranked."""
    top = max(map(_level, ranked), default=0)
    return _moved_up(ranked, lambda hit: _level(hit) == top > 0)


def summary_first(ranked: Sequence[Hit]) -> list[Hit]:
    """Return the best summary of any level, then the others as ranked."""
    return _moved_up(ranked, lambda hit: _level(hit) > 0)


def leaves_first(ranked: Ranked) -> Iterator[Hit]:
    """Yield leaves as ranked, then summaries."""
    summaries = []
    for hit in ranked:
        if _level(hit) == 0:
            yield hit
        else:
            summaries.append(hit)
    yield from summaries


def mmr(
    ranked: Ranked, vectors: Vectors, relevance: float = RELEVANCE, summary_bonus: float = 0.0
) -> Iterator[Hit]:
    """Yield hits by maximal marginal relevance: near to the question, far from what was read before.

    Carbonell and Goldstein, SIGIR 1998. Ties as ranked; only the first `POOL` hits change places.
    """
    ranked = iter(ranked)
    pool = list(islice(ranked, POOL))
    if not pool:
        return
    units = vectors([document.metadata["id"] for document, _ in pool])
    nearness = relevance * np.array(
        [score + summary_bonus * (_level((node, score)) > 0) for node, score in pool]
    )
    unread, likeness = np.ones(len(pool), dtype=bool), np.full(len(pool), -1.0)
    best = _best_of(unread, nearness)
    for _ in pool:
        yield pool[best]
        unread[best] = False
        likeness = np.maximum(likeness, units @ units[best])
        best = _best_of(unread, nearness - (1 - relevance) * likeness)
    yield from ranked


def coverage(ranked: Ranked) -> Iterator[Hit]:
    """Yield hits so that a context of any length holds as much as it can of the words that matter.

    Which words matter the hits tell: each gives its words, stop words left out, a share of its weight, which falls
    with its cosine (a relevance model; Lavrenko and Croft, SIGIR 2001). Next comes what adds most weight of words
    not yet read for its length (greedy coverage within a budget; Lin and Bilmes, ACL 2011). So it favours texts that
    say much in few words. Ties as ranked; only the first `POOL` hits change places.
    """
    ranked = iter(ranked)
    pool = list(islice(ranked, POOL))
    if not pool:
        return
    tokens = [_tokens(document.page_content) for document, _ in pool]
    lengths = np.array([max(1, len(text)) for text in tokens])
    words = [set(text) - ENGLISH_STOP_WORDS for text in tokens]
    holds = (
        MultiLabelBinarizer().fit_transform(words).astype(float)
    )  # hits by words: 1 where one has the other
    cosines = np.array([score for _, score in pool])
    shares = np.exp((cosines - cosines.max()) / SPREAD) / np.maximum(1, holds.sum(axis=1))
    weights, unread = shares @ holds, np.ones(len(pool), dtype=bool)
    gains = holds @ weights
    for _ in pool:
        best = _best_of(unread, gains / lengths)
        yield pool[best]
        unread[best] = False
        read = np.flatnonzero(holds[best] * weights)
        gains -= holds[:, read] @ weights[read]
        weights[read] = 0
    yield from ranked


def is_covered(document: Document, chosen: Mapping[str, Document]) -> bool:
    """Return whether a document is a summary whose children are all chosen."""
    children = document.metadata.get("children")
    return bool(children) and all(child in chosen for child in children)


def is_told(document: Document, chosen: Mapping[str, Document]) -> bool:
    """Return whether a document is a leaf that a chosen summary or gist was made from."""
    node_id, is_leaf = document.metadata["id"], not document.metadata.get("children")
    return is_leaf and any(node_id in node.metadata.get("children", ()) for node in chosen.values())


# Nodes are met by many questions, and taking words apart is most of the work.
_tokens = lru_cache(maxsize=4096)(keyword_tokens)

# Ways that look at all hits first, and ways that take them as they come.
_ORDERS = {"bonus": bonus, "alternate": alternate, "top-first": top_first, "summary-first": summary_first}
_WALKS = {
    "plain": lambda ranked, _: ranked,
    "leaves-first": lambda ranked, _: leaves_first(ranked),
    "mmr": mmr,
    "diverse": lambda ranked, vectors: mmr(ranked, vectors, DIVERSE_RELEVANCE, DIVERSE_BONUS),
    "coverage": lambda ranked, _: coverage(ranked),
}


def _best_of(unread, gains):
    """Return the row of the unread hit with the most gain (to 6 digits), of equal ones the first as ranked."""
    return int(np.argmax(np.where(unread, np.round(gains, 6), -np.inf)))


def _level(hit):
    return hit[0].metadata.get("level", 0)


def _moved_up(ranked, test):
    best = next((hit for hit in ranked if test(hit)), None)
    return list(ranked) if best is None else [best, *(hit for hit in ranked if hit is not best)]
