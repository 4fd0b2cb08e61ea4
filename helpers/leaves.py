"""Leaves: pages cut into pieces that the embedder reads whole, each with its page and its place in it."""

from collections import Counter
from collections.abc import Callable, Sequence

from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter

from helpers.recording import content_key

# From the best place to cut to the last resort: a blank line after a whole sentence, a sentence (Latin, CJK), any
# blank line, line, word, character. A block that does not end like a sentence is mostly a heading: it goes with what
# follows it.
SEPARATORS = [
    r"(?<=[.:;!?,)\]}\"'`*”’»…—。！？])\n\n",
    r"(?<=[.!?])\s",
    r"(?<=[。！？])",
    r"\n\n",
    r"\n",
    r"\s",
    "",
]


def split_leaves(
    pages: Sequence[Document],
    count_tokens: Callable[[str], int],
    chunk_tokens: int = 100,
    overlap: int = 0,
) -> list[Document]:
    """Split each page into leaves of at most ``chunk_tokens`` tokens.

    The splitter tiles the page without overlap; then each leaf but the first of its page is grown backwards by
    at most ``overlap`` tokens. So every character but the white space between tiles is in a leaf, offsets are exact
    also where text repeats, and no leaf is over the limit.

    Parameters
    ----------
    pages : sequence of Document
        With ``source`` in their metadata; empty pages give no leaf.
    count_tokens : callable
        Tokens of a text, by the tokenizer of the model that will embed the leaves.
    chunk_tokens, overlap : int
        Limits in tokens; ``0 <= overlap < chunk_tokens``.

    Returns
    -------
    list of Document
        In page order. Metadata: ``id``, ``level`` (0), ``source``, ``title``, ``start`` and ``end`` (characters in the
        page, so ``page.page_content[start:end]`` is the leaf), ``tokens``. The id hashes address and text, so that it
        survives a change elsewhere on the page.

    Raises
    ------
    ValueError
        If the limits are out of range.
    """
    if chunk_tokens < 1 or not 0 <= overlap < chunk_tokens:
        raise ValueError(
            f"need 0 <= overlap < chunk_tokens, got overlap {overlap}, chunk_tokens {chunk_tokens}"
        )
    splitter = RecursiveCharacterTextSplitter(
        separators=SEPARATORS,
        is_separator_regex=True,
        keep_separator=True,
        chunk_size=chunk_tokens - overlap,
        chunk_overlap=0,
        length_function=count_tokens,
    )
    seen = Counter()
    return [
        leaf
        for page in pages
        for leaf in _page_leaves(page, splitter, count_tokens, chunk_tokens, overlap, seen)
    ]


def _page_leaves(page, splitter, count_tokens, chunk_tokens, overlap, seen):
    text, source = page.page_content, page.metadata.get("source")
    leaves = []
    for start, end in _tiles(text, splitter):
        if leaves and overlap:
            start = _grow_back(text, start, end, count_tokens, chunk_tokens, overlap)
        piece = text[start:end]
        # Several pages may share an address (the pages of a PDF), so repeats are counted over all of them.
        leaf_id = content_key(source, piece, seen[source, piece])[:12]
        seen[source, piece] += 1
        about = {"id": leaf_id, "level": 0, "start": start, "end": end, "tokens": count_tokens(piece)}
        leaves.append(Document(piece, id=leaf_id, metadata=page.metadata | about))
    return leaves


def _tiles(text, splitter):
    """Return the (start, end) of each chunk: between two chunks there is nothing but white space."""
    spans, cursor = [], 0
    for chunk in splitter.split_text(text):
        start = text.index(chunk, cursor)
        cursor = start + len(chunk)
        spans.append((start, cursor))
    return spans


def _grow_back(text, start, end, count_tokens, chunk_tokens, overlap):
    """Move a leaf's start back, word by word, while the overlap and the whole leaf stay within their limits."""
    best = start
    while words_end := len(text[:best].rstrip()):
        cut = max(text.rfind(" ", 0, words_end), text.rfind("\n", 0, words_end)) + 1
        while text[cut].isspace():
            cut += 1
        if count_tokens(text[cut:start]) > overlap or count_tokens(text[cut:end]) > chunk_tokens:
            return best
        best = cut
    return best
