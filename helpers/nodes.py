"""Nodes: the tree as a data structure, with children and parents both ways and the sources of every node."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from langchain_core.documents import Document

from helpers.jsonlines import document_rows, read_rows, row_documents, write_rows
from helpers.recording import content_key

FORMAT = "raptor-tree 1"


class Tree:
    """Leaves and summaries by id.

    A node is a LangChain Document. Metadata: ``id``; ``level`` (0 for leaves); ``sources``, the addresses of
    the pages under it; a summary also has ``children``, the ids of what it was made from. A leaf has one
    copy, however many parents it has. A gist says one leaf in short; it has level 1 and ``gist`` in its metadata, and
    stands beside the tree: in `nodes` and `gists`, but not among levels, summaries, parents, ancestors and roots.

    Attributes
    ----------
    nodes : dict of str to Document
        In order of level.
    updater : helpers.updates.TreeUpdater or None
        What `add` and `remove` write with; `helpers.tree.build_tree` sets it, a loaded tree has none.
    """

    def __init__(self, nodes: Iterable[Document]):
        self.nodes: dict[str, Document] = {}
        self._parents: dict[str, list[str]] = {}
        self._gists: dict[str, str] = {}
        self.updater = None
        for node in nodes:
            self.put(node)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        sizes = " -> ".join(str(len(level)) for level in self.levels)
        return f"Tree({sizes}, {len(self.gists)} gists)" if self.gists else f"Tree({sizes})"

    def put(self, node: Document) -> None:
        """Add a node whose children are here already.

        Raises
        ------
        ValueError
            If its id is taken, a child is missing or a gist, or a leaf has a gist already.
        """
        node_id, children = node.metadata["id"], node.metadata.get("children", ())
        if node_id in self.nodes:
            raise ValueError(f"the same id twice: {node_id}")
        missing = [child for child in children if child not in self.nodes]
        if missing:
            raise ValueError(f"node {node_id} has children that are not in the tree: {', '.join(missing)}")
        if any(is_gist(self.nodes[child]) for child in children):
            raise ValueError(f"node {node_id} is made of a gist, and nothing stands on gists")
        if is_gist(node) and children[0] in self._gists:
            raise ValueError(f"a second gist of the leaf {children[0]}: {node_id}")
        self.nodes[node_id] = node
        if is_gist(node):
            self._gists[children[0]] = node_id
            return
        for child in children:
            self._parents.setdefault(child, []).append(node_id)

    def replace(self, nodes: Iterable[Document]) -> None:
        """Take other nodes in place of all that are here; if they are no tree, nothing changes."""
        other = Tree(nodes)
        self.nodes, self._parents, self._gists = other.nodes, other._parents, other._gists

    def add(self, leaves: Sequence[Document]) -> None:
        """Add leaves and write the summaries above them; see `helpers.updates.TreeUpdater.add`."""
        self._updater().add(self, leaves)

    def remove(self, source: str) -> None:
        """Remove a page and all that was written from it; see `helpers.updates.TreeUpdater.remove`."""
        self._updater().remove(self, source)

    @property
    def levels(self) -> list[list[Document]]:
        """Nodes by level: ``levels[0]`` are the leaves."""
        nodes = [node for node in self.nodes.values() if not is_gist(node)]
        top = max((node.metadata["level"] for node in nodes), default=-1)
        levels: list[list[Document]] = [[] for _ in range(top + 1)]
        for node in nodes:
            levels[node.metadata["level"]].append(node)
        return levels

    @property
    def summaries(self) -> list[Document]:
        """Nodes above the leaves, in order of level."""
        return [node for level in self.levels[1:] for node in level]

    @property
    def gists(self) -> list[Document]:
        """The gists of leaves, in the order of the leaves."""
        return [self.nodes[self._gists[leaf]] for leaf in self.nodes if leaf in self._gists]

    @property
    def roots(self) -> list[Document]:
        """Nodes without a parent."""
        return [
            node
            for node_id, node in self.nodes.items()
            if not self._parents.get(node_id) and not is_gist(node)
        ]

    def children(self, node_id: str) -> list[Document]:
        """Nodes that a summary was made from; none for a leaf."""
        return [self.nodes[child] for child in self._node(node_id).metadata.get("children", ())]

    def parents(self, node_id: str) -> list[Document]:
        """Summaries that were made from a node."""
        self._node(node_id)
        return [self.nodes[parent] for parent in self._parents.get(node_id, ())]

    def leaves(self, node_id: str) -> list[Document]:
        """Leaves under a node, each once, in tree order; a leaf's own is itself."""
        return [node for node in self.descendants(node_id) if node.metadata["level"] == 0]

    def descendants(self, node_id: str) -> list[Document]:
        """A node and all that it was made from, each once."""
        seen: dict[str, Document] = {}
        waiting = [self._node(node_id)]
        while waiting:
            node = waiting.pop()
            if node.metadata["id"] in seen:
                continue
            seen[node.metadata["id"]] = node
            waiting += reversed(self.children(node.metadata["id"]))
        return list(seen.values())

    def ancestors(self, node_id: str) -> list[Document]:
        """Summaries that a node went into, directly or not, each once, the lowest first."""
        seen: dict[str, Document] = {}
        waiting = self.parents(node_id)
        while waiting:
            node = waiting.pop(0)
            if node.metadata["id"] not in seen:
                seen[node.metadata["id"]] = node
                waiting += self.parents(node.metadata["id"])
        return list(seen.values())

    def sources(self, node_id: str) -> list[str]:
        """Addresses of the pages under a node, in tree order, each once."""
        return list(dict.fromkeys(leaf.metadata["source"] for leaf in self.leaves(node_id)))

    def save(self, path: str | Path) -> None:
        """Write the tree as JSON lines: a header, then a node a line, children before parents."""
        header = {"format": FORMAT, "nodes": len(self)}
        write_rows(path, [header, *document_rows(self.nodes.values())])

    @classmethod
    def load(cls, path: str | Path) -> "Tree":
        """Read a tree that `save` wrote.

        Raises
        ------
        ValueError
            If the file is not a whole tree.
        """
        path = Path(path)
        try:
            header, *rows = read_rows(path)
            if header["format"] != FORMAT or header["nodes"] != len(rows):
                raise ValueError(f"expected {FORMAT} with {header.get('nodes')} nodes, found {len(rows)}")
            return cls(row_documents(rows))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path.name} is not a whole tree ({error}): build it again") from error

    def _node(self, node_id: str) -> Document:
        if node_id not in self.nodes:
            raise KeyError(f"no node {node_id!r} in the tree")
        return self.nodes[node_id]

    def _updater(self):
        if self.updater is None:
            raise ValueError(
                "this tree has no updater, since it was not built here: set tree.updater = "
                "TreeUpdater(embedder, ClusterWriter(summarise, journal, prompt_tokens, max_prompt_tokens)), of "
                "helpers.updates and helpers.writing, with per_source and gist as it was built, or build it with "
                "build_tree (its journal makes that free)"
            )
        return self.updater


