"""The client against servers that fail, wander, or should not be asked."""

import gzip
import threading
import time

import pytest
from sites import hang_up, html, paths, reasons, redirect, resolve_to

from helpers import client
from helpers.crawl import CrawlError, crawl

pytestmark = pytest.mark.usefixtures("no_backoff")


def test_redirect_loops_end(site):
    server = site({"/": html("a"), "/a": redirect("/b"), "/b": redirect("/a")})
    assert reasons(crawl(server.url + "/"), server) == {"/a": "more than 10 redirects"}


def test_redirects_out_of_scope_are_not_followed(site):
    other = site({"/secret": html(text="secret")})
    pages = {
        "/docs/": html("host", "up", "mail"),
        "/docs/host": redirect(other.url + "/secret"),
        "/up": html(),
    }
    server = site({**pages, "/docs/up": redirect("/up"), "/docs/mail": redirect("mailto:a@b.c")})
    found = crawl(server.url + "/docs/")
    base = server.url + "/docs/"
    assert paths(found, server) == ["/docs/"]
    assert reasons(found, server) == {
        "/docs/host": f"redirect to {other.url}/secret, outside {base}",
        "/docs/up": f"redirect to {server.url}/up, outside {base}",
        "/docs/mail": f"redirect to mailto:a@b.c, outside {base}",
    }
    assert (other.asked, "/up" in server.asked) == ([], False)


def test_other_content_types_are_no_pages(site):
    pages = {
        "/": html("a.png", "b.pdf", "bare", "x", "t.txt"),
        "/a.png": (200, {"Content-Type": "image/png"}, b"\x89PNG"),
        "/b.pdf": (200, {"Content-Type": "Application/PDF; x=y"}, b"%PDF"),
        "/bare": (200, {}, b"<p>what is this</p>"),
        "/x": (200, {"Content-Type": "application/xhtml+xml"}, html(text="xhtml")),
        "/t.txt": (200, {"Content-Type": "text/plain"}, "a  <b>\n\n  as it is"),
    }
    server = site(pages)
    found = crawl(server.url + "/")
    assert paths(found, server) == ["/", "/x", "/t.txt"]
    assert found.pages[2].page_content == "a  <b>\n\n  as it is"
    assert reasons(found, server) == {
        "/a.png": "content type image/png",
        "/b.pdf": "content type application/pdf",
        "/bare": "content type missing",
    }


def test_the_size_cap_counts_what_is_unpacked(site):
    # A small compressed answer can unpack to gigabytes.
    packed = gzip.compress(html(text="x" * 50_000).encode())
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    server = site(
        {"/": html("big", "bomb", "fits"), "/big": html(text="x" * 5_000), "/fits": html(text="x" * 4_000)}
    )
    server.pages["/bomb"] = (200, headers, packed)
    assert len(packed) < 5_000
    found = crawl(server.url + "/", max_bytes=5_000)
    assert paths(found, server) == ["/", "/fits"]
    assert reasons(found, server) == {"/big": "larger than 5000 bytes", "/bomb": "larger than 5000 bytes"}


def test_a_compressed_page_is_read(site):
    headers = {"Content-Type": "text/html", "Content-Encoding": "gzip"}
    server = site({"/": (200, headers, gzip.compress(html(text="unpacked").encode()))})
    assert crawl(server.url + "/", 1).pages[0].page_content == "unpacked"


def test_requests_are_bounded_and_retried(site):
    # Bug bank, row 22: a server that cannot take a fifth request at once.
    names = [f"p{number}" for number in range(12)]
    lock, now, most = threading.Lock(), [0], [0]

    def counted(handler):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
            many = now[0] > 4
        time.sleep(0.1)
        with lock:
            now[0] -= 1
        return (503, {}, b"") if many else html()

    server = site({"/": html(*names), **{f"/{name}": counted for name in names}})
    found = crawl(server.url + "/", retries=0)
    assert paths(found, server) == ["/"] + [f"/{name}" for name in names]
    assert most[0] <= 4
    # The counter does see a fifth request where the bound is lifted: the line above can fail.
    failed = crawl(server.url + "/", retries=0, max_workers=12)
    assert most[0] > 4
    assert set(reasons(failed, server).values()) == {"HTTP 503"}


def fails(times, answer):
    """Answer a path wrongly so many times, then rightly."""
    left = [times]

    def respond(handler):
        left[0] -= 1
        return answer(handler) if left[0] >= 0 else html()

    return respond


def cut_short(handler):
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: 999\r\n\r\n<p>half")


