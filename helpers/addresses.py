"""Web addresses: their canonical form, the folder a crawl stays in, and the guard of private addresses."""

import socket
from ipaddress import ip_address
from urllib.parse import urljoin, urlsplit

from requests.utils import requote_uri

PORTS = {"http": 80, "https": 443}


def canonical(address: str, base: str = "") -> str | None:
    """Return the one absolute form of an http address, or None if it is no http address.

    The fragment, user names, default ports and dot segments go; the query is sorted. The result can still be
    fetched as it is: that `/x`, `/x/` and `/x/index.html` are one page is left to `page_key`.
    """
    try:
        parts = urlsplit(urljoin(base, address.strip()))
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in PORTS or not host:
        return None
    host = f"[{host}]" if ":" in host else host
    if port not in (None, PORTS[parts.scheme]):
        host += f":{port}"
    # Quoting comes first, because `%2e%2e` is a dot segment too and must not lead out of the folder.
    path = urljoin("/", "/" + requote_uri(parts.path).lstrip("/"))
    query = "&".join(sorted(requote_uri(parts.query).split("&")))
    return f"{parts.scheme}://{host}{path}" + (f"?{query}" if query else "")


def without_index(url: str) -> str:
    """Return a canonical address with `/index.html` shortened to `/`: the name that a page goes by."""
    path, mark, query = url.partition("?")
    if path.endswith("/index.html"):
        path = path.removesuffix("index.html")
    return path + mark + query


def page_key(url: str) -> str:
    """Return what `/x`, `/x/` and `/x/index.html` have in common."""
    path, mark, query = without_index(url).partition("?")
    return path.rstrip("/") + mark + query


def base_folder(url: str) -> str:
    """Return the folder whose pages a crawl from `url` admits, with its closing slash."""
    folder, _, name = urlsplit(url).path.rpartition("/")
    if not folder and name != "index" and "." not in name:
        folder = f"/{name}".rstrip("/")  # `/docs` is read as a folder: its parent would be the whole host
    return urljoin(url, folder + "/")


def in_folder(url: str, folder: str) -> bool:
    """Tell whether an address is the folder itself, with or without its slash, or lies in it."""
    return url.startswith(folder) or url.partition("?")[0] + "/" == folder


def is_loopback(host: str) -> bool:
    """Tell whether a host names this machine by its spelling.

    DNS is not asked: a public name that points at 127.0.0.1 must not open the guard.
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_allowed_address(host: str, allow_loopback: bool = False) -> bool:
    """Tell whether every address of `host` is public (or loopback, where that is allowed).

    A name that does not resolve passes: there is nothing to protect, and the request names the cause.
    """
    try:
        found = {ip_address(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return True
    plain = [getattr(address, "ipv4_mapped", None) or address for address in found]
    return all(address.is_global or (allow_loopback and address.is_loopback) for address in plain)
