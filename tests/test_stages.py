"""The workbench from a site to a table, on four small pages, with fakes for the models."""

import json

import pandas as pd
import pytest
from fakes import TopicEmbedder
from sites import html

from helpers import models as loaders
from helpers import recording, stages
from helpers.models import Writer
from helpers.profiles import Profile
from helpers.stages import LEAF_RAG, RAPTOR, Workbench

PROFILE = Profile("small", "fake", "fake", "fake", chunk_tokens=12, chunk_overlap=0, token_budget=30)
ANIMALS = ("cats", "dogs", "owls")
TIE = {"relevance": 5, "depth": 5, "coherence": 5}
VERDICT = json.dumps(
    {"justification": "Equal.", "scores": {"answer_a": TIE, "answer_b": TIE}, "winner": "tie"}
)


class Embedder(TopicEmbedder):
    def count_tokens(self, text):
        return len(text.split())


class Models:
    """Stands for the loaders of models: `loaded` lists what was loaded, `prompts` what was asked."""

    def __init__(self):
        self.loaded, self.prompts = [], []

    def embedder(self, profile):
        self.loaded.append("embedder")
        return Embedder()

    def writer(self, profile, journal=None, max_new_tokens=None, **options):
        return self._recorded("writer", "cats say cats.", journal, max_new_tokens)

    def judge(self, profile, journal=None, **options):
        return self._recorded("judge", VERDICT, journal, None)

    def _recorded(self, name, says, journal, limit):
        def load():
            self.loaded.append(name)
            return generate

        def generate(prompts):
            self.prompts += prompts
            return [says] * len(prompts)

        return Writer(identity=f"{name} {limit}", load=load, journal=journal, whole_sentences=False)


@pytest.fixture
def models(monkeypatch):
    fakes = Models()
    for stage in ("embedder", "writer", "judge"):
        monkeypatch.setattr(stages, f"load_{stage}", getattr(fakes, stage))
    monkeypatch.setattr(loaders, "load_writer", fakes.writer)
    return fakes


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    """Pages, questions and recordings of a run in a folder of its own."""
    for name in ("WORKBENCH_SITE", "WORKBENCH_DEPTH", "WORKBENCH_MODE"):
        monkeypatch.delenv(name, raising=False)
    site = tmp_path / "site"
    site.mkdir()
    links = "".join(f'<a href="{animal}.html">{animal}</a>' for animal in ANIMALS)
    (site / "index.html").write_text(f"<title>Animals</title><p>index of animals</p>{links}")
    for animal in ANIMALS:
        paragraphs = "".join(
            f"<p>{animal} have {part} that is their own thing.</p>" for part in ("one", "two")
        )
        (site / f"{animal}.html").write_text(f"<title>{animal}</title>{paragraphs}")
    quote = {"page": "cats.html", "quote": "cats have two that is their own thing."}
    rows = [
        {"id": "q1", "kind": "specific", "question": "cats have what?", "evidence": [quote]}
        | {"keywords": [{"keyword": "cats", "aliases": []}]},
        {"id": "q2", "kind": "unanswerable", "question": "whales?", "evidence": [], "keywords": []},
    ]
    questions = tmp_path / "questions.jsonl"
    questions.write_text("\n".join(json.dumps(row) for row in rows))
    monkeypatch.setattr(stages, "SITE", site)
    monkeypatch.setattr(Workbench, "questions_file", questions)
    monkeypatch.setattr(recording, "ROOT", tmp_path)
    monkeypatch.setattr(recording, "RECORDED", tmp_path / "recorded")


def close(bench):
    for journal in (bench.tree_journal, bench.answer_journal, bench.verdict_journal):
        journal.close()


def test_nothing_is_computed_before_it_is_asked_for(models):
    bench = Workbench(PROFILE)
    assert models.loaded == []
    assert len(bench.pages) == 4
    assert models.loaded == []  # reading pages needs no model
    assert bench.leaves
    assert models.loaded == ["embedder"]  # which counts their tokens


def test_each_stage_is_computed_once(models):
    bench = Workbench(PROFILE)
    assert bench.results is bench.results
    assert bench.verdicts is bench.verdicts
    assert models.loaded.count("embedder") == 1
    assert models.loaded.count("judge") == 1


def test_addresses_do_not_depend_on_the_port_of_the_local_copy(models):
    addresses = [page.metadata["source"] for page in Workbench(PROFILE).pages]
    assert addresses == ["https://docs.example/"] + [f"https://docs.example/{name}.html" for name in ANIMALS]


