"""Drill down: from a summary to the sentences it was made from, and what it says that they do not."""

import re
from dataclasses import dataclass

from langchain_core.documents import Document

from helpers.nodes import Tree

# Numbers, names with an underscore or a capital inside them, calls, and dotted names: what a reader would copy.
_EXACT = re.compile(
    r"\b(?:\w+(?:_\w+)+|\w{2,}(?:\.\w{2,})+|\w+(?=\(\))|[A-Z]\w*[a-z]\w*[A-Z]\w*|[A-Z]{2,}\w*|\d[\d,.]*\d|\d)\b"
)

_LIST_NUMBER = re.compile(r"^\s*\d+\.\s", re.MULTILINE)


@dataclass(frozen=True)
class Passage:
    """A leaf under a summary: characters ``start`` to ``end`` of the page at ``source``."""

    source: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class DrillDown:
    """A summary with all that it stands on.

    Attributes
    ----------
    node : Document
    children : list of Document
        What it was made from.
    passages : list of Passage
        The leaves under it, by address and place.
    unsupported : list of str
        Numbers, names and code identifiers of the summary that stand in none of these leaves.
    """

    node: Document
    children: list[Document]
    passages: list[Passage]
    unsupported: list[str]

    @property
    def sources(self) -> list[str]:
        """Addresses of the pages under the summary."""
        return list(dict.fromkeys(passage.source for passage in self.passages))


def drill_down(tree: Tree, node_id: str) -> DrillDown:
    """Return children, leaves with their addresses and character ranges, and the unsupported names of a summary."""
    leaves = [leaf for leaf in tree.leaves(node_id) if "start" in leaf.metadata]
    passages = [
        Passage(leaf.metadata["source"], leaf.metadata["start"], leaf.metadata["end"], leaf.page_content)
        for leaf in leaves
    ]
    passages.sort(key=lambda passage: (passage.source, passage.start))
    return DrillDown(tree.nodes[node_id], tree.children(node_id), passages, unsupported_names(tree, node_id))


def unsupported_names(tree: Tree, node_id: str) -> list[str]:
    """Return the numbers, names and code identifiers of a node that stand in none of its leaves, in order.

    Figures and exceptions of a summary are to be checked against the originals: the paper found something that is
    not in the children in 4 % of its summaries. A name that is only written differently is listed too; invented
    plain words are not seen.
    """
    text = _LIST_NUMBER.sub("", tree.nodes[node_id].page_content)
    below = {name for leaf in tree.leaves(node_id) for name in _EXACT.findall(leaf.page_content)}
    return [name for name in dict.fromkeys(_EXACT.findall(text)) if name not in below]


def unsupported_summaries(tree: Tree) -> dict[str, list[str]]:
    """Return the unsupported names of every summary and gist that has some, by id."""
    ids = [node.metadata["id"] for node in tree.summaries + tree.gists]
    found = {node_id: unsupported_names(tree, node_id) for node_id in ids}
    return {node_id: names for node_id, names in found.items() if names}
