"""Updates: add leaves to a tree and remove a page from it, writing only the summaries that change."""

from collections.abc import Sequence

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.clustering import cluster
from helpers.index import unit_rows
from helpers.nodes import Tree, leaf_node, summary_node
from helpers.writing import ClusterWriter

# A group of new leaves this large gets a summary of its own; a smaller one joins the nearest cluster.
OWN_CLUSTER = 3


class TreeUpdater:
    """Changes a tree in place; `helpers.tree.build_tree` gives every tree its own.

    New leaves are clustered among themselves and hung beside their nearest cluster, and their ancestors are
    written again: a page costs a few calls however large the tree is. Clusters that are there stay as they
    are, so a tree that has changed a lot should be built anew one day.
    """

    def __init__(self, embedder: Embeddings, writer: ClusterWriter, clustering: dict):
        self._embedder, self._writer, self._clustering = embedder, writer, clustering

    def add(self, tree: Tree, leaves: Sequence[Document]) -> None:
        """Add the leaves that are not in the tree yet, and write the summaries above them."""
        fresh = [leaf_node(leaf) for leaf in leaves if leaf.metadata["id"] not in tree.nodes]
        if not fresh:
            return
        names, children = _plan(tree)
        old_clusters = list(names[0])
        centroids = np.array([self._centroid(tree.children(name)) for name in old_clusters])
        for rows in cluster(self._vectors(fresh), **(self._clustering | {"max_parents": 1})):
            group = [fresh[row] for row in rows]
            ids = [leaf.metadata["id"] for leaf in group]
            nearest = old_clusters[int(np.argmax(centroids @ self._centroid(group)))]
            if len(group) < OWN_CLUSTER:
                children[nearest] += ids
                continue
            name = f"new: {ids[0]}"
            names[0].append(name)
            children[name] = ids
            for parent in tree.parents(nearest)[:1]:
                children[parent.metadata["id"]].append(name)
        self._rewrite(tree, [*tree.levels[0], *fresh], names, children)

    def remove(self, tree: Tree, source: str) -> None:
        """Remove a page's leaves, and write again every summary that was made from one.

        Raises
        ------
        KeyError
            If the tree has no leaf of that source.
        ValueError
            If nothing would be left.
        """
        left = [leaf for leaf in tree.levels[0] if leaf.metadata["source"] != source]
        if len(left) == len(tree.levels[0]):
            raise KeyError(f"no leaf of {source} in the tree")
        if not left:
            raise ValueError(f"{source} is the last page of the tree: delete the tree instead")
        self._rewrite(tree, left, *_plan(tree))

    def _rewrite(self, tree, leaves, names, children):
        """Build the levels from the wanted children of each node; a node whose children stay is kept.

        All summaries are written before the tree changes, so that a failure leaves it as it was.
        """
        nodes = {leaf.metadata["id"]: leaf for leaf in leaves}
        id_now = {leaf_id: leaf_id for leaf_id in nodes}
        for level, level_names in enumerate(names, 1):
            wanted = {
                name: [id_now[child] for child in children[name] if child in id_now] for name in level_names
            }
            wanted = {name: list(dict.fromkeys(ids)) for name, ids in wanted.items() if ids}
            changed = [name for name, ids in wanted.items() if not _is_kept(tree, name, ids)]
            passages = [[nodes[child].page_content for child in wanted[name]] for name in changed]
            texts = dict(zip(changed, self._writer.summaries(passages, level), strict=True))
            for name, ids in wanted.items():
                kept = name not in texts
                node = tree.nodes[name] if kept else summary_node(texts[name], level, [nodes[i] for i in ids])
                nodes[node.metadata["id"]] = node
                id_now[name] = node.metadata["id"]
        self._writer.journal.close()
        tree.replace(nodes.values())

    def _centroid(self, nodes):
        return self._vectors(nodes).mean(axis=0)

    def _vectors(self, nodes):
        return unit_rows(self._embedder.embed_documents([node.page_content for node in nodes]))


def _plan(tree):
    """Return the names of the summaries by level, and the children of each: what a change edits."""
    names = [[node.metadata["id"] for node in level] for level in tree.levels[1:]]
    return names, {name: list(tree.nodes[name].metadata["children"]) for level in names for name in level}


def _is_kept(tree, name, ids):
    return name in tree.nodes and tree.nodes[name].metadata["children"] == ids
