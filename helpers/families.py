"""Families: pages cut twice, into parents to be read and into small children to be searched."""

from collections.abc import Callable, Sequence

from langchain_core.documents import Document

from helpers.leaves import split_leaves


def split_families(
    pages: Sequence[Document],
    count_tokens: Callable[[str], int],
    parent_tokens: int = 400,
    child_tokens: int = 60,
) -> tuple[dict[str, Document], list[Document]]:
    """Split pages into parents, and each parent into children.

    Both tile their page without overlap: an overlap would bring the same sentence with two parents. Only
    children are embedded, so a parent may be longer than the embedder reads.

    Parameters
    ----------
    pages : sequence of Document
        With ``source`` in their metadata.
    count_tokens : callable
    parent_tokens, child_tokens : int
        Limits in tokens; ``child_tokens <= parent_tokens``.

    Returns
    -------
    parents : dict of str to Document
        By id, in page order, with the metadata of leaves.
    children : list of Document
        Likewise, and ``parent``, the parent's id. ``start`` and ``end`` are characters in the page, as for
        parents.
    """
    if child_tokens > parent_tokens:
        raise ValueError(f"children of {child_tokens} tokens do not fit into parents of {parent_tokens}")
    parents = split_leaves(pages, count_tokens, parent_tokens, overlap=0)
    children = [child for parent in parents for child in _children(parent, count_tokens, child_tokens)]
    return {parent.metadata["id"]: parent for parent in parents}, children


def _children(parent, count_tokens, child_tokens):
    parent_id, offset = parent.metadata["id"], parent.metadata["start"]
    children = split_leaves([parent], count_tokens, child_tokens, overlap=0)
    for number, child in enumerate(children):
        # The parent's id and a number: a parent of one child has the same text, and must not share its id.
        child.id = f"{parent_id}.{number}"
        place = {"start": child.metadata["start"] + offset, "end": child.metadata["end"] + offset}
        child.metadata |= {"id": child.id, "parent": parent_id, **place}
    return children