def test_a_site_and_depth_of_your_own(models, site, monkeypatch):
    server = site({"/": html("/a", text="start"), "/a": html("/b", text="one"), "/b": html(text="two")})
    address = f"http://127.0.0.1:{server.server_port}/"
    assert len(Workbench(PROFILE, site=address).pages) == 3
    assert len(Workbench(PROFILE, site=address, max_depth=1).pages) == 1
    monkeypatch.setenv("WORKBENCH_SITE", address)
    monkeypatch.setenv("WORKBENCH_DEPTH", "2")
    assert len(Workbench(PROFILE).pages) == 2


def test_a_site_of_your_own_needs_questions_of_your_own(models, site, tmp_path):
    server = site({"/": html("/a", text="start"), "/a": html(text="Foxes sleep in dens.")})
    address = f"http://127.0.0.1:{server.server_port}/"
    with pytest.raises(ValueError, match="WORKBENCH_QUESTIONS"):
        _ = Workbench(PROFILE, site=address).questions
    row = {"id": "q1", "kind": "specific", "question": "Where?", "keywords": [], "pages": ["a"]}
    row["evidence"] = [{"page": "a", "quote": "Foxes sleep in dens."}]
    own = tmp_path / "own.jsonl"
    own.write_text(json.dumps(row) + "\n")
    assert [q.text for q in Workbench(PROFILE, site=address, questions=own).questions] == ["Where?"]


def test_the_leaves_tile_the_pages_and_the_tree_stands_on_them(models):
    bench = Workbench(PROFILE)
    assert [leaf.metadata["tokens"] <= 12 for leaf in bench.leaves] == [
        True
    ] * 7  # 1 + 3 pages of 2 paragraphs
    assert [leaf.metadata["id"] for leaf in bench.tree.levels[0]] == [
        leaf.metadata["id"] for leaf in bench.leaves
    ]
    assert len(bench.tree.levels) > 1
    assert len(bench.index) == len(bench.tree)


def test_both_systems_read_the_same_budget(models):
    bench = Workbench(PROFILE)
    systems = bench.retrievers()
    assert {LEAF_RAG, RAPTOR} <= set(systems)
    assert {retriever.token_budget for retriever in systems.values()} == {30}
    assert {retriever.token_budget for retriever in bench.retrievers(token_budget=16).values()} == {16}
    for retriever in systems.values():
        hits = retriever.invoke("cats have what?")
        assert 0 < sum(retriever.count_tokens(hit.page_content) for hit in hits) <= 30


def test_every_question_is_asked_of_every_system(models):
    results = Workbench(PROFILE).results
    assert sorted(zip(results.question, results.system, strict=True)) == [
        ("q1", RAPTOR),
        ("q1", LEAF_RAG),
        ("q2", RAPTOR),
        ("q2", LEAF_RAG),
    ]
    assert set(results[results.question == "q1"].keywords) == {1.0}
    # A budget of 30 tokens reads 3 of the 6 paragraphs, both on cats among them.
    rag = results[(results.question == "q1") & (results.system == LEAF_RAG)].iloc[0]
    assert (rag.literal, rag.lineage) == (1.0, 1.0)


def test_only_questions_with_evidence_are_judged(models):
    bench = Workbench(PROFILE)
    assert {question: verdict.winner for question, verdict in bench.verdicts.items()} == {"q1": "tie"}


def test_a_second_run_replays_the_first(models):
    first = Workbench(PROFILE)
    _ = first.verdicts
    close(first)
    live = first.calls().set_index("stage").live
    assert live["answers"] == len({p for p in models.prompts if "Question: " in p and "Answer A:" not in p})
    assert live["tree"] > 0
    models.loaded.clear()
    second = Workbench(PROFILE)
    assert second.verdicts == first.verdicts
    pd.testing.assert_frame_equal(second.results, first.results)
    assert models.loaded == ["embedder"]
    calls = second.calls().set_index("stage")
    assert calls.live.tolist() == [0, 0, 0]
    assert (calls.replayed > 0).all()
    assert calls.index.tolist() == ["tree", "answers", "verdicts"]


def test_strict_mode_computes_nothing(models, monkeypatch):
    monkeypatch.setenv("WORKBENCH_MODE", "strict")
    with pytest.raises(recording.NotRecorded, match="the clusters of 7 nodes is not recorded"):
        _ = Workbench(PROFILE).tree
    assert "writer" not in models.loaded


def test_a_profile_by_name():
    assert Workbench("tiny").profile.name == "tiny"
