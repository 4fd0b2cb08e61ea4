"""Articles: a graph over pages that are each about what their title names, such as those of an encyclopedia.

Every sentence of a page hangs on the page's title, and links it to each other title that it names. No model is asked.
"""

import re
from collections.abc import Sequence

from langchain_core.documents import Document

from helpers.extraction import pieces
from helpers.graph import KnowledgeGraph
from helpers.relations import Relation

LINK, ABOUT = "names", "is described by"

_QUALIFIER = re.compile(r"\s*\([^)]*\)$")


def article_graph(pages: Sequence[Document]) -> KnowledgeGraph:
    """Return the graph of some pages with ``title`` and ``source``.

    A title's qualifier, as in "Forbidden Ground (2013 film)", is no part of the name.
    """
    names = {page.metadata["source"]: name_of(page) for page in pages}
    pattern = _any_of(set(names.values()))
    texts = {page.metadata["source"]: page.page_content for page in pages}
    graph = KnowledgeGraph()
    graph.add((relation for page in pages for relation in _relations(page, pattern)), texts)
    return graph


def name_of(page: Document) -> str:
    """Return a page's title without a qualifier in brackets."""
    return _QUALIFIER.sub("", page.metadata["title"])


def _relations(page, pattern):
    name, source = name_of(page), page.metadata["source"]
    for number, sentence in enumerate(pieces(page.page_content), 1):
        yield Relation(name, ABOUT, f"sentence {number} of {source}", source, sentence)
        for other in dict.fromkeys(pattern.findall(sentence)):
            if other != name:
                yield Relation(name, LINK, other, source, sentence)


def _any_of(names):
    """Return a pattern for whole names, the longest first."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))})\b")
