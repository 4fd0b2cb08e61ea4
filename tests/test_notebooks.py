"""Hygiene of the committed notebooks, and the helpers that open and run them.

A notebook without execution counts passes nbval unread, so what nbval takes for granted is tested here.
"""

import ast
import re
import statistics

import nbformat
import pytest

from helpers.notebooks import MAIN_JOB, navigation, notebook_paths, title, with_navigation

PATHS = notebook_paths()
OPENING = ("**You will see**", "**Needs**", "**Writes**", "**Takes**")


def load(path):
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in load(path).cells if cell.cell_type == "code"]


def test_the_main_job_is_complete():
    assert [path.name[:2] for path in PATHS[:MAIN_JOB]] == ["01", "02", "03", "04", "05", "06", "07"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
class TestEachNotebook:
    def test_was_run_from_top_to_bottom(self, path):
        counts = [cell.execution_count for cell in code_cells(path)]
        assert counts == list(range(1, len(counts) + 1))

    def test_holds_no_error_and_nothing_on_stderr(self, path):
        outputs = [output for cell in code_cells(path) for output in cell.outputs]
        assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]

    def test_opens_like_the_others(self, path):
        first = load(path).cells[0].source
        assert all(row in first for row in OPENING)

    def test_links_to_its_neighbours(self, path):
        first = load(path).cells[0].source
        assert first == with_navigation(first, navigation(path))

    def test_ends_with_what_we_saw_and_three_exercises(self, path):
        text = "\n".join(cell.source for cell in load(path).cells if cell.cell_type == "markdown")
        assert "## What we saw" in text
        assert text.count("<details><summary>Solution</summary>") == text.count("</details>") >= 3

    def test_cells_are_short(self, path):
        lengths = [len(cell.source.splitlines()) for cell in code_cells(path)]
        assert max(lengths) <= 20
        assert statistics.median(lengths) <= 8

    def test_shows_no_machine(self, path):
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r"/(home|root|Users|tmp|work)/|site-packages|127\.0\.0\.1:\d|localhost:\d{5}", text
        )

    def test_installs_nothing_and_pastes_no_picture(self, path):
        notebook = load(path)
        assert not any(re.search(r"^\s*[!%]\s*pip", cell.source, re.MULTILINE) for cell in notebook.cells)
        assert not any(cell.get("attachments") for cell in notebook.cells)

    def test_has_no_time_stamps(self, path):
        assert not any("execution" in cell.metadata for cell in load(path).cells)

    def test_comparison_is_switched_off_in_no_cell(self, path):
        # nbval ignores such a marker if a word stands behind it, and then compares what was meant to be left out.
        assert not any("NBVAL" in cell.source for cell in code_cells(path))

    def test_code_without_magic_parses(self, path):
        for cell in code_cells(path):
            ast.parse("\n".join(line for line in cell.source.splitlines() if not line.startswith("%")))


def test_the_line_of_links_is_replaced_not_repeated():
    source = "# Title\n\n[contents](x)\n\nBody\n\nMore"
    once = with_navigation(source, "[new](y)")
    assert once == "# Title\n\n[new](y)\n\nBody\n\nMore"
    assert with_navigation(once, "[new](y)") == once


def test_the_title_is_the_first_heading():
    assert title(PATHS[0]).startswith("01 Crawl")
