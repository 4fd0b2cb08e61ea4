"""Policies: the pages of the shop in ``data/policies``, one entity a page."""

from pathlib import Path

from langchain_core.documents import Document

from helpers.recording import ROOT

POLICIES = ROOT / "data" / "policies"
POLICY_QUESTIONS = POLICIES / "questions.jsonl"
# The address that stands in metadata, whatever folder the pages are read from.
SHOP_ADDRESS = "https://shop.example/"


def load_policies(folder: str | Path = POLICIES) -> list[Document]:
    """Return the pages in the order of their addresses, with ``source`` and ``title`` in their metadata."""
    folder = Path(folder)
    return [_page(path, folder) for path in sorted(folder.rglob("*.md")) if path.name != "README.md"]


def _page(path, folder):
    text = path.read_text(encoding="utf-8")
    title = text.partition("\n")[0].lstrip("# ").strip()
    source = SHOP_ADDRESS + path.relative_to(folder).as_posix()
    return Document(text, metadata={"source": source, "title": title})
