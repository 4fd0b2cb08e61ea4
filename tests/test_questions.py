"""Questions: how they are read, and that the corpus literally holds what ours are measured on."""

import json
from collections import Counter
from pathlib import Path

import pytest
from langchain_core.documents import Document

from helpers.crawl import page_text
from helpers.evaluation import keyword_match
from helpers.questions import Evidence, Question, load_questions

DATA = Path(__file__).parents[1] / "data"
SITE = DATA / "site"
COUNTS = {"specific": 17, "procedural": 14, "thematic": 13, "unanswerable": 6}
PAGE_RANGE = {"specific": (1, 1), "procedural": (2, 4), "thematic": (4, 7), "unanswerable": (0, 0)}
QUOTE_RANGE = {"specific": (1, 1), "procedural": (2, 4), "thematic": (4, 7), "unanswerable": (0, 0)}
FIELDS = {"id", "kind", "question", "keywords", "pages", "evidence", "origin", "role"}
SOURCE_ROLES = {"keyword score": 3, "judge": 1, "probe": 3}
SOURCE_KEYWORDS = [
    {"pipeline", "inference", "sentiment-analysis"},
    {"datasets", "map", "tokenizer", "parallelized"},
    {"PEFT", "parameter-efficient", "adapter", "LoRA"},
]

QUESTIONS = [json.loads(line) for line in (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=[row["id"] for row in QUESTIONS])


@pytest.fixture(scope="module")
def pages():
    paths = SITE.rglob("*.html")
    return {p.relative_to(SITE).as_posix(): page_text(p.read_text(encoding="utf-8")) for p in paths}


def keyword_set(row):
    return {entry["keyword"] for entry in row["keywords"]}


def keywords_in(text, row):
    return [k for k in row["keywords"] if keyword_match(text, {k["keyword"]: k["aliases"]})]


def test_each_kind_has_its_number_of_questions():
    assert Counter(row["kind"] for row in QUESTIONS) == COUNTS


def test_ids_and_questions_are_unique():
    assert len({row["id"] for row in QUESTIONS}) == len(QUESTIONS)
    assert len({row["question"].casefold() for row in QUESTIONS}) == len(QUESTIONS)


def test_the_seven_questions_of_the_source_are_among_them():
    source = [row for row in QUESTIONS if row["origin"] == "source"]
    assert Counter(row["role"] for row in source) == SOURCE_ROLES
    assert [keyword_set(row) for row in source if row["role"] == "keyword score"] == SOURCE_KEYWORDS


@each_question
def test_form(question):
    assert set(question) == FIELDS
    assert question["id"].rpartition("-")[0] == question["kind"]
    assert question["origin"] in ("own", "source")
    assert (question["role"] is None) == (question["origin"] == "own")
    assert 8 <= len(question["question"].split()) <= 25
    for entry in question["keywords"]:
        assert set(entry) == {"keyword", "aliases"}
        forms = [entry["keyword"], *entry["aliases"]]
        assert all(form.strip() for form in forms) and len(set(forms)) == len(forms)
    for entry in question["evidence"]:
        assert set(entry) == {"page", "quote"}


@each_question
def test_quotes_stand_literally_and_once_on_their_page(question, pages):
    for entry in question["evidence"]:
        assert pages[entry["page"]].count(entry["quote"]) == 1, entry


@each_question
def test_quotes_are_short_and_inside_one_paragraph(question):
    for quote in (entry["quote"] for entry in question["evidence"]):
        assert 40 <= len(quote) <= 220 and "\n\n" not in quote, quote


@each_question
def test_pages_are_the_distinct_pages_of_the_evidence(question):
    assert question["pages"] == list(dict.fromkeys(entry["page"] for entry in question["evidence"]))
    assert not any(page.endswith("index.html") for page in question["pages"])


@each_question
def test_number_of_pages_and_quotes_fits_the_kind(question):
    low, high = PAGE_RANGE[question["kind"]]
    assert low <= len(question["pages"]) <= high
    low, high = QUOTE_RANGE[question["kind"]]
    # The source asks for two things at once, what a pipeline is and a task of it: two quotes of one page.
    assert low <= len(question["evidence"]) <= high + (question["id"] == "specific-01")
    if question["kind"] == "thematic":
        assert len(question["evidence"]) == len(question["pages"])


@each_question
def test_the_question_does_not_give_all_keywords_away(question):
    if question["kind"] != "unanswerable":
        assert 2 <= len(question["keywords"]) <= 4
        assert len(keywords_in(question["question"], question)) < len(question["keywords"])


@each_question
def test_the_quotes_hold_the_keywords_that_the_question_lacks(question):
    text = question["question"] + " " + " ".join(entry["quote"] for entry in question["evidence"])
    assert keywords_in(text, question) == question["keywords"]


@each_question
def test_unanswerable_questions_have_neither_keywords_nor_evidence(question):
    empty = not (question["keywords"] or question["pages"] or question["evidence"])
    assert empty == (question["kind"] == "unanswerable")


@pytest.mark.parametrize("word", ["AdaLoRA", "GPTQ", "NVMe", "FAISS", "private", "Optuna"])
def test_the_subject_of_an_unanswerable_question_is_not_in_the_corpus(word, pages):
    asked = [row for row in QUESTIONS if word.casefold() in row["question"].casefold()]
    assert [row["kind"] for row in asked] == ["unanswerable"]
    assert not any(word.casefold() in text.casefold() for text in pages.values())


# How they are read.


def question_file(folder, **changes):
    row = {"id": "q1", "kind": "specific", "question": "How?", "role": None}
    row |= {"keywords": [{"keyword": "map", "aliases": ["map()"]}], "evidence": []}
    file = folder / "questions.jsonl"
    file.write_text(json.dumps(row | changes) + "\n\n", encoding="utf-8")
    return file


def test_questions_know_where_their_quotes_stand(tmp_path):
    evidence = [{"page": "data/page.html", "quote": "the quote"}]
    page = Document("Here is the quote.", metadata={"source": "http://127.0.0.1:1/data/page.html"})
    (question,) = load_questions(question_file(tmp_path, evidence=evidence), [page])
    assert question == Question(
        "q1", "specific", "How?", {"map": ["map()"]}, [Evidence(page.metadata["source"], 8, 17, "the quote")]
    )


@pytest.mark.parametrize(
    ("text", "address"), [("other words", "/a/page.html"), ("the quote", "/a/other-page.html")]
)
def test_a_quote_that_is_not_on_its_page_is_an_error(tmp_path, text, address):
    evidence = [{"page": "page.html", "quote": "the quote"}]
    page = Document(text, metadata={"source": f"http://127.0.0.1:1{address}"})
    with pytest.raises(ValueError, match="question q1: the quote 'the quote' is not on page.html"):
        load_questions(question_file(tmp_path, evidence=evidence), [page])
