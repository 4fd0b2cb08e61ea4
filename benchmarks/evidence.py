"""Evidence: which gold sections the hits of a changed tree bring, and those of trees built anew.

A section is found by a leaf (`public.measures.is_found`): ``literal`` if the leaf is a hit, ``lineage`` if it is a hit
or under one.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from helpers.evaluation import bootstrap_interval
from helpers.nodes import Tree
from public.measures import is_found
from public.sets import Question

MEASURES = ("literal", "lineage")


def is_answerable(question: Question, leaves: Mapping[str, Sequence[Document]]) -> bool:
    """Return whether each gold section of a question can be found among leaves by source."""
    return all(
        any(_is_found(passage, leaf) for leaf in leaves.get(passage.doc_id, ()))
        for passage in question.evidence
    )


def shares_found(
    questions: Sequence[Question], retriever: BaseRetriever, tree: Tree
) -> dict[str, list[float]]:
    """Return for each measure and question the share of its gold sections that is found."""
    shares = {name: [] for name in MEASURES}
    for question in questions:
        hits = retriever.invoke(question.text)
        under = [leaf for hit in hits for leaf in tree.leaves(hit.metadata["id"])]
        literal = [hit for hit in hits if hit.metadata["level"] == 0]
        for name, leaves in zip(MEASURES, (literal, under), strict=True):
            found = [any(_is_found(passage, leaf) for leaf in leaves) for passage in question.evidence]
            shares[name].append(sum(found) / len(found))
    return shares


def _is_found(passage, leaf):
    about = leaf.metadata
    return about["source"] == passage.doc_id and is_found(passage, about["start"], about["end"])


def compare(changed: Sequence[float], *rebuilt: Sequence[float]) -> dict:
    """Return the recall of a changed tree and of rebuilds, and the changed minus their mean, in points.

    Rebuilds differ in nothing but the seed of the clustering: what they differ by is no loss of the changed one.
    """
    differences = 100 * (np.array(changed) - np.mean(rebuilt, axis=0))
    mean, low, high = bootstrap_interval(differences)
    return {
        "changed": round(float(np.mean(changed)), 4),
        "rebuilt": [round(float(np.mean(found)), 4) for found in rebuilt],
        "difference, points": round(mean, 2),
        "95 % interval": [round(low, 2), round(high, 2)],
    }


def compare_all(runs: list[dict]) -> dict:
    """Return the differences of all runs together, and how far rebuilds lie apart, in points."""
    result = {}
    for name in MEASURES:
        differences = [run[name]["difference, points"] for run in runs]
        apart = [100 * (max(run[name]["rebuilt"]) - min(run[name]["rebuilt"])) for run in runs]
        result[name] = {
            "mean difference, points": round(float(np.mean(differences)), 2),
            "from": min(differences),
            "to": max(differences),
            "rebuilds apart, mean": round(float(np.mean(apart)), 2),
        }
    return result
