"""Corpora: what one search runs over (a document, or a pool of them), each part built when first asked for."""

import time
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from langchain_core.documents import Document

from helpers.families import split_families
from helpers.graph import KnowledgeGraph
from helpers.index import VectorIndex
from helpers.keywords import KeywordIndex
from helpers.leaves import split_leaves
from helpers.nodes import Tree
from helpers.recording import Journal, content_key
from helpers.tree import build_tree
from public.ablations import ContiguousBuilder, LineageEmbedder
from public.articles import article_graph
from public.settings import Settings

CLUSTERED, CONTIGUOUS, GISTS, WITH_GISTS = "clustered", "contiguous", "gists", "clustered, with gists"
"""Kinds of trees: over clusters of leaves, over runs of leaves, gists of leaves alone, clusters and gists together."""


class Corpus:
    """Leaves, trees and indexes over some pages.

    Parameters
    ----------
    pages : sequence of Document
    settings : Settings
    journal : path
        Clusters, summaries and seconds of building: what it holds is not made again.
    """

    def __init__(self, pages: Sequence[Document], settings: Settings, journal: str | Path):
        self.pages, self.settings = pages, settings
        self.journal_file = Path(journal)
        self._indexes = {}

    @cached_property
    def leaves(self) -> list[Document]:
        """Leaves without overlap: a word counts once in every budget."""
        return split_leaves(self.pages, self.count_tokens, self.settings.profile.chunk_tokens, overlap=0)

    @property
    def count_tokens(self):
        """The tokens of a text, by the embedder's tokenizer: the same count for every system."""
        return self.settings.embedder.count_tokens

    @cached_property
    def tree(self) -> Tree:
        """The tree over clusters."""
        return self._built(CLUSTERED)

    @cached_property
    def gists(self) -> Tree:
        """Leaves and their gists, no clusters."""
        return self._built(GISTS, gist=self.settings.gist, max_levels=0)

    @cached_property
    def tree_with_gists(self) -> Tree:
        """The tree over clusters with a gist of each leaf: the two above, so that it costs nothing more."""
        for part in (CLUSTERED, GISTS):
            self.tree_of(part)
        return self._built(WITH_GISTS, gist=self.settings.gist)

    @cached_property
    def contiguous_tree(self) -> Tree:
        """The tree over runs of neighbours, with as many nodes at each level."""
        sizes = [len(level) for level in self.tree.levels]
        with self._timed(CONTIGUOUS):
            builder = ContiguousBuilder(
                self.settings.embedder,
                self.tree.updater.writer,
                max_levels=self.settings.profile.max_levels,
                sizes=sizes,
            )
            return builder.build(self.leaves)

    def tree_of(self, kind: str) -> Tree:
        """Return the tree of a kind."""
        trees = {
            CLUSTERED: "tree",
            CONTIGUOUS: "contiguous_tree",
            GISTS: "gists",
            WITH_GISTS: "tree_with_gists",
        }
        return getattr(self, trees[kind])

    @cached_property
    def leaf_index(self) -> VectorIndex:
        """The leaves alone."""
        return VectorIndex.build(self.leaves, self.settings.embedder)

    def index_of(self, kind: str) -> VectorIndex:
        """Return an index of all nodes of the tree of a kind."""
        if kind not in self._indexes:
            nodes = list(self.tree_of(kind).nodes.values())
            self._indexes[kind] = VectorIndex.build(nodes, self.settings.embedder)
        return self._indexes[kind]

    @property
    def index(self) -> VectorIndex:
        """All nodes of the tree over clusters."""
        return self.index_of(CLUSTERED)

    @cached_property
    def lineage_index(self) -> VectorIndex:
        """All nodes of the tree, see `LineageEmbedder`."""
        nodes = list(self.tree.nodes.values())
        return VectorIndex.build(nodes, LineageEmbedder(self.settings.embedder, self.tree))

    @cached_property
    def keywords(self) -> KeywordIndex:
        """The leaves by their words."""
        return KeywordIndex(self.leaves)

    @cached_property
    def families(self) -> tuple[dict[str, Document], VectorIndex]:
        """Parents by id, and their children in an index; a parent is three leaves long, a child half a leaf."""
        leaf = self.settings.profile.chunk_tokens
        parents, children = split_families(self.pages, self.count_tokens, 3 * leaf, max(1, leaf // 2))
        return parents, VectorIndex.build(children, self.settings.embedder)

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """The pages' titles and what links them."""
        return article_graph(self.pages)

    @cached_property
    def texts(self) -> dict[str, str]:
        """The text of each page by its source."""
        return {page.metadata["source"]: page.page_content for page in self.pages}

    def has_begun(self, kind: str) -> bool:
        """Return whether some of a tree of this kind is in the journal."""
        return content_key("seconds", kind) in self._recorded()

    def cost(self, kind: str) -> dict:
        """Return calls, tokens read and written, and seconds that a tree took to build, over all runs."""
        tree = self.tree_of(kind)
        # The contiguous tree was written by the clustered one's writer.
        builder = tree.updater or self.tree.updater
        written = tree.summaries + tree.gists
        return {
            "calls": len(written),
            "tokens read": sum(_prompt_tokens(builder.gist, tree, tree.gists))
            + sum(_prompt_tokens(builder.writer, tree, tree.summaries)),
            "tokens written": sum(self.count_tokens(node.page_content) for node in written),
            "seconds": round(self._recorded().get(content_key("seconds", kind)) or 0, 1),
        }

    def _built(self, kind, **options):
        with self._timed(kind):
            return build_tree(
                self.leaves,
                self.settings.embedder,
                self.settings.summarise,
                self.journal_file,
                **(self.settings.profile.tree_options | options),
            )

    def _recorded(self):
        return Journal(base=[self.journal_file])

    @contextmanager
    def _timed(self, kind):
        """Add the seconds of building to those of earlier runs, unless all of it was in the journal."""
        before, started = len(self._recorded()), time.perf_counter()
        try:
            yield
        finally:
            journal, key = Journal(self.journal_file), content_key("seconds", kind)
            if len(journal) > before or key not in journal:
                journal.put(key, (journal.get(key) or 0) + time.perf_counter() - started, tree=kind)
            journal.close()


def _prompt_tokens(writer, tree, nodes):
    for node in nodes:
        yield writer.prompt_tokens([child.page_content for child in tree.children(node.metadata["id"])])
