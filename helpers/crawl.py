"""Read a documentation site into LangChain documents."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from langchain_core.documents import Document
from tqdm.auto import tqdm

from helpers.addresses import base_folder, canonical, in_folder, is_loopback, page_key
from helpers.client import Client
from helpers.pages import page_text
from helpers.serving import serve
from helpers.visits import Visit, visit

with warnings.catch_warnings():
    # The package is archived; RecursiveUrlLoader has no successor yet. A successor changes this file alone.
    warnings.filterwarnings("ignore", message="`langchain-community` is being sunset")
    from langchain_community.document_loaders import RecursiveUrlLoader

__all__ = [
    "DOCUMENTATION_ROOTS",
    "BreadthFirstLoader",
    "Crawl",
    "CrawlError",
    "Skipped",
    "crawl",
    "crawl_all",
    "page_text",
    "serve",
]

DOCUMENTATION_ROOTS = {
    "https://huggingface.co/docs/transformers/index": 3,
    "https://huggingface.co/docs/datasets/index": 2,
    "https://huggingface.co/docs/tokenizers/index": 2,
    "https://huggingface.co/docs/peft/index": 1,  # depth 1 returns one page: the start page
    "https://huggingface.co/docs/accelerate/index": 1,
}


class CrawlError(RuntimeError):
    """The start page cannot be had."""


@dataclass(frozen=True)
class Skipped:
    """An address that gave no page, and why."""

    url: str
    reason: str


@dataclass(frozen=True)
class Crawl:
    """What a crawl found, in breadth-first document order."""

    pages: list[Document]
    skipped: list[Skipped]


class BreadthFirstLoader(RecursiveUrlLoader):
    """`RecursiveUrlLoader` with another link walk; the parameters are those of `crawl`.

    `skipped` lists what gave no page, once `load` or `lazy_load` has ended.
    """

    def __init__(
        self,
        url: str,
        max_depth: int = 2,
        *,
        base_url: str | None = None,
        max_pages: int = 1000,
        max_workers: int = 4,
        extractor: Callable[[str], str] = page_text,
        progress: bool = False,
        **limits,
    ):
        if max_depth < 1:
            raise ValueError(f"max_depth is {max_depth}; 1, the start page alone, is the least")
        start = canonical(url)
        if start is None:
            raise CrawlError(f"cannot crawl {url}: not an http address; write it as https://host/folder/page")
        folder = base_url and canonical(base_url).rstrip("/") + "/"
        super().__init__(start, max_depth, extractor=extractor, base_url=folder or base_folder(start))
        self.max_pages, self.max_workers, self.progress = max_pages, max_workers, progress
        self.skipped: list[Skipped] = []
        self._folder_is_given = bool(folder)
        self._client = Client(allow_loopback=is_loopback(urlsplit(start).hostname), **limits)

    def lazy_load(self) -> Iterator[Document]:
        """Yield the pages level by level, each level in the order of its links."""
        self.skipped, self._asked, self._reached = [], {page_key(self.url)}, set()
        self._client.obey_robots(self.url)
        level, count = [self.url], 0
        with (
            ThreadPoolExecutor(self.max_workers) as pool,
            tqdm(desc="crawl", unit="page", disable=not self.progress) as bar,
        ):
            for depth in range(1, self.max_depth + 1):
                links = []
                for found in self._visit_level(level, self.max_pages - count, pool):
                    if depth == 1:
                        self._settle_start(found)
                    links += found.links
                    if found.page:
                        count += 1
                        bar.update()
                        found.page.metadata["depth"] = depth
                        yield found.page
                level = self._next_level(links)

    def _visit_level(self, level: list[str], room: int, pool: Executor) -> Iterator[Visit]:
        """Visit addresses until `room` pages are found; what is left over is skipped."""
        get = partial(visit, self._client, folder=self.base_url, extractor=self.extractor)
        while level and room:
            batch, level = level[:room], level[room:]
            # map() answers in the order of the batch, whichever request ends first.
            for found in pool.map(get, batch):
                noted = self._note(found)
                room -= noted.page is not None
                yield noted
        self.skipped += [Skipped(url, f"page limit of {self.max_pages} reached") for url in level]

    def _note(self, found: Visit) -> Visit:
        key = page_key(found.address)
        if key in self._reached:
            return replace(found, page=None)  # reached before, by another address
        self._reached.add(key)
        if found.reason:
            self.skipped.append(Skipped(found.address, found.reason))
        return found

    def _settle_start(self, found: Visit) -> None:
        if not found.answered:
            outside = found.reason.startswith("redirect to")
            way_out = "start there" if outside else "open it in a browser to check it"
            raise CrawlError(f"cannot crawl {self.url}: {found.reason}; {way_out}, or start at another page")
        stem = self.url.partition("?")[0] + "/"
        if found.address.startswith(stem) and not self._folder_is_given:
            self.base_url = stem  # the server itself has said that the start address is a folder

    def _next_level(self, links: list[str]) -> list[str]:
        level, known = {}, self._asked | self._reached
        for link in links:
            if page_key(link) not in known and in_folder(link, self.base_url):
                level.setdefault(page_key(link), link)
        self._asked.update(level)
        return list(level.values())


def crawl(url: str, max_depth: int = 2, *, public_url: str | None = None, **options) -> Crawl:
    """Read a site breadth first, staying under the start page's folder.

    The folder of `/docs/lib/index` is `/docs/lib/`. A start such as `/docs/lib`, without slash or extension,
    is a page of `/docs/`, unless the server redirects it to an address below itself (`/docs/lib/`): then the
    folder is `/docs/lib/`. Directly under the host, `/docs` is always the folder `/docs/`.

    Parameters
    ----------
    url : str
        The start page. Loopback is fetched only from a loopback start; private addresses never are.
    max_depth : int
        1 is the start page alone, 2 adds the pages it links to, and so on.
    public_url : str, optional
        The address that stands in the metadata, for a site that is served from a copy: it replaces the base
        folder at the head of every `source`, and in `skipped`.
    **options
        base_url : the folder to stay under, where the start page's own is not the right one.
        max_pages (1000), max_workers (4) : the most pages, and the most requests at once.
        extractor (`page_text`) : HTML to text; plain text pages are taken as they are.
        progress (False) : show a progress bar.
        timeout (60), max_bytes (5,000,000), retries (2), delay (0) : see `helpers.client.Client`.

    Returns
    -------
    Crawl
        Pages with metadata `source`, `title`, `content_type` and `depth`; and what was skipped, with reasons.

    Raises
    ------
    CrawlError
        If the start page cannot be had.
    ValueError
        If `max_depth` is below 1.
    """
    loader = BreadthFirstLoader(url, max_depth, **options)
    found = Crawl(loader.load(), loader.skipped)
    return _published(found, loader.base_url, public_url) if public_url else found


def _published(found: Crawl, base: str, public_url: str) -> Crawl:
    public = public_url.rstrip("/") + "/"
    for page in found.pages:
        # By length, since the base folder's own page may stand there without its slash.
        page.metadata["source"] = public + page.metadata["source"][len(base) :]
    skipped = [Skipped(public + s.url[len(base) :], s.reason.replace(base, public)) for s in found.skipped]
    return Crawl(found.pages, skipped)


def crawl_all(roots: dict[str, int], **options) -> Crawl:
    """Crawl several roots, each to its depth, and join what they give; no page stands twice.

    Parameters
    ----------
    roots : dict of str to int
        Start addresses and depths, such as `DOCUMENTATION_ROOTS`.
    **options
        As for `crawl`.
    """
    results = [crawl(url, depth, **options) for url, depth in roots.items()]
    pages = {}
    for page in (page for result in results for page in result.pages):
        pages.setdefault(page.metadata["source"], page)
    skipped = dict.fromkeys(entry for result in results for entry in result.skipped)
    return Crawl(list(pages.values()), list(skipped))
