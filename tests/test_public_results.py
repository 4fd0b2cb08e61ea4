"""Means, paired differences, and what the README gets of them."""

import json

import pandas as pd
import pytest

from helpers.evaluation import bootstrap_interval
from helpers.recording import ROOT
from public.report import (
    between_markers,
    difference_figure,
    headlines,
    load_result,
    markdown_table,
    section,
    variations_table,
    write_readme,
)
from public.results import sizes, summarise, write_result


def row(question, system, literal=None, kind="local", budget=400, **more):
    measures = {} if literal is None else {"literal": literal}
    about = {"question": question, "kind": kind, "system": system, "budget": budget}
    return about | {"tokens": 100, "summary tokens": 10, "ms": 2.0} | measures | more


ROWS = [
    row("q1", "leaf RAG", 0.0),
    row("q2", "leaf RAG", 1.0),
    row("q3", "leaf RAG", 1.0, "summary"),
    row("q1", "collapsed tree", 1.0),
    row("q2", "collapsed tree", 1.0),
    row("q3", "collapsed tree", 0.0, "summary"),
    row("q4", "leaf RAG", kind="plot", words=0.5),
    row("q4", "collapsed tree", kind="plot", words=0.75),
]


def found(scores, **wanted):
    (entry,) = [entry for entry in scores if all(entry[key] == value for key, value in wanted.items())]
    return entry


def test_means_and_differences_by_hand():
    scores = summarise(ROWS)
    assert found(scores, measure="literal", kind="local", system="leaf RAG") == {
        "measure": "literal",
        "kind": "local",
        "system": "leaf RAG",
        "budget": 400,
        "n": 2,
        "mean": 0.5,
    }
    tree = found(scores, measure="literal", kind="all", system="collapsed tree")
    assert (tree["n"], tree["mean"], tree["difference"]) == (3, 0.6667, 0)
    interval = bootstrap_interval([1, 0, -1])
    assert (tree["difference"], tree["low"], tree["high"]) == tuple(round(value, 4) for value in interval)
    assert found(scores, measure="words", kind="plot", system="collapsed tree")["difference"] == 0.25


def test_a_difference_is_paired_within_the_budget():
    rows = [row("q1", "leaf RAG", 0.0, budget=800), row("q1", "fusion", 1.0, budget=800), *ROWS]
    scores = summarise(rows)
    assert found(scores, system="fusion", kind="local")["difference"] == 1
    assert found(scores, system="fusion", kind="all")["budget"] == 800


def test_what_contexts_hold():
    assert sizes(ROWS)[0] == {
        "system": "leaf RAG",
        "budget": 400,
        "tokens": 100,
        "summary tokens": 10,
        "ms": 2,
    }


@pytest.fixture
def result(tmp_path):
    rows = [{**r, "budget": budget} for r in ROWS for budget in (400, 800)]
    path = tmp_path / "results" / "quality-small.json"
    about = {
        "set": "small",
        "tier": "mini",
        "documents": 2,
        "questions": {"local": 2, "summary": 1, "plot": 1},
    }
    write_result(path, about, summarise(rows), sizes(rows))
    return path


def test_a_result_is_json_with_a_line_a_score(result):
    text = result.read_text(encoding="utf-8")
    parsed = json.loads(text)
    assert list(parsed) == ["date", "set", "tier", "documents", "questions", "scores", "contexts"]
    assert sum(line.startswith('  {"measure"') for line in text.splitlines()) == len(parsed["scores"])


def test_the_table_has_a_column_a_headline_and_shows_what_is_surely_better(result):
    scores = load_result(result).scores
    assert [(measure, kind) for measure, kind, *_ in headlines(scores)] == [
        ("literal", "local"),
        ("literal", "summary"),
        ("words", "plot"),
    ]
    assert markdown_table(scores).splitlines() == [
        "| system | sections found, local (n = 2) | sections found, summary (n = 1) | common words, plot (n = 1) |",
        "|---|---|---|---|",
        "| leaf RAG | 0.50 / 0.50 | 1.00 / 1.00 | 0.50 / 0.50 |",
        "| collapsed tree | 1.00 / 1.00 | 0.00 / 0.00 | **0.75** / **0.75** |",
    ]


def test_the_picture_has_a_panel_a_headline(result):
    figure = difference_figure(load_result(result).scores)
    assert [axes.get_title() for axes in figure.axes] == [
        "sections found, local (n = 2)",
        "sections found, summary (n = 1)",
        "common words, plot (n = 1)",
    ]


def test_a_measure_of_one_system_among_many_is_in_the_table_alone(tmp_path):
    systems = ("leaf RAG", "collapsed tree", "tree, by scope")
    rows = [row("p", system, kind="plot", words=0.2) for system in systems]
    rows[1]["gain"] = 0.5
    scores = pd.DataFrame(summarise(rows))
    assert [axes.get_title() for axes in difference_figure(scores).axes] == ["common words, plot (n = 1)"]
    assert "gain, nats a token" in markdown_table(scores)


