"""A whole run over two small documents: all systems, equal budgets, nothing written twice."""

from dataclasses import replace

import numpy as np
import pytest
from fakes import CountingGists, CountingWriter, TopicEmbedder
from langchain_core.documents import Document

from helpers.profiles import load_profile
from public.answers import answered
from public.answers import prompt as answer_prompt
from public.articles import article_graph
from public.corpora import CLUSTERED, CONTIGUOUS, GISTS, WITH_GISTS, Corpus
from public.estimates import estimate
from public.likelihood import Scorer, prompt, scored
from public.runs import Context, Run
from public.sets import Passage, PublicSet, Question
from public.settings import Settings, changes, varied
from public.summaries import FirstSentences, load_writers
from public.systems import SYSTEMS, default_systems, trees_needed

BUDGETS = [12, 40]
TOPICS = ("ships", "trolls", "rings", "kings")


class WordEmbedder(TopicEmbedder):
    """Counts words as tokens."""

    def count_tokens(self, text):
        return len(text.split())


def page(name, rounds=2):
    parts = [f"{topic} {name} {i} " + "word " * 5 for i in range(rounds) for topic in TOPICS]
    text = "\n\n".join(parts).strip()
    return Document(text, metadata={"source": name, "title": name.title()})


def settings(writer):
    profile = replace(load_profile("cpu"), prompt_tokens=60, chunk_tokens=8)
    return Settings(profile, WordEmbedder(), writer, CountingGists())


@pytest.fixture
def data():
    pages = [page("a"), page("b")]
    text = pages[0].page_content.split("\n\n")[0]
    gold = (Passage("a", 0, len(text), text),)
    questions = [
        Question("a1", "local", "ships a 0", ("ships",), "a", gold),
        Question("b1", "plot", "trolls in b", ("The trolls sail.", "Some trolls sail away."), "b"),
    ]
    return PublicSet("small", tuple(pages), tuple(questions))


def test_every_question_meets_every_system_within_every_budget(tmp_path, data):
    systems = default_systems(is_pooled=False)
    rows = list(Run(data, settings(CountingWriter()), tmp_path, systems, BUDGETS).rows(progress=False))
    assert len(rows) == len({(r["question"], r["system"], r["budget"]) for r in rows}) == 4 * len(systems)
    assert all(row["tokens"] <= row["budget"] for row in rows)
    assert all(isinstance(value, (int, float)) or key in ("question", "kind", "system")
               for row in rows for key, value in row.items())  # fmt: skip
    by_system = {(r["system"], r["budget"]): r for r in rows if r["question"] == "a1"}
    assert by_system["leaf RAG", 40]["literal"] == 1  # with both leaves about ships
    assert by_system["document cut off", 12]["literal"] == 1  # the gold passage is the document's first
    assert by_system["tree, top-first", 12]["summary tokens"] > 0 == by_system["fusion", 40]["summary tokens"]


def test_a_run_that_is_repeated_writes_nothing_and_finds_the_same(tmp_path, data):
    systems, writer, again = (
        ["leaf RAG", "collapsed tree", "contiguous tree"],
        CountingWriter(),
        CountingWriter(),
    )
    first = Run(data, settings(writer), tmp_path, systems, BUDGETS)
    rows = list(first.rows(progress=False))
    second = Run(data, settings(again), tmp_path, systems, BUDGETS)
    assert [row | {"ms": 0} for row in second.rows(progress=False)] == [row | {"ms": 0} for row in rows]
    assert writer.calls and not again.calls
    assert second.costs() == first.costs()
    assert first.costs()[CLUSTERED]["calls"] <= len(writer.calls)
    assert first.costs()[CLUSTERED]["tokens written"] == 2 * first.costs()[CLUSTERED]["calls"]


def test_a_run_without_trees_writes_nothing(tmp_path, data):
    writer = CountingWriter()
    run = Run(data, settings(writer), tmp_path, ["leaf RAG", "fusion", "parent and child"], BUDGETS)
    assert list(run.rows(progress=False))
    assert not writer.calls and run.costs() == {}


