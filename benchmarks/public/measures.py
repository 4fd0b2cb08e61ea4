"""Measures: numbers on what a system put into the context, from the gold passages and the gold answers alone."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from langchain_core.documents import Document
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from helpers.nodes import Tree
from public.sets import Passage, Question

SHORTEST_WORD = 4
_WORD = re.compile(rf"[^\W\d_]{{{SHORTEST_WORD},}}")

Spans = dict[str, list[tuple[int, int]]]
"""Source -> (start, end) in characters of its text."""


def measure(question: Question, hits: Sequence[Document], tree: Tree | None, is_pooled: bool) -> dict:
    """Return every measure that applies to a question.

    Parameters
    ----------
    question : Question
    hits : sequence of Document
        The context.
    tree : Tree, optional
        The one that the hits come from, if any: for lineage.
    is_pooled : bool
        Whether the gold passages are single sentences of a pool of articles, else sections of one document.

    Returns
    -------
    dict of str to float
        With gold sections ``literal, coverage, lineage, lineage coverage``; with gold sentences ``facts, all facts``;
        without gold passages and without options ``words``, of those that references have in common. See the
        functions of this module.
    """
    if question.evidence and is_pooled:
        share = fact_recall(question.evidence, hits)
        return {"facts": share, "all facts": float(share == 1)}
    if question.evidence:
        literal, lineage = leaf_spans(hits), leaf_spans(_leaves_under(hits, tree))
        return {
            "literal": sections_found(question.evidence, literal),
            "coverage": section_coverage(question.evidence, literal),
            "lineage": sections_found(question.evidence, lineage),
            "lineage coverage": section_coverage(question.evidence, lineage),
        }
    gold = common_words(question.answers)
    if question.options or not gold:
        return {}
    return {"words": word_recall(gold, [hit.page_content for hit in hits])}


def leaf_spans(hits: Iterable[Document]) -> Spans:
    """Return where the hits that are text of a document stand in it; summaries stand nowhere."""
    spans: Spans = {}
    for hit in hits:
        if hit.metadata["level"] == 0:
            place = hit.metadata["start"], hit.metadata["end"]
            spans.setdefault(hit.metadata["source"], []).append(place)
    return spans


def sections_found(evidence: Sequence[Passage], spans: Spans) -> float:
    """Return 1 if every gold section is found (see `is_found`), else 0."""
    return float(all(any(is_found(p, *place) for place in spans.get(p.doc_id, ())) for p in evidence))


def is_found(passage: Passage, start: int, end: int) -> bool:
    """Return whether a piece of the document shares with a gold section at least half of the shorter of the two."""
    shared = min(end, passage.end) - max(start, passage.start)
    return shared >= min(end - start, passage.end - passage.start) / 2


def section_coverage(evidence: Sequence[Passage], spans: Spans) -> float:
    """Return the share of the gold sections' words that stand in the context."""
    inside = [
        any(start <= at < end for start, end in spans.get(passage.doc_id, ()))
        for passage in evidence
        for at in (passage.start + word.start() for word in re.finditer(r"\S+", passage.text))
    ]
    return float(np.mean(inside))


def _leaves_under(hits, tree):
    """Return the hits with the leaves under them in the place of summaries."""
    for hit in hits:
        is_summary = tree is not None and hit.metadata["level"] > 0
        yield from tree.leaves(hit.metadata["id"]) if is_summary else [hit]


def fact_recall(evidence: Sequence[Passage], hits: Sequence[Document]) -> float:
    """Return the share of gold sentences that stand verbatim, but for white space, in one of the hits."""
    texts = [_spaced(hit.page_content) for hit in hits]
    return float(np.mean([any(_spaced(passage.text) in text for text in texts) for passage in evidence]))


def _spaced(text):
    return " ".join(text.split())


def word_recall(gold: set[str], texts: Iterable[str]) -> float:
    """Return the share of some content words that stand in the texts."""
    found = {word for text in texts for word in content_words(text)}
    return len(gold & found) / len(gold)


def common_words(answers: Sequence[str]) -> set[str]:
    """Return the content words of two or more references; of a single reference, all of them."""
    counts = Counter(word for answer in answers for word in content_words(answer))
    least = min(2, len(answers))
    return {word for word, count in counts.items() if count >= least}


def content_words(text: str) -> set[str]:
    """Return the words of a text, lower case, of four letters or more and without stop words (sklearn's)."""
    return {word for word in _WORD.findall(text.lower()) if word not in ENGLISH_STOP_WORDS}
