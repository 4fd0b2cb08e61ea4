"""Fixtures that several test files share."""

import sys

import pytest
from sites import running

from helpers import client, reduction


@pytest.fixture
def site():
    """Start a site: `server = site({"/": html("a"), ...})`; `server.asked` lists the requests."""
    open_sites = []

    def start(pages):
        context = running(pages)
        open_sites.append(context)
        return context.__enter__()

    yield start
    for context in open_sites:
        context.__exit__(None, None, None)


@pytest.fixture
def no_backoff(monkeypatch):
    monkeypatch.setattr(client, "BACKOFF", 0.0)


@pytest.fixture
def no_umap(monkeypatch):
    """UMAP cannot be imported."""
    reduction._umap.cache_clear()  # another test may have imported it
    reduction._curve.cache_clear()
    monkeypatch.setitem(sys.modules, "umap", None)  # importing it raises