def test_the_readme_keeps_what_is_outside_the_markers(tmp_path, result):
    readme = tmp_path / "README.md"
    variations = "<!-- variations:begin -->\nold\n<!-- variations:end -->\n"
    readme.write_text(
        f"before\n{variations}<!-- quality:begin -->\nold\n<!-- quality:end -->\nafter\n", encoding="utf-8"
    )
    write_readme(readme, [result], [])
    once = readme.read_text(encoding="utf-8")
    assert once.startswith(
        f"before\n<!-- variations:begin -->\n{variations_table([])}\n<!-- variations:end -->\n"
        "<!-- quality:begin -->\n`small`, mini: 4 questions over 2 documents, 400 / 800"
    )
    assert once.endswith("\n<!-- quality:end -->\nafter\n") and "old" not in once
    assert "(results/quality-small.png)" in once and (result.parent / "quality-small.png").exists()
    write_readme(readme, [result], [])
    assert readme.read_text(encoding="utf-8") == once
    assert section(load_result(result), "x.png") in once.replace("results/quality-small.png", "x.png")


def test_variations_show_what_was_changed_and_what_it_costs(tmp_path):
    rows = [
        row(q, system, kind=kind, words=words)
        for q, kind in (("p", "plot"), ("t", "thematic"))
        for system, words in (("leaf RAG", 0.2), ("collapsed tree", 0.1), ("tree, by scope", 0.4))
    ]
    files = []
    for number, changed in enumerate(({}, {"chunk_tokens": 200, "prompt_tokens": 800})):
        files.append(tmp_path / f"variation-{number}.json")
        trees = {"clustered": {"calls": 58, "tokens read": 59141}}
        about = {
            "set": "small",
            "tier": "mini",
            "questions": {"plot": 1, "thematic": 1},
            "changed": changed,
            "trees": trees,
        }
        write_result(files[-1], about, summarise(rows), sizes(rows))
    assert variations_table(list(map(load_result, files))).splitlines()[2:] == [
        "| nothing | 58 | 59,141 | 0.20 | 0.10 | **0.40** |",
        "| chunk tokens 200, prompt tokens 800 | 58 | 59,141 | 0.20 | 0.10 | **0.40** |",
    ]
    write_result(files[-1], about | {"tier": "rest"}, summarise(rows), sizes(rows))
    with pytest.raises(ValueError, match="different sets or tiers"):
        variations_table(list(map(load_result, files)))


def test_the_unchanged_result_stands_above_its_variations(tmp_path):
    rows = [
        row("p", system, kind="plot", words=0.2)
        for system in ("leaf RAG", "collapsed tree", "tree, by scope")
    ]
    about = {
        "questions": {"plot": 1},
        "documents": 1,
        "trees": {"clustered": {"calls": 58, "tokens read": 9}},
    }
    for name, tier, changed in (
        ("quality-a", "mini", {}),
        ("quality-b", "rest", {}),
        ("quality-c", "mini", {"seed": 2}),
        ("variation", "mini", {"seed": 1}),
    ):
        result = about | {"set": "small", "tier": tier, "changed": changed}
        write_result(tmp_path / f"{name}.json", result, summarise(rows), sizes(rows))
    readme = tmp_path / "README.md"
    readme.write_text(
        "<!-- quality:begin -->\n<!-- quality:end -->\n<!-- variations:begin -->\n<!-- variations:end -->\n"
    )
    write_readme(readme, sorted(tmp_path.glob("quality-*.json")), [tmp_path / "variation.json"])
    table = readme.read_text(encoding="utf-8").partition("<!-- variations:begin -->\n")[2].splitlines()
    assert [line.split(" | ")[0] for line in table[2:4]] == ["| nothing", "| seed 1"]
    assert table.index("<!-- variations:end -->") == 4


def test_a_variation_without_clusters_is_refused(tmp_path):
    rows = [row("p", "gists, by scope", kind="plot", words=0.2)]
    about = {"set": "small", "tier": "mini", "questions": {"plot": 1}, "changed": {}, "trees": {"gists": {}}}
    write_result(tmp_path / "variation-1.json", about, summarise(rows), sizes(rows))
    with pytest.raises(ValueError, match=r"variation-1\.json has no tree over clusters"):
        variations_table([load_result(tmp_path / "variation-1.json")])


def test_the_readme_of_the_project_has_the_markers():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("quality", "variations"):
        assert between_markers(text, name, "new") != text


def test_a_readme_without_markers_is_refused():
    with pytest.raises(ValueError, match="no markers"):
        between_markers("text", "quality", "new")
