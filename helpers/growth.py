"""Growth: a layer is clustered, its clusters are summarised, and so on upwards to a single node."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.clustering import cluster
from helpers.nodes import Tree, gist_node, leaf_node, summary_node
from helpers.recording import content_key
from helpers.vectors import embedder_name
from helpers.writing import ClusterWriter


@dataclass
class TreeBuilder:
    """Grows trees; see `helpers.tree.build_tree` for what its fields mean.

    With ``per_source``, each page has a subtree of its own, and a common top grows on their roots;
    ``max_levels`` then holds for each of them. With ``gist``, each leaf also gets a gist, beside the clusters.
    """

    embedder: Embeddings
    writer: ClusterWriter
    clustering: dict = field(default_factory=dict)
    max_levels: int = 3
    per_source: bool = False
    gist: ClusterWriter | None = None

    def build(self, leaves: Sequence[Document]) -> Tree:
        """Build a tree from nothing."""
        tree = Tree(map(leaf_node, leaves))
        try:
            self.add_gists(tree)
            self.grow_pages(tree, {leaf.metadata["source"] for leaf in tree.levels[0]})
            self.grow_top(tree)
        finally:
            self.writer.journal.close()  # else a failed build would keep its own repetition out
        return tree

    def add_gists(self, tree: Tree) -> None:
        """Put a gist beside each leaf that has none, if leaves have gists."""
        if self.gist is None:
            return
        told = {gist.metadata["children"][0] for gist in tree.gists}
        bare = [leaf for leaf in tree.levels[0] if leaf.metadata["id"] not in told]
        texts = self.gist.summaries([[leaf.page_content] for leaf in bare], level=1)
        for leaf, text in zip(bare, texts, strict=True):
            tree.put(gist_node(text, leaf))

    def grow_pages(self, tree: Tree, sources: Collection[str]) -> None:
        """Grow the subtrees of some pages, if pages have their own; one of a single leaf needs no summary."""
        pages = {}
        for leaf in tree.levels[0] if self.per_source else ():
            pages.setdefault(leaf.metadata["source"], []).append(leaf)
        self.grow(tree, [page for source, page in pages.items() if source in sources and len(page) > 1])

    def grow_top(self, tree: Tree) -> None:
        """Grow summaries over all that has no parent yet."""
        roots = tree.roots
        if len(roots) > 1 or roots[0].metadata["level"] == 0:
            self.grow(tree, [roots])

    def grow(self, tree: Tree, layers: Sequence[list[Document]]) -> None:
        """Add levels of summaries over layers, each until it has a single node.

        No cluster holds nodes of two layers, but the writer gets all clusters of a level together.
        """
        first = 1 + max((node.metadata["level"] for layer in layers for node in layer), default=0)
        for level in range(first, first + self.max_levels):
            if not layers:
                return
            grouped = [self.groups(layer) for layer in layers]
            passages = [[node.page_content for node in group] for groups in grouped for group in groups]
            texts = iter(self.writer.summaries(passages, level))
            layers = [[summary_node(next(texts), level, group) for group in groups] for groups in grouped]
            for layer in layers:
                for node in layer:
                    tree.put(node)
            layers = [layer for layer in layers if len(layer) > 1]

    def groups(self, layer: Sequence[Document]) -> list[list[Document]]:
        """Return the clusters of a layer as lists of nodes, from the journal where it has them.

        A cluster over the prompt's cap is clustered again, then split in order.
        """
        options, journal = self.clustering, self.writer.journal
        ids = [node.metadata["id"] for node in layer]
        key = content_key("clusters", embedder_name(self.embedder), sorted(options.items()), ids)
        rows = journal.get(key, f"the clusters of {len(layer)} nodes")
        if rows is None:
            texts = [node.page_content for node in layer]
            vectors = np.asarray(self.embedder.embed_documents(texts))
            parts = _capped(np.arange(len(layer)), vectors, texts, self.writer.fits, options)
            if len(parts) > max(1, len(layer) // 2):  # a node is in several: keep layers shrinking
                parts = cluster(vectors, **(options | {"max_parents": 1}))
            rows = [list(part) for part in dict.fromkeys(tuple(part.tolist()) for part in parts)]
            journal.put(key, rows)
        return [[layer[row] for row in part] for part in rows]


def _capped(rows, vectors, texts, fits, options):
    """Cluster rows; a cluster over the prompt's cap is clustered again, or split in order if that fails."""
    parts = []
    for part in cluster(vectors[rows], **options):
        members = rows[part]
        if fits([texts[row] for row in members]):
            parts.append(members)
        elif len(members) < len(rows):
            parts += _joined(_capped(members, vectors, texts, fits, options), vectors, texts, fits)
        else:
            parts += _split_in_order(members, texts, fits)
    return parts


def _joined(parts, vectors, texts, fits):
    """Join the parts of a cluster, the smallest to the nearest first, while they fit a prompt together.

    Few rows are clustered finely, and each part costs a call.
    """
    whole, parts = [], sorted(parts, key=len, reverse=True)
    while parts:
        smallest = parts.pop()
        centre = vectors[smallest].mean(axis=0)
        nearness = [float(vectors[part].mean(axis=0) @ centre) for part in parts]
        for other in sorted(range(len(parts)), key=lambda i: -nearness[i]):
            union = np.union1d(parts[other], smallest)
            if fits([texts[row] for row in union]):
                parts[other] = union
                parts.sort(key=len, reverse=True)
                break
        else:
            whole.append(smallest)
    return sorted(whole, key=lambda part: part[0])


def _split_in_order(members, texts, fits):
    """Split a cluster into runs that fit, of two nodes at least (over the cap if those are too long)."""
    runs, run = [], []
    for row in members:
        if len(run) > 1 and not fits([texts[i] for i in [*run, row]]):
            runs.append(run)
            run = []
        run.append(row)
    if len(run) == 1 and runs:
        if len(runs[-1]) > 2:
            run.insert(0, runs[-1].pop())
        else:
            runs[-1].append(run.pop())
    return [np.array(run) for run in [*runs, run] if run]
