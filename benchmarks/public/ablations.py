"""Ablations: trees and vectors with one idea of RAPTOR taken out or another put in."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.embedding import WindowEmbedder
from helpers.growth import TreeBuilder
from helpers.nodes import Tree
from helpers.vectors import unit_rows


@dataclass
class ContiguousBuilder(TreeBuilder):
    """Grows a tree whose clusters are runs of neighbours, as many at each level as another tree has.

    The paper's own ablation of its clustering (section 4, "contribution of the tree structure").
    """

    sizes: Sequence[int] = ()
    """Nodes at each level of the other tree, the leaves first."""

    def groups(self, layer: Sequence[Document], **options) -> list[list[Document]]:
        count = self.sizes[layer[0].metadata["level"] + 1]
        return [[layer[row] for row in rows] for rows in np.array_split(np.arange(len(layer)), count)]


class LineageEmbedder(Embeddings):
    """Embeds a summary of a tree half by its text and half by the leaves under it."""

    def __init__(self, embedder: WindowEmbedder, tree: Tree):
        self._embedder = embedder
        self._leaves = {
            node.page_content: [leaf.page_content for leaf in tree.leaves(node.metadata["id"])]
            for node in tree.summaries
        }

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector a text; those of leaves are the embedder's own."""
        return [self._vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the embedder's own vector."""
        return self._embedder.embed_query(text)

    def _vector(self, text):
        own, *leaves = unit_rows(self._embedder.embed_documents([text, *self._leaves.get(text, ())]))
        return own + unit_rows([np.mean(leaves, axis=0)])[0] if leaves else own
