"""Updates: add leaves to a tree and remove a page from it, writing only the summaries that change."""

from collections.abc import Sequence

import numpy as np
from langchain_core.documents import Document

from helpers.growth import TreeBuilder
from helpers.index import VectorIndex
from helpers.nodes import Tree, leaf_node, summary_node
from helpers.vectors import unit_rows

# A group of new nodes this large gets a summary of its own; a smaller one joins the nearest cluster.
OWN_CLUSTER = 3


class TreeUpdater(TreeBuilder):
    """Builds trees and changes them in place.

    New leaves are clustered among themselves, and a cluster of them joins the nearest old one or hangs beside
    it; the ancestors are written again, so a page costs a few calls however large the tree is. A cluster left
    with one leaf is given up, and that leaf placed like a new one; one that has grown over the prompt's cap is
    parted. All other clusters stay as they are: where more than half is to be placed, the top is built anew, and
    a tree that changed slowly by as much should be.

    With ``per_source``, a page's subtree is built anew when that page changes, and what is said of leaves holds
    for the roots of the subtrees.
    """

    def add(self, tree: Tree, leaves: Sequence[Document]) -> None:
        """Add the leaves that are not in the tree yet.

        Raises
        ------
        ValueError
            If an id stands for two texts.
        """
        known = {leaf.metadata["id"]: leaf for leaf in tree.levels[0]}
        fresh = set()
        for leaf in map(leaf_node, leaves):
            same = known.setdefault(leaf.metadata["id"], leaf)
            if same is leaf:
                fresh.add(leaf.metadata["source"])
            elif (same.page_content, same.metadata["source"]) != (leaf.page_content, leaf.metadata["source"]):
                raise ValueError(
                    f"two texts with the id {leaf.metadata['id']}: remove the old page before the new is added"
                )
        if fresh:
            self._change(tree, list(known.values()), fresh)

    def remove(self, tree: Tree, source: str) -> None:
        """Remove a page's leaves, and all that was written from them.

        Raises
        ------
        KeyError
            If the tree has no leaf of that source.
        ValueError
            If nothing would be left.
        """
        left = [leaf for leaf in tree.levels[0] if leaf.metadata["source"] != source]
        if len(left) == len(tree.levels[0]):
            raise KeyError(f"no leaf of {source!r} in the tree")
        if not left:
            raise ValueError(f"{source} is the last page of the tree, and a tree has at least one leaf")
        self._change(tree, left, {source})

    def _change(self, tree, leaves, sources):
        """Make a tree stand on other leaves, of which some sources changed; it is left alone until all is written."""
        self._check_gists(tree)
        left = {leaf.metadata["id"] for leaf in leaves}
        gists = [gist for gist in tree.gists if gist.metadata["children"][0] in left]
        pages = [node for node in tree.summaries if not self._is_top(node)]
        base = Tree(
            [*leaves, *gists, *(page for page in pages if page.metadata["sources"][0] not in sources)]
        )
        try:
            self.add_gists(base)
            self.grow_pages(base, sources)
            levels, children, strays = self._plan(tree, base)
            if not levels[0] or 2 * len(strays) > len(base.roots):
                self.grow_top(base)
            else:
                self._place(strays, tree, levels, children)
                self._rewrite(tree, base, levels, children)
        finally:
            self.writer.journal.close()
        tree.replace(sorted(base.nodes.values(), key=lambda node: node.metadata["level"]))

    def _check_gists(self, tree):
        """Refuse a tree that has gists where this updater has no writer for them, or the other way round."""
        if bool(tree.gists) != (self.gist is not None):
            raise ValueError(
                "the tree has gists of its leaves: give its TreeUpdater a writer for them (gist=ClusterWriter(...))"
                if tree.gists
                else "the tree has no gists of its leaves, but its TreeUpdater a writer for them: build it anew"
            )

    def _is_top(self, node):
        """Return whether a node is a summary of several pages' subtrees or, without these, of anything."""
        return node.metadata["level"] > 0 and not (self.per_source and len(node.metadata["sources"]) == 1)

    def _plan(self, tree, base):
        """Return the top's summaries by level, the wanted children of each, and the nodes that no cluster has.

        A summary goes by its id in the tree as it was.
        """
        tops = [[node.metadata["id"] for node in level if self._is_top(node)] for level in tree.levels]
        lowest, *upper = [level for level in tops if level] or [[]]
        children = {name: tree.nodes[name].metadata["children"] for level in upper for name in level}
        roots = {node.metadata["id"]: node for node in base.roots}
        for name in lowest:
            left = [child for child in tree.nodes[name].metadata["children"] if child in roots]
            if len(left) > 1:
                children[name] = left
        placed = {child for ids in children.values() for child in ids}
        strays = [node for node_id, node in roots.items() if node_id not in placed]
        return [[name for name in lowest if name in children], *upper], children, strays

    def _place(self, strays, tree, levels, children):
        """Write nodes that no cluster has into the plan."""
        if not strays:
            return
        clusters = levels[0]
        centres = self._vectors([tree.nodes[name] for name in clusters])
        for number, group in enumerate(self.groups(strays)):
            ids = [node.metadata["id"] for node in group]
            nearest = clusters[int(np.argmax(centres @ self._vectors(group).mean(axis=0)))]
            if len(ids) < OWN_CLUSTER:
                children[nearest] = children[nearest] + ids
            else:
                children[f"new {number}"] = ids
                self._put_beside(nearest, f"new {number}", levels, children)

    def _put_beside(self, name, new, levels, children, number=0):
        """Give a new cluster a place in the plan beside another one: under its parent, or both under a new root."""
        if len(levels) == number + 1 < self.max_levels:
            root = f"new root {number + 2}"
            levels.append([root])
            children[root] = list(levels[number])
        levels[number] = [*levels[number], new]
        above = levels[number + 1] if number + 1 < len(levels) else []
        parent = next((parent for parent in above if name in children[parent]), None)
        if parent:
            children[parent] = [*children[parent], new]

    def _rewrite(self, tree, base, levels, children):
        """Put the planned summaries on the base; one of the same passages keeps its text."""
        id_now = {node_id: node_id for node_id in base.nodes}
        first = 1 + max(node.metadata["level"] for node in base.roots)
        for number, names in enumerate(levels):
            if len(base.roots) == 1:
                return
            wanted = {name: dict.fromkeys(id_now[i] for i in children[name] if i in id_now) for name in names}
            groups = {name: [base.nodes[i] for i in ids] for name, ids in wanted.items() if ids}
            groups = self._parted(groups, tree, levels, children, number)
            changed = [name for name, group in groups.items() if not _same(tree, name, group)]
            written = self.writer.summaries([_passages(groups[name]) for name in changed], first + number)
            texts = dict(zip(changed, written, strict=True))
            for name, group in groups.items():
                text = texts[name] if name in texts else tree.nodes[name].page_content
                node = summary_node(text, first + number, group)
                id_now[name] = node.metadata["id"]
                if node.metadata["id"] not in base.nodes:  # two clusters may have become one
                    base.put(node)

    def _parted(self, groups, tree, levels, children, number):
        """Return clusters with those that have grown over the prompt's cap in parts, the first by the old name."""
        parted = {}
        for name, group in groups.items():
            parted[name] = group
            if _same(tree, name, group) or len(group) <= 2 or self.writer.fits(_passages(group)):
                continue
            parted[name], *others = self.groups(group)
            for part, other in enumerate(others, 2):
                new = f"{name}, part {part}"
                parted[new] = other
                self._put_beside(name, new, levels, children, number)
        return parted

    def _vectors(self, nodes):
        return unit_rows(self.embedder.embed_documents(_passages(nodes)))


def follow(index: VectorIndex, tree: Tree) -> None:
    """Make an index hold the nodes of a tree that changed: embed those that are new, drop those that are gone."""
    index.add([node for node_id, node in tree.nodes.items() if node_id not in index])
    ids = [document.metadata["id"] for document in index.documents]
    index.remove([node_id for node_id in ids if node_id not in tree.nodes])


def _passages(nodes):
    return [node.page_content for node in nodes]


def _same(tree, name, group):
    return name in tree.nodes and _passages(tree.children(name)) == _passages(group)
