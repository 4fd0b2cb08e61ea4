"""Read a page: its bytes into HTML, its HTML into text, title and links."""

from collections.abc import Iterator
from urllib.parse import urljoin

from bs4 import BeautifulSoup, Tag, UnicodeDammit
from bs4.dammit import EncodingDetector
from bs4.element import PreformattedString

from helpers.addresses import canonical

DROPPED = ["script", "style", "nav", "noscript", "template"]
_BLOCK_NAMES = (
    "address article aside blockquote caption center dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr li main ol p section summary table tbody td tfoot th thead tr ul"
)
BLOCKS = frozenset(_BLOCK_NAMES.split())
# What `_pieces` yields: a kind and its text. A break's text is the gap that it asks for between two blocks.
Piece = tuple[str, str]


def decode(body: bytes, charset: str | None = None) -> str:
    """Return the text of a page by the header's charset, else the page's own, else UTF-8, else by a guess."""
    # Without the middle two, Beautiful Soup goes to its statistical guess, which errs on short pages.
    declared = EncodingDetector.find_declared_encoding(body, is_html=True)
    likely = [name for name in (declared, "utf-8") if name]
    dammit = UnicodeDammit(body, [charset] if charset else [], user_encodings=likely, is_html=True)
    return dammit.unicode_markup or ""


def title_and_links(html: str, address: str) -> tuple[str, list[str]]:
    """Return a page's title (else first heading) and the canonical addresses it links to, in order."""
    soup = BeautifulSoup(html, "lxml")
    title = soup.title or soup.h1
    base = soup.find("base", href=True)
    base = urljoin(address, base["href"]) if base else address
    found = (canonical(link["href"], base) for link in soup.find_all(["a", "area"], href=True))
    links = list(dict.fromkeys(link for link in found if link))
    return (_one_line(title.get_text()) if title else ""), links


def page_text(html: str) -> str:
    """Return the readable text of an HTML page.

    The text is that of `<main>`, else of the first `<article>`, else of the body without its header and
    footer. Blocks stand apart by a blank line, list items (and what is inside them) by one newline; `<pre>`
    is kept as it is; a table row is one block, its cells joined by ` | `.

    Parameters
    ----------
    html : str
        The page as text; see `decode` for bytes.

    Returns
    -------
    str
        Empty if the page holds no text.
    """
    soup = BeautifulSoup(html, "lxml")
    content = soup.find("main") or soup.find("article")
    root = content or soup.body or soup
    # The header of an article holds its title; the header of a whole page is the site's.
    for tag in root.find_all(DROPPED if content else [*DROPPED, "header", "footer"]):
        tag.decompose()
    return _text(root)


def _text(node: Tag) -> str:
    parts, line, gap = [], "", ""
    for kind, text in [*_pieces(node, "\n\n"), ("break", "\n")]:
        if kind == "text":
            line += text
            continue
        block = text if kind == "pre" else _one_line(line)
        if block.strip():
            parts += [gap, block] if parts else [block]
            gap = ""
        if kind == "break":
            gap = max(gap, text)
        line = ""
    return "".join(parts)


def _pieces(node: Tag, gap: str) -> Iterator[Piece]:
    for child in node.children:
        if isinstance(child, Tag):
            yield from _tag_pieces(child, gap)
        elif not isinstance(child, PreformattedString):  # a comment, a doctype
            yield "text", child


def _tag_pieces(tag: Tag, gap: str) -> Iterator[Piece]:
    if tag.name == "br":
        yield "break", "\n"
        return
    if tag.name not in BLOCKS and tag.name != "pre":
        yield from _pieces(tag, gap)
        return
    gap = "\n" if tag.name == "li" else gap
    yield "break", gap
    if tag.name == "pre":
        yield "pre", _pre_text(tag)
    elif tag.name == "tr" and not tag.find(["pre", "table"]):  # a row that holds those is page layout
        yield "text", _row_text(tag)
    else:
        yield from _pieces(tag, gap)
    yield "break", gap


def _pre_text(pre: Tag) -> str:
    for br in pre.find_all("br"):
        br.replace_with("\n")
    return pre.get_text().removeprefix("\n").rstrip("\n")  # HTML itself ignores a newline right behind <pre>


def _row_text(row: Tag) -> str:
    cells = [_one_line(_text(cell)) for cell in row.find_all(["td", "th"])]
    return " | ".join(cells) if any(cells) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())
