"""The embedded corpus: every link leads to a page, every Python block names what exists."""

import ast
import importlib
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from helpers.crawl import page_text
from helpers.stages import SITE

PAGES = sorted(SITE.rglob("*.html"))
SECTIONS = {"transformers", "datasets", "tokenizers", "peft", "accelerate"}


def soup_of(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "lxml")


def python_blocks() -> list:
    return [
        pytest.param(block.get_text(), id=f"{path.parent.name}/{path.stem}-{number}")
        for path in PAGES
        for number, block in enumerate(soup_of(path).select("code.language-python"))
    ]


def test_the_site_is_large_enough():
    assert len(PAGES) >= 45
    assert sum(len(page_text(path.read_text(encoding="utf-8")).split()) for path in PAGES) >= 16_000
    counts = {section: len(list((SITE / section).glob("*.html"))) for section in SECTIONS}
    assert max(counts, key=counts.get) == "transformers"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_link_leads_to_a_page_of_the_site(path):
    links = [link["href"] for link in soup_of(path).select("a[href]")]
    assert links
    assert [link for link in links if not (path.parent / link.partition("#")[0]).is_file()] == []


@pytest.mark.parametrize("block", python_blocks())
def test_every_python_block_parses_and_imports_what_exists(block):
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)
        if isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
            assert missing == []
