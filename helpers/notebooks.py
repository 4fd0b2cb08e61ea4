"""Notebooks: their order, the opening that all share, and running them from top to bottom."""

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

from helpers.recording import ROOT

FOLDER = ROOT / "notebooks"
MAIN_JOB = 7
"""Notebooks 01 to 07 make the comparison of RAG and RAPTOR."""


def notebook_paths() -> list[Path]:
    """Return the notebooks in their order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.ipynb"))


def title(path: Path) -> str:
    """Return the first heading of a notebook."""
    first = nbformat.read(path, as_version=4).cells[0].source
    return next(line.lstrip("# ") for line in first.splitlines() if line.startswith("# "))


def navigation(path: Path) -> str:
    """Return the line of links that stands at the top of a notebook."""
    paths = notebook_paths()
    at = paths.index(path)
    links = [f"[← {title(paths[at - 1])}]({paths[at - 1].name})"] if at else []
    links.append("[contents](../README.md#the-notebooks)")
    if at + 1 < len(paths):
        links.append(f"[{title(paths[at + 1])} →]({paths[at + 1].name})")
    return " | ".join(links)


def with_navigation(source: str, links: str) -> str:
    """Return a first cell with its second line, the links, brought up to date."""
    heading, _, rest = source.partition("\n\n")
    if rest.startswith("["):
        _, _, rest = rest.partition("\n\n")
    return f"{heading}\n\n{links}\n\n{rest}"


def execute(path: Path) -> nbformat.NotebookNode:
    """Run a notebook from top to bottom in its own folder and return it with its outputs.

    Raises
    ------
    RuntimeError
        If a cell fails; the message holds the cell and the error.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=3600,
        kernel_name="python3",
        resources={"metadata": {"path": FOLDER}},
        coalesce_streams=True,  # a print may arrive in pieces, another number of them in every run
    )
    try:
        client.execute(stderr=subprocess.DEVNULL)  # the kernel warns there that TCP is not encrypted
    except CellExecutionError as error:
        raise RuntimeError(
            f"{path.name} stopped: {error.ename}: {error.evalue}\n{error.traceback[-3000:]}"
        ) from None
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time stamps, different in every run
    notebook.metadata.language_info.pop("version", None)
    return notebook


def refresh() -> None:
    """Run every notebook and write it back with outputs and up-to-date links."""
    for path in tqdm(notebook_paths(), desc="notebooks", disable=None):
        links = navigation(path)
        notebook = execute(path)
        notebook.cells[0].source = with_navigation(notebook.cells[0].source, links)
        nbformat.write(notebook, path)


def run_main_job(folder: Path) -> Iterator[str]:
    """Run the notebooks of the main job into a folder, their pictures beside them; yield a line for each."""
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    for path in notebook_paths()[:MAIN_JOB]:
        notebook = execute(path)
        nbformat.write(notebook, folder / path.name)
        images = list(_images(notebook))
        for number, image in enumerate(images, 1):
            (pictures / f"{path.stem}_{number}.png").write_bytes(image)
        yield f"{path.name}: {title(path)}, {len(images)} picture(s)"


def _images(notebook):
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                yield base64.b64decode(output.data["image/png"])
