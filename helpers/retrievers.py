"""Retrievers: leaves, keywords, fusion, families, trees; all read up to k hits or a token budget."""

import warnings
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from typing import Literal

from langchain_core.documents import Document
from pydantic import Field

from helpers.budget import BudgetRetriever, Ranked, Ranker
from helpers.index import VectorIndex
from helpers.keywords import KeywordIndex, rrf
from helpers.nodes import Tree, is_gist
from helpers.reading import POOL, Reading, is_covered, is_told, ordered
from helpers.scope import Scope


class LeafRetriever(BudgetRetriever):
    """Plain RAG: the leaves nearest to the question."""

    index: VectorIndex

    def ranked(self, question: str) -> Ranked:
        return self.index.ranked(question, where={"level": 0})


class KeywordRetriever(BudgetRetriever):
    """The documents that share words with the question, by BM25."""

    index: KeywordIndex

    def ranked(self, question: str) -> Ranked:
        return self.index.ranked(question)


class FusionRetriever(BudgetRetriever):
    """Several rankings, each read to a depth, joined by reciprocal rank fusion.

    Of the retrievers only the rankings are used, not their own limits. A hit's score is its fused sum.
    """

    retrievers: list[Ranker]
    depth: int = Field(default=100, ge=1)

    def ranked(self, question: str) -> Iterator[tuple[Document, float]]:
        documents, rankings = {}, []
        for retriever in self.retrievers:
            found = [document for document, _ in islice(retriever.ranked(question), self.depth)]
            rankings.append([document.metadata["id"] for document in found])
            documents = {document.metadata["id"]: document for document in found} | documents
        return ((documents[document_id], score) for document_id, score in rrf(rankings))


class ParentChildRetriever(BudgetRetriever):
    """Small children are searched, their whole parents returned: once, in the order of their best child.

    A child whose parent is missing is reported by a warning and returned itself.

    Parameters
    ----------
    index : Ranker
        Over the children, which name their parent in ``parent``. A `FusionRetriever` will do as well.
    parents : mapping of str to Document
    max_parents : int, optional
        Hits at most, beside the token budget, so that a whole document never ends up in the prompt.
    """

    index: Ranker
    parents: Mapping[str, Document]
    max_parents: int | None = Field(default=None, ge=1)

    def ranked(self, question: str) -> Iterator[tuple[Document, float]]:
        seen = set()
        for child, score in self.index.ranked(question):
            document = self._parent_or_self(child)
            if document.metadata["id"] not in seen:
                seen.add(document.metadata["id"])
                yield document, score

    def _parent_or_self(self, child):
        parent_id = child.metadata.get("parent")
        if parent_id in self.parents:
            return self.parents[parent_id]
        name = child.metadata["id"]
        warnings.warn(f"the parent {parent_id!r} of {name} is missing: the child stands in", stacklevel=2)
        return child

    def _chosen(self, ranked):
        return islice(super()._chosen(ranked), self.max_parents)


class CollapsedTreeRetriever(BudgetRetriever):
    """RAPTOR's collapsed tree: leaves and summaries of all levels in one ranking.

    Parameters
    ----------
    index : VectorIndex
        Over all nodes of the tree.
    reading : str
        The order in which the ranking is read: ``plain`` as in the paper (section 3, up to 2,000 tokens), or
        another of `helpers.reading.ordered`. With ``by-scope``, the question decides: a broad one
        (`helpers.scope`) is read for ``coverage`` where gists are among the nearest nodes, else ``diverse``; a
        narrow one ``leaves-first``.
    skip_covered : bool
        Whether a summary is skipped whose children are all chosen already.
    skip_told : bool
        Whether a leaf is skipped of which a summary or the gist is chosen already.
    """

    index: VectorIndex
    reading: Reading | Literal["by-scope"] = "by-scope"
    skip_covered: bool = False
    skip_told: bool = False

    @cached_property
    def _scope(self):
        return Scope(self.index.embedder)

    def ranked(self, question: str) -> Ranked:
        vector = self.index.question_vector(question)
        ranked = self.index.ranked(vector)
        if self.reading != "by-scope":
            return ordered(ranked, self.reading, self.index.vectors)
        if not self._scope.is_broad(vector):
            return ordered(ranked, "leaves-first", self.index.vectors)
        nearest = list(islice(ranked, POOL))
        reading = "coverage" if any(is_gist(node) for node, _ in nearest) else "diverse"
        return ordered(chain(nearest, ranked), reading, self.index.vectors)

    def _is_waste(self, document, chosen):
        covered = self.skip_covered and is_covered(document, chosen)
        return covered or (self.skip_told and is_told(document, chosen))


class TreeTraversalRetriever(BudgetRetriever):
    """RAPTOR's second way of reading: the best roots, then the best of their children, down to the leaves.

    Parameters
    ----------
    tree : Tree
    index : VectorIndex
        Over all nodes of the tree.
    width : int
        Nodes kept at each level.
    """

    tree: Tree
    index: VectorIndex
    width: int = 5

    def ranked(self, question: str) -> Iterator[tuple[Document, float]]:
        scores = {document.metadata["id"]: score for document, score in self.index.ranked(question)}
        level = {node.metadata["id"]: node for node in self.tree.roots}
        while level:
            best = sorted(level, key=lambda node_id: (-round(scores[node_id], 6), node_id))[: self.width]
            yield from ((level[node_id], scores[node_id]) for node_id in best)
            level = {child.metadata["id"]: child for node_id in best for child in self.tree.children(node_id)}
