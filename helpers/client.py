"""Ask web servers for pages: politely, within limits, and never at private addresses."""

import threading
import time
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import urljoin, urlsplit
from urllib.robotparser import RobotFileParser

import requests
import urllib3

from helpers.addresses import canonical, in_folder, is_allowed_address
from helpers.pages import decode

USER_AGENT = "documentation-crawler"
PAGE_TYPES = ("text/html", "application/xhtml+xml", "text/plain")
MAX_REDIRECTS = 10
BACKOFF = 0.5  # seconds before the first retry; doubled for each further one


class Unwanted(Exception):
    """An address gives no page; the text is the reason."""


class _Transient(Unwanted):
    """Another try may give the page."""


@dataclass(frozen=True)
class Answer:
    """One answer of a server: a page, or with `redirect` the place to ask instead."""

    address: str
    kind: str = ""  # content type, in small letters, without parameters
    text: str = ""
    redirect: str | None = None


@dataclass
class Client:
    """Gets pages; may be used by several threads at once.

    Parameters
    ----------
    allow_loopback : bool
        Whether pages of this machine may be had. They are asked for without a proxy.
    timeout : float
        Seconds for one address, its redirects and retries included.
    max_bytes : int
        The most bytes of one page, unpacked.
    retries : int
        Further tries after a failed connection, status 429 or 5xx.
    delay : float
        Seconds between two requests, whichever threads make them.
    """

    allow_loopback: bool = False
    timeout: float = 60.0
    max_bytes: int = 5_000_000
    retries: int = 2
    delay: float = 0.0
    _robots: RobotFileParser | None = field(default=None, init=False)
    _pace: threading.Lock = field(default_factory=threading.Lock, init=False)

    def obey_robots(self, address: str) -> None:
        """Read the robots.txt of an address's host; from now on `get` keeps to it."""
        self._robots = None
        robots = RobotFileParser()
        try:
            text = self.get(urljoin(address, "/robots.txt"), urljoin(address, "/")).text
        except Unwanted:
            text = ""  # none, or none to be had: everything is allowed
        robots.parse(text.splitlines())
        self._robots = robots

    def get(self, address: str, folder: str) -> Answer:
        """Return the page at an address, following redirects within the folder.

        Raises
        ------
        Unwanted
            There is no page to be had.
        """
        deadline = time.monotonic() + self.timeout
        for _ in range(MAX_REDIRECTS + 1):
            # Checked for each redirect anew, which is why requests must not follow them by itself.
            self._check(address)
            answer = self._ask(address, deadline)
            if answer.redirect is None:
                return answer
            target = canonical(answer.redirect, address)
            if target is None or not in_folder(target, folder):
                raise Unwanted(f"redirect to {target or answer.redirect}, outside {folder}")
            address = target
        raise Unwanted(f"more than {MAX_REDIRECTS} redirects")

    def _check(self, address: str) -> None:
        if not is_allowed_address(urlsplit(address).hostname, self.allow_loopback):
            raise Unwanted("a private or loopback address")
        if self._robots and not self._robots.can_fetch(USER_AGENT, address):
            raise Unwanted("forbidden by robots.txt")

    def _ask(self, address: str, deadline: float) -> Answer:
        failure = None
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(max(0.0, min(BACKOFF * 2 ** (attempt - 1), deadline - time.monotonic())))
            try:
                return self._ask_once(address, deadline)
            except _Transient as error:
                failure = error
        raise failure

    def _ask_once(self, address: str, deadline: float) -> Answer:
        try:
            return self._request(address, deadline)
        except (requests.Timeout, urllib3.exceptions.TimeoutError):
            raise _Transient(f"no answer within {self.timeout:g} s") from None
        # Reading the body goes past requests, so urllib3's own errors come through.
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _Transient(f"connection failed ({type(error).__name__})") from error

    def _request(self, address: str, deadline: float) -> Answer:
        with self._pace:
            time.sleep(self.delay)
        left = deadline - time.monotonic()
        if left <= 0:
            raise requests.Timeout
        with requests.Session() as session:
            session.trust_env = not self.allow_loopback
            session.headers["User-Agent"] = USER_AGENT
            with session.get(address, timeout=left, allow_redirects=False, stream=True) as response:
                if target := session.get_redirect_target(response):
                    return Answer(address, redirect=target)
                return self._read(response, address, deadline)

    def _read(self, response: requests.Response, address: str, deadline: float) -> Answer:
        status = response.status_code
        if status != 200:
            raise (_Transient if status == 429 or status >= 500 else Unwanted)(f"HTTP {status}")
        header = Message()  # the library's parser of a content type and its charset
        header["Content-Type"] = response.headers.get("Content-Type", "")
        kind = header["Content-Type"].partition(";")[0].strip().lower()
        if kind not in PAGE_TYPES:
            raise Unwanted(f"content type {kind or 'missing'}")
        body = self._read_body(response, deadline)
        return Answer(address, kind, decode(body, header.get_content_charset()))

    def _read_body(self, response: requests.Response, deadline: float) -> bytes:
        body = bytearray()
        # read1() returns what is there: a server that sends a byte a second cannot outlast the deadline.
        while chunk := response.raw.read1(65536, decode_content=True):
            body += chunk
            if len(body) > self.max_bytes:
                raise Unwanted(f"larger than {self.max_bytes} bytes")
            if time.monotonic() > deadline:
                raise requests.Timeout
        return bytes(body)