@pytest.mark.parametrize(
    "answer, reason",
    [
        (lambda handler: (503, {}, b""), "HTTP 503"),
        (lambda handler: (429, {}, b""), "HTTP 429"),
        (hang_up, "connection failed (ConnectionError)"),
        (cut_short, "connection failed (ProtocolError)"),
    ],
)
def test_a_failing_page_is_tried_again_and_then_listed(site, answer, reason):
    # "/cut" would else be a page of half its text.
    server = site({"/": html("soon", "never"), "/soon": fails(2, answer), "/never": fails(99, answer)})
    found = crawl(server.url + "/", retries=2)
    assert paths(found, server) == ["/", "/soon"]
    assert reasons(found, server) == {"/never": reason}
    assert (server.asked.count("/soon"), server.asked.count("/never")) == (3, 3)


def silent(handler):
    handler.server.stop.wait(10)


def dripping(handler):
    # Each byte comes in time, the page never does: a limit between two bytes is not enough.
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999\r\n\r\n")
    while not handler.server.stop.wait(0.05):
        handler.wfile.write(b"x")


@pytest.mark.parametrize("answer", [silent, dripping])
def test_a_server_that_stops_answering_is_skipped(site, answer):
    server = site({"/": html("stuck", "fine"), "/stuck": answer, "/fine": html()})
    found = crawl(server.url + "/", timeout=1.0)
    assert paths(found, server) == ["/", "/fine"]
    assert reasons(found, server) == {"/stuck": "no answer within 1 s"}
    assert server.asked.count("/stuck") == 1  # the retries share the one time limit


def test_robots_txt_is_obeyed(site):
    robots = "User-agent: *\nDisallow: /private\n"
    pages = {
        "/robots.txt": (200, {"Content-Type": "text/plain"}, robots),
        "/": html("private/a", "moved", "b"),
    }
    server = site({**pages, "/private/a": html(), "/moved": redirect("/private/a"), "/b": html()})
    found = crawl(server.url + "/")
    assert paths(found, server) == ["/", "/b"]
    assert reasons(found, server) == {
        "/private/a": "forbidden by robots.txt",
        "/moved": "forbidden by robots.txt",
    }
    assert "/private/a" not in server.asked
    with pytest.raises(CrawlError, match="forbidden by robots.txt"):
        crawl(server.url + "/private/a")


@pytest.mark.parametrize(
    "robots", [(404, {}, b"Disallow: /"), (500, {}, b""), hang_up, redirect("http://x.example/")]
)
def test_robots_txt_that_cannot_be_had_allows(site, robots):
    server = site({"/robots.txt": robots, "/": html("a"), "/a": html()})
    assert paths(crawl(server.url + "/"), server) == ["/", "/a"]


def test_the_delay_stands_before_every_request(site, monkeypatch):
    server = site({"/": html("a", "b"), "/a": html(), "/b": html()})
    slept = []
    monkeypatch.setattr(client.time, "sleep", slept.append)
    crawl(server.url + "/", delay=0.25)
    assert slept == [0.25] * 4  # robots.txt and three pages


def test_a_public_name_that_points_at_this_machine_is_not_fetched(site, monkeypatch):
    server = site({"/": html()})
    resolve_to(monkeypatch, "127.0.0.1")
    with pytest.raises(CrawlError, match="a private or loopback address"):
        crawl(f"http://docs.example:{server.server_port}/")
    assert server.asked == []


def test_the_guard_looks_at_every_request(site, monkeypatch):
    # A name can point elsewhere a moment later, and a redirect makes a second request.
    server = site({"/": html("a", "b"), "/a": html(), "/b": redirect("/a")})
    verdicts = iter([True, True, True, True, False])  # robots.txt, /, /a, /b, and /a again by the redirect
    monkeypatch.setattr(client, "is_allowed_address", lambda host, allow_loopback: next(verdicts))
    found = crawl(server.url + "/", max_workers=1)
    assert reasons(found, server) == {"/b": "a private or loopback address"}


def test_a_proxy_is_not_asked_for_this_machine(site, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    server = site({"/": html()})
    assert paths(crawl(server.url + "/"), server) == ["/"]


@pytest.mark.parametrize(
    "content_type, body, text",
    [
        ("text/html; charset=gbk", "<p>中文 标题</p>".encode("gbk"), "中文 标题"),
        ("text/html", '<meta charset="gbk"><p>分层检索</p>'.encode("gbk"), "分层检索"),
        ("text/html; charset=ISO-8859-1", "<p>café</p>".encode("latin1"), "café"),
        ("text/html", '<meta charset="latin1"><p>naïve</p>'.encode("latin1"), "naïve"),
        ("text/html", "<p>树</p>".encode(), "树"),
        ("text/html; charset=no-such", "<p>é</p>".encode(), "é"),
        ("text/plain; charset=gbk", "叶子".encode("gbk"), "叶子"),
        ("text/plain", "é".encode(), "é"),
    ],
)
def test_encodings(site, content_type, body, text):
    # The header's word first, then the page's own, then UTF-8; requests alone would say latin1.
    server = site({"/": (200, {"Content-Type": content_type}, body)})
    assert crawl(server.url + "/", 1).pages[0].page_content == text
