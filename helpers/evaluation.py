"""Evaluation: keywords, evidence at an equal token budget, a blind judge, and intervals on all of it."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from langchain_core.documents import Document
from tqdm.auto import tqdm

from helpers.judging import judge_pair, judge_pairs
from helpers.nodes import Tree
from helpers.questions import Evidence, Question
from helpers.rag import INSUFFICIENT, answer_chain, is_abstention

__all__ = [
    "bootstrap_interval",
    "compare",
    "evidence_recall",
    "judge_pair",
    "judge_pairs",
    "keyword_match",
]


def keyword_match(answer: str, keywords: Mapping[str, Sequence[str]] | Sequence[str]) -> bool:
    """Return whether an answer holds every keyword, or one of its aliases, and does not abstain.

    Case and hyphens inside words are folded; a keyword matches whole words and numbers only: ``map`` is not
    in ``mapping``, 100 is neither in 1,100 nor in -100.
    """
    if is_abstention(answer):
        return False
    aliases = keywords if isinstance(keywords, Mapping) else {keyword: () for keyword in keywords}
    text = _folded(answer)
    return all(any(_stands_in(form, text) for form in (keyword, *aliases[keyword])) for keyword in aliases)


def _folded(text):
    text = re.sub("[‐‑‒–—−]", "-", unicodedata.normalize("NFKC", text).casefold())
    # Only between word characters: a minus sign stays.
    return re.sub(r"(?<=\w)-(?=\w)|\s+", " ", text)


def _stands_in(form, folded_text):
    form = _folded(form).strip()
    # A form that begins or ends with a sign, such as "pipeline(" or "-100", ends there by itself.
    before = r"(?<![\w-])(?<!\d[.,])" if form[0].isdigit() else r"(?<!\w)" if form[0].isalnum() else ""
    after = r"(?!\w|[.,]\d)" if form[-1].isdigit() else r"(?!\w)" if form[-1].isalnum() else ""
    return bool(re.search(before + re.escape(form) + after, folded_text))


def evidence_recall(
    evidence: Sequence[Evidence], hits: Sequence[Document], tree: Tree | None = None
) -> float:
    """Return the share of gold quotes that the hits bring.

    Literal (without a tree): the quote's characters are covered by the leaves among the hits, so that it
    stands in the context. By lineage (with a tree): covered by the leaves under the hits, so that a summary
    counts for what it was made from, whether or not it still says it.

    Raises
    ------
    ValueError
        Without evidence there is no recall.
    """
    if not evidence:
        raise ValueError("no evidence to recall: leave unanswerable questions out")
    leaves = hits if tree is None else [leaf for hit in hits for leaf in tree.leaves(hit.metadata["id"])]
    spans = {}
    for leaf in leaves:
        if leaf.metadata["level"] == 0:
            span = leaf.metadata["start"], leaf.metadata["end"]
            spans.setdefault(leaf.metadata["source"], set()).add(span)
    return float(np.mean([_is_covered(quote, spans.get(quote.source, ())) for quote in evidence]))


def _is_covered(quote, spans):
    # Between two tiles of a page there is white space that belongs to neither.
    return all(
        character.isspace() or any(start <= at < end for start, end in spans)
        for at, character in enumerate(quote.quote, quote.start)
    )


def bootstrap_interval(values, resamples: int = 10_000, level: float = 0.95, seed: int = 0):
    """Return the mean of values with a percentile bootstrap interval over questions.

    For a paired difference pass the differences.

    Parameters
    ----------
    values : array of shape (n,)
        At least one.

    Returns
    -------
    (float, float, float)
        Mean, lower and upper bound.
    """
    values = np.asarray(values, dtype=float)
    if not len(values):
        raise ValueError("no values to take an interval of")
    rows = np.random.default_rng(seed).integers(0, len(values), size=(resamples, len(values)))
    low, high = np.quantile(values[rows].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(values.mean()), float(low), float(high)


def compare(
    questions: Sequence[Question], retrievers: Mapping, tree: Tree, writer=None, progress=False
) -> pd.DataFrame:
    """Ask every question of every system.

    Parameters
    ----------
    questions : sequence of Question
    retrievers : mapping of str to BaseRetriever
        Systems by name, all with the same token budget.
    tree : Tree
        For recall by lineage.
    writer : Runnable, optional
        Without one only retrieval is measured.

    Returns
    -------
    DataFrame
        A row a question and system: ``question, kind, system, literal, lineage, levels, tokens``, and with a
        writer ``answer, abstained, keywords``. ``NaN`` where a measure does not apply.
    """
    rows = []
    for system, retriever in retrievers.items():
        texts = [question.text for question in questions]
        if writer is not None:
            answers = answer_chain(retriever, writer).batch(texts)
            found = [answer.hits for answer in answers]
        else:
            found = [retriever.invoke(text) for text in tqdm(texts, desc=system, disable=not progress)]
        for i, (question, hits) in enumerate(zip(questions, found, strict=True)):
            row = _retrieval_row(question, system, hits, tree, retriever.count_tokens)
            if writer is not None:
                row |= _answer_row(question, answers[i])
            rows.append(row)
    return pd.DataFrame(rows)


def _retrieval_row(question, system, hits, tree, count_tokens):
    recall = {"literal": np.nan, "lineage": np.nan}
    if question.evidence:
        recall = {
            "literal": evidence_recall(question.evidence, hits),
            "lineage": evidence_recall(question.evidence, hits, tree),
        }
    levels = [hit.metadata["level"] for hit in hits]
    tokens = sum(count_tokens(hit.page_content) for hit in hits) if count_tokens else np.nan
    about = {"question": question.id, "kind": question.kind, "system": system}
    return about | recall | {"levels": levels, "tokens": tokens}


def _answer_row(question, answer):
    abstained = answer.state == INSUFFICIENT
    passed = float(keyword_match(answer.text, question.keywords)) if question.keywords else np.nan
    return {"answer": answer.text, "abstained": float(abstained), "keywords": passed}
