"""The walk over a site: what it admits, in which order, and what it says of the rest."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sites import hang_up, html, paths, reasons, redirect

from helpers import crawl as module
from helpers.crawl import DOCUMENTATION_ROOTS, BreadthFirstLoader, CrawlError, crawl, crawl_all

pytestmark = pytest.mark.usefixtures("no_backoff")


def test_a_crawl_stays_in_the_folder_of_its_start(site):
    # Bug bank, row 19: the loader's default admits the whole host.
    server = site(
        {"/docs/lib/index": html("q", "/docs/other/x"), "/docs/lib/q": html(), "/docs/other/x": html()}
    )
    found = crawl(server.url + "/docs/lib/index")
    assert paths(found, server) == ["/docs/lib/index", "/docs/lib/q"]
    assert found.skipped == []
    assert "/docs/other/x" not in server.asked


@pytest.mark.parametrize("depth, expected", [(1, ["/"]), (2, ["/", "/a"]), (3, ["/", "/a", "/b"])])
def test_max_depth_counts_the_start_page(site, depth, expected):
    # Bug bank, row 20: 1, 2 and 3 pages, as documented.
    server = site({"/": html("a"), "/a": html("b"), "/b": html("c"), "/c": html()})
    found = crawl(server.url + "/", max_depth=depth)
    assert paths(found, server) == expected
    assert [page.metadata["depth"] for page in found.pages] == list(range(1, depth + 1))


@pytest.mark.parametrize("depth", [0, -1])
def test_a_depth_below_one_is_refused(depth):
    with pytest.raises(ValueError, match=f"max_depth is {depth}"):
        crawl("http://127.0.0.1:9/", max_depth=depth)


@pytest.mark.parametrize("start", ["/docs/", "/docs"])
def test_a_folder_is_no_string_prefix(site, start):
    # The loader compares strings, so that /docs admits /docs-private.
    page = html("/docs/a", "/docs-private", "/docs-private/x")
    server = site({start: page, "/docs/a": html(), "/docs-private": html(), "/docs-private/x": html()})
    assert paths(crawl(server.url + start), server) == [start, "/docs/a"]


def test_a_start_that_the_server_redirects_to_its_folder_form_is_that_folder(site):
    # As https://huggingface.co/docs/peft does: siblings of /docs/peft are not its documentation.
    page = html("a", "/docs/trl/b")
    pages = {
        "/docs/peft": redirect("/docs/peft/"),
        "/docs/peft/": page,
        "/docs/peft/a": html(),
        "/docs/trl/b": html(),
    }
    server = site(pages)
    assert paths(crawl(server.url + "/docs/peft"), server) == ["/docs/peft/", "/docs/peft/a"]


def test_the_folder_can_be_named(site):
    # Also where the start's redirect would name another.
    pages = {
        "/docs/lib": redirect("/docs/lib/"),
        "/docs/lib/": html("/docs/other/x", "/blog"),
        "/blog": html(),
    }
    server = site({**pages, "/docs/other/x": html()})
    found = crawl(server.url + "/docs/lib", base_url=server.url + "/docs")
    assert paths(found, server) == ["/docs/lib/", "/docs/other/x"]


def test_dot_segments_do_not_lead_out_of_the_folder(site):
    # urllib3 resolves them only when it sends, after a check of the bare string has passed.
    out = ["/docs/../secret", "/docs/%2e%2e/secret", "../secret"]
    server = site({"/docs/": html(*out, "http://127.0.0.1:1/docs/other-port"), "/secret": html()})
    found = crawl(server.url + "/docs/")
    assert paths(found, server) == ["/docs/"]
    assert found.skipped == []
    assert server.asked == ["/robots.txt", "/docs/"]


def test_order_is_breadth_first_and_that_of_the_documents(site):
    # Slow early answers must not fall behind fast late ones.
    def slow(handler):
        time.sleep(0.1)
        return html("a/deep")

    pages = {"/": html("z", "a", "m"), "/z": slow, "/a": html("z/deep", "a/deep"), "/m": html()}
    server = site({**pages, "/a/deep": html(), "/z/deep": html()})
    found = crawl(server.url + "/", max_depth=3)
    assert paths(found, server) == ["/", "/z", "/a", "/m", "/a/deep", "/z/deep"]


def test_order_does_not_depend_on_the_hash_seed(site):
    # The loader walks a set of links: order, and with a depth even coverage, change from run to run.
    names = [f"p{number * 7 % 20}" for number in range(20)]
    server = site({"/": html(*names), **{f"/{name}": html() for name in names}})
    code = (
        "import sys, json; from helpers.crawl import crawl; "
        "print(json.dumps([p.metadata['source'] for p in crawl(sys.argv[1]).pages]))"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code, server.url + "/"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[1],
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    expected = [server.url + "/"] + [f"{server.url}/{name}" for name in names]
    assert [json.loads(run.communicate()[0]) for run in runs] == [expected, expected]


def test_the_walk_is_a_langchain_loader(site):
    server = site({"/": html("a"), "/a": html()})
    loader = BreadthFirstLoader(server.url + "/")
    assert isinstance(loader, module.RecursiveUrlLoader)
    assert [page.metadata["source"] for page in loader.lazy_load()] == [server.url + "/", server.url + "/a"]
    assert loader.load() == crawl(server.url + "/").pages  # a second run starts afresh


def test_a_page_linked_in_several_forms_counts_once(site):
    links = ["/index.html", "#top", "x", "x/", "x/index.html", "x#part", "q?b=2&amp;a=1", "q?a=1&amp;b=2"]
    server = site({"/": html(*links), "/x": html(), "/q?a=1&b=2": html()})
    found = crawl(server.url + "/")
    assert paths(found, server) == ["/", "/x", "/q?a=1&b=2"]
    assert sorted(server.asked) == ["/", "/q?a=1&b=2", "/robots.txt", "/x"]  # each once


def test_index_html_is_fetched_as_written_and_named_by_its_folder(site):
    # Some servers know /x/index.html and not /x/: the rewritten address would be a 404.
    server = site({"/": html("x/index.html"), "/x/index.html": html("y"), "/x/y": html()})
    assert paths(crawl(server.url + "/", max_depth=3), server) == ["/", "/x/", "/x/y"]


def test_links_are_read_as_a_browser_reads_them(site):
    # Each is a link that the loader's regular expression misses, spoils or invents.
    body = """<A HREF='upper'>1</A> <a class=x href=bare>2</a> <a href="e?a=1&amp;b=2">3</a>
    <!-- <a href="commented">no</a> --> <area href="area"> <a href=" spaced ">4</a>
    <a href="mailto:a@b.c">no</a> <a href="javascript:go()">no</a> <a href="http://[bad">no</a> <a>no</a>"""
    wanted = ["/upper", "/bare", "/e?a=1&b=2", "/area", "/spaced"]
    server = site({"/": html(text=body), **{path: html() for path in wanted}})
    found = crawl(server.url + "/")
    assert paths(found, server) == ["/", *wanted]
    assert found.skipped == []


def test_base_href_moves_relative_links(site):
    server = site({"/": html("a", head='<base href="/v2/">'), "/v2/a": html(), "/a": html()})
    assert paths(crawl(server.url + "/"), server) == ["/", "/v2/a"]


def test_a_redirected_page_has_its_final_address_and_counts_once(site):
    pages = {"/": html("old", "new", "older"), "/old": redirect("/new#part"), "/older": redirect("/old")}
    server = site({**pages, "/new": html("new/next"), "/new/next": html("/old")})
    found = crawl(server.url + "/", max_depth=4)
    assert paths(found, server) == ["/", "/new", "/new/next"]
    assert found.skipped == []


def test_what_a_redirect_has_reached_is_not_asked_for_again(site):
    pages = {
        "/docs": html("/docs/old", "/docs/back"),
        "/docs/old": redirect("/docs/new"),
        "/docs/new": html("new"),
    }
    server = site({**pages, "/docs/back": redirect("/docs")})
    found = crawl(server.url + "/docs", max_depth=3)
    assert (paths(found, server), found.skipped) == (["/docs", "/docs/new"], [])
    assert server.asked.count("/docs/new") == 1


def test_a_dead_link_is_no_page(site):
    # Bug bank, row 21: the loader stores the body of the error page.
    server = site({"/": html("dead", "alive"), "/alive": html()})
    found = crawl(server.url + "/")
    assert paths(found, server) == ["/", "/alive"]
    assert reasons(found, server) == {"/dead": "HTTP 404"}
    assert server.asked.count("/dead") == 1  # a 404 is an answer: asking again is rude


@pytest.mark.parametrize("body", ["", "<html></html>", "<body> &nbsp;<script>x()</script><!-- y --></body>"])
def test_an_empty_page_is_skipped(site, body):
    server = site({"/": html("empty"), "/empty": body})
    found = crawl(server.url + "/")
    assert (paths(found, server), reasons(found, server)) == (["/"], {"/empty": "empty page"})


def test_an_extractor_that_raises_costs_one_page(site):
    # In the loader it ends the crawl, even with continue_on_failure.
    def extractor(page):
        if "bad" in page:
            raise ValueError("no table")
        return "text"

    server = site(
        {"/": html("one", "two"), "/one": html("deep", text="bad"), "/two": html(), "/deep": html()}
    )
    found = crawl(server.url + "/", max_depth=3, extractor=extractor)
    assert paths(found, server) == ["/", "/two", "/deep"]
    assert reasons(found, server) == {"/one": "extractor failed: ValueError('no table')"}


def test_the_page_cap_lists_the_rest(site):
    server = site({"/": html("a", "dead", "b", "c", "d"), **{f"/{name}": html() for name in "abcd"}})
    found = crawl(server.url + "/", max_pages=3)
    assert paths(found, server) == ["/", "/a", "/b"]
    limit = "page limit of 3 reached"
    assert reasons(found, server) == {"/dead": "HTTP 404", "/c": limit, "/d": limit}
    assert "/c" not in server.asked


@pytest.mark.parametrize(
    "answer, cause",
    [
        ((404, {}, b""), "HTTP 404"),
        ((200, {"Content-Type": "image/png"}, b"x"), "content type image/png"),
        (redirect("http://docs.example/"), "redirect to http://docs.example/, outside .*start there"),
        (hang_up, "connection failed"),
    ],
)
def test_a_start_page_that_cannot_be_had_is_an_error(site, answer, cause):
    # An empty result would look like an empty site.
    server = site({"/": answer})
    with pytest.raises(CrawlError, match=f"^cannot crawl {server.url}/: {cause}") as caught:
        crawl(server.url + "/")
    assert "\n" not in str(caught.value)
    assert "another page" in str(caught.value)


@pytest.mark.parametrize("start", ["docs.example/a", "file:///etc/passwd", "/docs"])
def test_a_start_that_is_no_http_address_is_an_error(start):
    with pytest.raises(CrawlError, match="not an http address"):
        crawl(start)


def test_metadata(site):
    server = site({"/": html("a", head="<title> The\n title </title>"), "/a": "<h1>Only <i>this</i></h1>"})
    first, second = crawl(server.url + "/").pages
    expected = {"source": server.url + "/", "title": "The title", "content_type": "text/html", "depth": 1}
    assert first.metadata == expected
    assert second.metadata["title"] == "Only this"


def test_public_url_stands_in_for_the_copy(site):
    # The recorded corpus must not depend on the port of the day.
    pages = {"/docs/index.html": html("a.html", "sub/", "out"), "/docs/a.html": html(), "/docs/sub/": html()}
    server = site({**pages, "/docs/out": redirect("https://other.example/")})
    found = crawl(server.url + "/docs/index.html", public_url="https://docs.example/lib")
    assert [page.metadata["source"] for page in found.pages] == [
        "https://docs.example/lib/",
        "https://docs.example/lib/a.html",
        "https://docs.example/lib/sub/",
    ]
    reason = "redirect to https://other.example/, outside https://docs.example/lib/"
    assert [(entry.url, entry.reason) for entry in found.skipped] == [
        ("https://docs.example/lib/out", reason)
    ]


def test_public_url_stands_in_for_a_start_without_its_slash(site):
    server = site({"/docs": html("/docs/a"), "/docs/a": html()})
    found = crawl(server.url + "/docs", public_url="https://docs.example")
    sources = [page.metadata["source"] for page in found.pages]
    assert sources == ["https://docs.example/", "https://docs.example/a"]


def test_several_roots_are_joined_without_repeats(site):
    server = site(
        {"/a/index": html("x"), "/a/x": html("y"), "/a/y": html(), "/b/index": html("x"), "/b/x": html()}
    )
    roots = {server.url + "/a/index": 2, server.url + "/b/index": 1, server.url + "/a/x": 2}
    assert paths(crawl_all(roots), server) == ["/a/index", "/a/x", "/b/index", "/a/y"]


def test_the_roots_of_the_source_and_their_depths():
    root = "https://huggingface.co/docs/"
    depths = {"transformers": 3, "datasets": 2, "tokenizers": 2, "peft": 1, "accelerate": 1}
    assert {f"{root}{name}/index": depth for name, depth in depths.items()} == DOCUMENTATION_ROOTS


def test_progress_goes_to_stderr_only_on_request(site, capfd):
    server = site({"/": html()})
    crawl(server.url + "/")
    assert capfd.readouterr() == ("", "")
    crawl(server.url + "/", progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "1page" in err


def test_only_the_archive_warning_is_silenced():
    # Notebooks compare stderr; the filter must not outlive the import.
    code = "import helpers.crawl, warnings; warnings.warn('`langchain-community` is being sunset: heard')"
    root = Path(__file__).parents[1]
    run = subprocess.run(
        [sys.executable, "-W", "default", "-c", code], cwd=root, capture_output=True, text=True
    )
    assert run.stderr.count("sunset") == run.stderr.count("heard") > 0