def test_the_contiguous_tree_has_runs_of_neighbours_and_the_same_sizes(tmp_path):
    corpus = Corpus([page("a", rounds=4)], settings(CountingWriter()), tmp_path / "a.jsonl")
    tree, other = corpus.tree, corpus.contiguous_tree
    assert [len(level) for level in other.levels] == [len(level) for level in tree.levels]
    place = {leaf.metadata["id"]: i for i, leaf in enumerate(corpus.leaves)}
    runs = [[place[child] for child in node.metadata["children"]] for node in other.levels[1]]
    assert [i for run in runs for i in run] == list(range(len(corpus.leaves)))
    assert corpus.cost(CONTIGUOUS)["calls"] == len(other.summaries)


def test_a_tree_with_gists_is_clusters_and_gists_that_are_written_once(tmp_path):
    corpus = Corpus([page("a", rounds=4)], settings(CountingWriter()), tmp_path / "a.jsonl")
    whole = corpus.tree_with_gists
    assert whole.levels == corpus.tree.levels and whole.gists == corpus.gists.gists
    # A gist has three words of a leaf's eight.
    cost = corpus.cost(GISTS)
    assert (cost["calls"], cost["tokens read"], cost["tokens written"]) == (16, 8 * 16, 3 * 16)
    assert corpus.cost(CLUSTERED)["calls"] == len(whole.summaries) == len(corpus.settings.summarise.calls)
    assert len(corpus.index_of(WITH_GISTS).documents) == len(whole)


def test_an_unseen_question_gets_the_same_context_as_any_other(tmp_path, data):
    run = Run(data, settings(CountingWriter()), tmp_path, ["question unseen", "random gists"], BUDGETS)
    corpus = run.corpora["a"]
    for system, is_same in (("question unseen", True), ("random gists", False)):
        retriever = SYSTEMS[system].make(corpus, {"token_budget": 40, "count_tokens": corpus.count_tokens})
        one, other = ([hit.id for hit in retriever.invoke(text)] for text in ("ships a 0", "trolls in b"))
        assert (one == other) == is_same


def test_a_summary_is_embedded_half_by_the_leaves_under_it(tmp_path):
    corpus = Corpus([page("a", rounds=4)], settings(CountingWriter()), tmp_path / "a.jsonl")
    summary = corpus.tree.levels[1][0]
    name, below = summary.metadata["id"], corpus.tree.leaves(summary.metadata["id"])
    own, leaves = (
        corpus.index.vectors([name])[0],
        corpus.index.vectors([leaf.metadata["id"] for leaf in below]),
    )
    mean = leaves.mean(axis=0) / np.linalg.norm(leaves.mean(axis=0))
    expected = (own + mean) / np.linalg.norm(own + mean)
    assert corpus.lineage_index.vectors([name])[0] == pytest.approx(expected, abs=1e-6)
    leaf = below[0].metadata["id"]
    assert corpus.lineage_index.vectors([leaf]) == pytest.approx(corpus.index.vectors([leaf]))


def test_leaves_know_their_place_in_the_document(tmp_path):
    corpus = Corpus([page("a")], settings(CountingWriter()), tmp_path / "a.jsonl")
    text = corpus.pages[0].page_content
    assert all(
        text[leaf.metadata["start"] : leaf.metadata["end"]] == leaf.page_content for leaf in corpus.leaves
    )


def test_an_unknown_system_is_refused(tmp_path, data):
    with pytest.raises(ValueError, match="no system magic"):
        Run(data, settings(CountingWriter()), tmp_path, ["magic"], BUDGETS)


def test_which_systems_need_a_tree():
    assert trees_needed(["leaf RAG", "keywords", "graph", "parent and child"]) == []
    assert trees_needed(["leaf RAG", "traversal"]) == trees_needed(["tree, mmr"]) == [CLUSTERED]
    assert trees_needed(["contiguous tree"]) == [CLUSTERED, CONTIGUOUS]
    assert trees_needed(["tree with gists, by scope"]) == [CLUSTERED, GISTS]
    assert trees_needed(default_systems(is_pooled=True)) == []
    assert set(default_systems(True)) | set(default_systems(False)) == set(SYSTEMS)


