"""A folder served as a site."""

import urllib.error
import urllib.request

import pytest
from sites import html

from helpers.crawl import crawl
from helpers.serving import serve


def test_two_folders_are_served_at_once(tmp_path):
    with serve(tmp_path) as one, serve(tmp_path) as two:
        assert one != two


@pytest.mark.parametrize("name", ["missing", "file.html"])
def test_serving_no_folder_is_a_clear_error(tmp_path, name):
    (tmp_path / "file.html").write_text("x")
    with pytest.raises(FileNotFoundError, match=f"{name}: there is no such folder"), serve(tmp_path / name):
        pass


def test_a_served_folder_is_a_site(tmp_path, capfd):
    (tmp_path / "sub").mkdir()
    (tmp_path / "bare").mkdir()
    (tmp_path / "index.html").write_text(html("sub", "bare/", "gone.html"), encoding="utf-8")
    (tmp_path / "sub" / "index.html").write_text(html("../index.html", "文.html"), encoding="utf-8")
    (tmp_path / "sub" / "文.html").write_text(html(text="叶"), encoding="utf-8")
    with serve(tmp_path) as base:
        found = crawl(base + "index.html", max_depth=3)
    assert base.startswith("http://127.0.0.1:")
    assert [page.metadata["source"] for page in found.pages] == [
        base,
        base + "sub/",
        base + "sub/%E6%96%87.html",
    ]
    assert found.pages[2].page_content == "叶"
    # A folder without an index is no page: the listing that Python makes up is not part of the site.
    assert [(entry.url, entry.reason) for entry in found.skipped] == [
        (base + "bare/", "HTTP 404"),
        (base + "gone.html", "HTTP 404"),
    ]
    assert capfd.readouterr() == ("", "")  # a notebook compares what is printed
    with pytest.raises(urllib.error.URLError):  # and the port is free again
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(base, timeout=5)