def leaf_node(leaf: Document) -> Document:
    """Return a copy of a leaf with the metadata of a node: ``level`` 0, ``source`` and ``sources``."""
    source = leaf.metadata.get("source", "")
    about = leaf.metadata | {"level": 0, "source": source, "sources": [source]}
    return leaf.model_copy(update={"metadata": about})


def summary_node(text: str, level: int, group: Sequence[Document]) -> Document:
    """Return the node of a group's summary. Its id hashes level, children and text."""
    children = [node.metadata["id"] for node in group]
    node_id = content_key("node", level, children, text)[:12]
    sources = list(dict.fromkeys(source for node in group for source in node.metadata["sources"]))
    about = {"id": node_id, "level": level, "children": children, "sources": sources}
    return Document(text, id=node_id, metadata=about)


def gist_node(text: str, leaf: Document) -> Document:
    """Return the node of a leaf's gist. Its id hashes leaf and text."""
    leaf_id = leaf.metadata["id"]
    node_id = content_key("gist", leaf_id, text)[:12]
    about = {
        "id": node_id,
        "level": 1,
        "children": [leaf_id],
        "sources": leaf.metadata["sources"],
        "gist": True,
    }
    return Document(text, id=node_id, metadata=about)


def is_gist(node: Document) -> bool:
    """Return whether a node is the gist of a leaf."""
    return node.metadata.get("gist", False)