def test_the_estimate_counts_the_trees_that_are_not_there(tmp_path, data):
    run = Run(data, settings(CountingWriter()), tmp_path, ["leaf RAG", "contiguous tree"], BUDGETS)
    assert "8 contexts of 2 corpora; trees to build: 4, over" in estimate(run)
    list(run.rows(progress=False))
    assert "trees to build: 0, over 0 tokens" in estimate(run)
    more = Run(data, settings(CountingWriter()), tmp_path, ["contiguous tree", "gists, by scope"], BUDGETS)
    assert "trees to build: 2, over" in estimate(more)


# A pool of articles.


ARTICLES = [
    Document(
        "Sea Song is a film directed by Ann Lee. It is long.",
        metadata={"source": "1", "title": "Sea Song (1950 film)"},
    ),
    Document("Ann Lee was born in Rome.", metadata={"source": "2", "title": "Ann Lee"}),
    Document("Rome is a city.", metadata={"source": "3", "title": "Rome"}),
]


def test_titles_are_linked_by_the_sentences_that_name_them():
    graph = article_graph(ARTICLES)
    links = [relation for relation in graph.relations if relation.type == "names"]
    assert [(r.subject, r.object, r.evidence) for r in links] == [
        ("Sea Song", "Ann Lee", "Sea Song is a film directed by Ann Lee."),
        ("Ann Lee", "Rome", "Ann Lee was born in Rome."),
    ]


def test_the_graph_finds_both_facts_of_two_hops(tmp_path):
    evidence = tuple(Passage(i, 0, 0, text) for i, text in [("1", "Sea Song is a film directed by Ann Lee."),
                                                            ("2", "Ann Lee was born in Rome.")])  # fmt: skip
    question = Question("q", "bridge", "Where was the director of Sea Song born?", ("Rome",), None, evidence)
    data = PublicSet("pool", tuple(ARTICLES), (question,))
    assert data.is_pooled
    (row,) = Run(data, settings(CountingWriter()), tmp_path, ["graph"], [15]).rows(progress=False)
    assert (row["facts"], row["all facts"]) == (1, 1)


# Writers.


def test_first_sentences_share_the_words_of_a_summary():
    write = FirstSentences(words=10)
    assert write(["One two three. Four five six.", "Seven eight nine ten eleven twelve."]) == (
        "One two three. Seven eight nine ten eleven"
    )


def test_an_unknown_prompt_is_refused():
    with pytest.raises(ValueError, match="no prompt 'poem'"):
        load_writers(load_profile("cpu"), "poem", len)


def test_a_profile_is_varied_in_its_numbers():
    profile = varied(load_profile("cpu"), ["margin=0.2", "prompt_tokens=800"])
    assert profile == replace(load_profile("cpu"), margin=0.2, prompt_tokens=800)
    assert changes(profile) == {"margin": 0.2, "prompt_tokens": 800}
    assert changes(load_profile("cpu")) == {}
    assert changes(load_profile("tiny"), "documentation", is_extracted=True) == {
        "profile": "tiny", "prompt": "documentation", "no writer": True
    }  # fmt: skip
    for change in ("token_budget=5", "writer=gpt", "margin=", "margin"):
        with pytest.raises(ValueError, match=f"'{change}' is not a number for one of chunk_tokens"):
            varied(load_profile("cpu"), [change])


# Answers.


class EchoWriter:
    """Answers with the prompt's first passage."""

    def __init__(self):
        self.batches = []

    def batch(self, prompts):
        self.batches.append(prompts)
        return [text.split("\n\n")[1] for text in prompts]


