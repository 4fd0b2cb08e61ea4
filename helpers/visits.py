"""One visit of a crawl: an address becomes a document, or a reason why not."""

from collections.abc import Callable
from dataclasses import dataclass, field

from langchain_core.documents import Document

from helpers.addresses import without_index
from helpers.client import Client, Unwanted
from helpers.pages import title_and_links


@dataclass(frozen=True)
class Visit:
    """What one address gave: a page, or the reason why not. Links may come without a page."""

    address: str
    links: list[str] = field(default_factory=list)
    page: Document | None = None
    reason: str = ""
    answered: bool = True


def visit(client: Client, address: str, folder: str, extractor: Callable[[str], str]) -> Visit:
    """Get the page at an address and make a document of it; whatever goes wrong becomes a reason.

    Parameters
    ----------
    client : Client
        Gets the page, and follows redirects within the folder.
    address, folder : str
        Canonical; the folder ends with a slash.
    extractor : callable
        HTML to text. Plain text pages are taken as they are.
    """
    try:
        answer = client.get(address, folder)
    except Unwanted as unwanted:
        return Visit(address, reason=str(unwanted), answered=False)
    source, title, links, text = without_index(answer.address), "", [], answer.text
    try:
        if answer.kind != "text/plain":
            title, links = title_and_links(answer.text, answer.address)
            text = extractor(answer.text)
    except Exception as error:  # the extractor may be anyone's: one bad page must not end the crawl
        return Visit(source, links, reason=f"extractor failed: {error!r}")
    if not text.strip():
        return Visit(source, links, reason="empty page")
    metadata = {"source": source, "title": title, "content_type": answer.kind}
    return Visit(source, links, Document(text, metadata=metadata))
