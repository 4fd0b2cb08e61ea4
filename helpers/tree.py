"""Tree: cluster, summarise, and again on the summaries, every paid call in a journal.

Sarthi et al., RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval, ICLR 2024,
arXiv 2401.18059.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable

from helpers.clustering import cluster
from helpers.index import embedder_name
from helpers.nodes import Tree
from helpers.recording import Journal, content_key
from helpers.summaries import join_passages
from helpers.writing import ClusterWriter, SummaryError

__all__ = ["SummaryError", "Tree", "build_tree"]


def build_tree(
    leaves: Sequence[Document],
    embedder: Embeddings,
    summarise: Callable[[list[str]], str] | Runnable,
    journal: Journal | str | Path | None = None,
    *,
    prompt_tokens: Callable[[Sequence[str]], int] | None = None,
    max_prompt_tokens: int = 2000,
    max_levels: int = 3,
    retries: int = 2,
    backoff: float = 1.0,
    progress: bool = False,
    **clustering,
) -> Tree:
    """Build a tree of summaries over leaves.

    Parameters
    ----------
    leaves : sequence of Document
        At least one, with distinct ``id`` and with ``source`` in their metadata (see `helpers.leaves`).
    embedder : Embeddings
    summarise : callable or Runnable
        The texts of a cluster in, their summary out. A Runnable gets its clusters in batches; a plain
        function one by one. An ``identity`` on it keeps summaries of different writers apart in one journal.
    journal : Journal or path, optional
        Clusters and summaries are read from it and written to it: a build that was stopped goes on where it
        was, and one that is repeated makes no call.
    prompt_tokens : callable, optional
        Tokens of the whole prompt for a list of texts; by default ``summarise.prompt_tokens``, else an
        estimate.
    max_prompt_tokens : int
        Cap for `prompt_tokens`. A cluster over it is clustered again, then split in order; a single text
        over it is summarised in steps. Nothing is cut off.
    max_levels : int
        Levels of summaries at the most; fewer once a level has a single node.
    retries, backoff : int, float
        Further tries for a failed or empty summary, and the seconds before the first (doubled each time).
    **clustering
        For `helpers.clustering.cluster`.

    Returns
    -------
    Tree

    Raises
    ------
    ValueError
        If there are no leaves, two share an id, or the cap leaves no room for text.
    SummaryError
        If a summary failed `retries` times more; run again to go on with those alone.
    """
    if not leaves:
        raise ValueError("no leaves to build a tree on: is the corpus empty?")
    if not isinstance(journal, Journal):
        journal = Journal(journal)
    count = getattr(embedder, "count_tokens", _estimate_tokens)
    prompt_tokens = prompt_tokens or getattr(summarise, "prompt_tokens", None)
    prompt_tokens = prompt_tokens or (lambda texts: count(join_passages(texts)))
    writer = ClusterWriter(summarise, journal, prompt_tokens, max_prompt_tokens, retries, backoff, progress)
    tree = Tree(leaf.model_copy(update={"metadata": _leaf_metadata(leaf)}) for leaf in leaves)
    layer = tree.levels[0]
    try:
        for level in range(1, max_levels + 1):
            groups = _group(layer, embedder, journal, writer.fits, clustering)
            texts = writer.summaries([[node.page_content for node in group] for group in groups], level)
            layer = [_summary_node(text, level, group) for text, group in zip(texts, groups, strict=True)]
            for node in layer:
                tree.put(node)
            if len(layer) == 1:
                break
    finally:
        journal.close()  # else a failed build would keep its own repetition out
    return tree


def _group(layer, embedder, journal, fits, options):
    """Return the clusters of a layer as lists of nodes, from the journal where it has them."""
    ids = [node.metadata["id"] for node in layer]
    key = content_key("clusters", embedder_name(embedder), sorted(options.items()), ids)
    rows = journal.get(key, f"the clusters of {len(layer)} nodes")
    if rows is None:
        vectors = np.asarray(embedder.embed_documents([node.page_content for node in layer]))
        texts = [node.page_content for node in layer]
        parts = _capped(np.arange(len(layer)), vectors, texts, fits, options)
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
            parts += _capped(members, vectors, texts, fits, options)
        else:
            parts += _split_in_order(members, texts, fits)
    return parts


def _split_in_order(members, texts, fits):
    """Split a cluster into runs that fit, of two nodes at least (over the cap if those are too long)."""
    runs, run = [], []
    for row in members:
        if len(run) > 1 and not fits([texts[i] for i in [*run, row]]):
            runs.append(run)
            run = []
        run.append(row)
    if len(run) == 1 and runs:
        runs[-1].append(run.pop())
    return [np.array(run) for run in [*runs, run] if run]


def _leaf_metadata(leaf):
    source = leaf.metadata.get("source", "")
    return leaf.metadata | {"level": 0, "source": source, "sources": [source]}


def _summary_node(text, level, group):
    children = [node.metadata["id"] for node in group]
    node_id = content_key("node", level, children, text)[:12]
    sources = list(dict.fromkeys(source for node in group for source in node.metadata["sources"]))
    about = {"id": node_id, "level": level, "children": children, "sources": sources}
    return Document(text, id=node_id, metadata=about)


def _estimate_tokens(text):
    return -(-len(text) // 3)