def test_answers_are_measured_by_the_words_that_references_share():
    asked = Question("q", "plot", "Why?", ("The captain fled Venus.", "From Venus fled the captain."))
    choice = Question("c", "multiple choice", "Who?", ("a",), options=("a", "b"), answer_index=0)
    contexts = [
        Context(asked, "leaf RAG", 40, [leaf("The captain slept.")], 0.1),
        Context(choice, "leaf RAG", 40, [leaf("The captain slept.")], 0.1),
        Context(asked, "fusion", 40, [leaf("Venus: the captain fled.")], 0.1),
    ]
    writer = EchoWriter()
    rows = list(answered(contexts, writer))
    assert [(row["system"], row["answer words"]) for row in rows] == [
        ("leaf RAG", round(1 / 3, 6)),
        ("fusion", 1),
    ]
    assert writer.batches == [[answer_prompt("Why?", context.hits) for context in contexts[::2]]]


def test_the_estimate_counts_what_a_model_reads(tmp_path, data):
    run = Run(data, settings(CountingWriter()), tmp_path, ["leaf RAG"], BUDGETS)
    told = estimate(run, reader="cpu", is_answered=True, read=(["leaf RAG", "fusion"], [9000]))
    # 2 questions, 2 systems and 9,000 tokens, at 150 tokens a second and at 60.
    assert told.endswith("trees 0, contexts 0, likelihoods 4, answers 10.")


# Likelihoods.


class FakeReader:
    """A text is likelier the more of its words stand in the prompt: -1 nat a word found, else -3."""

    identity = "fake"

    def __init__(self):
        self.read = []

    def count_tokens(self, text):
        return len(text.split())

    def log_likelihoods(self, prompt, continuations):
        self.read.append(prompt)
        return [sum(-1.0 if word in prompt else -3.0 for word in text.split()) for text in continuations]


class KeptNumbers(dict):
    """Stands for a journal."""

    def put(self, key, value):
        self[key] = value


def leaf(text):
    return Document(text, metadata={"id": text, "level": 0})


def test_the_gain_is_in_nats_a_token_of_the_first_answer():
    question = Question("q", "plot", "Why?", ("the king fled", "ignored"))
    # With the context -1 -1 -3, without it -3 -3 -3, over three words.
    assert Scorer(FakeReader(), KeptNumbers()).score(question, [leaf("the king")]) == {
        "gain": pytest.approx(4 / 3)
    }


def test_the_likeliest_option_counts_by_its_tokens():
    # "king" sums to -1 and "the old king" to -1 -1 -1: equal per token, and then the first is taken.
    options = ("the old king", "king", "queen")
    about = ("q", "multiple choice", "Who?", ("the old king",))
    scorer = Scorer(FakeReader(), KeptNumbers())
    right = Question(*about, options=options, answer_index=0)
    measures = scorer.score(right, [leaf("the old king")])
    assert measures == {"gain": pytest.approx(2), "correct": 1, "correct by gain": 1}
    wrong = Question(*about, options=options, answer_index=2)
    assert scorer.score(wrong, [leaf("the old king")]) == {"gain": 0, "correct": 0, "correct by gain": 0}


def test_an_option_that_is_likely_by_itself_does_not_win_by_gain():
    # "queen" stands in the question: it is as likely without the context, and the likeliest with it.
    question = Question("q", "multiple choice", "Who fed the queen?", ("a young cook",), None, (),
                        ("queen", "a young cook"), 1)  # fmt: skip
    measures = Scorer(FakeReader(), KeptNumbers()).score(question, [leaf("it was the cook")])
    assert (measures["correct"], measures["correct by gain"]) == (0, 1)


def test_a_context_is_read_once_whatever_system_found_it():
    reader, question = FakeReader(), Question("q", "plot", "Why?", ("the king",))
    contexts = [Context(question, system, 40, [leaf("the king")], 0.1) for system in ("leaf RAG", "fusion")]
    rows = list(scored(contexts, Scorer(reader, KeptNumbers())))
    assert [row["system"] for row in rows] == ["leaf RAG", "fusion"]
    assert reader.read == [prompt("Why?", [leaf("the king")]), prompt("Why?", [])]
    assert rows[0]["gain"] == rows[1]["gain"] == 2
