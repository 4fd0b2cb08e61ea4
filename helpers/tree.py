"""Tree: cluster, summarise, and again on the summaries, every paid call in a journal.

Sarthi et al., RAPTOR: Recursive Abstractive Processing for Tree-Organized Retrieval, ICLR 2024,
arXiv 2401.18059.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import Runnable

from helpers.nodes import Tree
from helpers.recording import Journal
from helpers.summaries import join_passages
from helpers.updates import TreeUpdater
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
    per_source: bool = False,
    gist: Callable[[list[str]], str] | Runnable | None = None,
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
        Levels of clusters at the most; fewer once a level has a single node.
    per_source : bool
        Whether each page gets a subtree of its own, under a common top: clusters over the whole corpus may mix
        pages that use the same words for different things. `max_levels` then holds for the subtrees and for
        the top.
    gist : callable or Runnable, optional
        One leaf's text in (a list of one), its gist in a sentence out. If given, each leaf also has a gist, beside
        the clusters, which are made of leaves as without it: a budget holds several gists for one leaf (three on
        stories), and so more of what a whole text tells (``benchmarks/quality.py``). Gists after Lee et al., A
        Human-Inspired Reading Agent with Gist Memory of Very Long Contexts, ICML 2024.
    retries, backoff : int, float
        Further tries for a failed or empty summary, and the seconds before the first (doubled each time).
    **clustering
        For `helpers.clustering.cluster`.

    Returns
    -------
    Tree
        Its `add` and `remove` write with the same models, journal and options.

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

    def writer(write, what):
        tokens = prompt_tokens or getattr(write, "prompt_tokens", None)
        tokens = tokens or (lambda texts: count(join_passages(texts)))
        return ClusterWriter(write, journal, tokens, max_prompt_tokens, retries, backoff, progress, what)

    gists = None if gist is None else writer(gist, "gist")
    updater = TreeUpdater(embedder, writer(summarise, "summary"), clustering, max_levels, per_source, gists)
    tree = updater.build(leaves)
    tree.updater = updater
    return tree


def _estimate_tokens(text):
    return -(-len(text) // 3)
