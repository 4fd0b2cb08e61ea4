"""The policy pages and their questions: form, literal evidence, relation sentences that rules can read."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from helpers.evaluation import keyword_match

POLICIES = Path(__file__).parents[1] / "data" / "policies"
FIELDS = {"id", "kind", "question", "keywords", "pages", "evidence"}
PAGE_RANGE = {"clause": (1, 2), "theme": (3, 5), "connection": (2, 3)}
QUOTE_RANGE = {"clause": (2, 3), "theme": (3, 5), "connection": (3, 6)}
FOLDERS = {"orders": 8, "products": 9, "policies": 9}
VERBS = [
    "contains",
    "was paid with",
    "was shipped by",
    "was sent from",
    "is governed by",
    "is covered by",
    "can be swapped under",
    "is charged under",
    "has a special case for",
    "is an exception to",
    "takes precedence over",
    "requires",
    "escalates to",
    "replaces",
    "is an old version of",
    "is another name for",
]
NAMING = {"is another name for", "is an old version of"}
RELATION = re.compile(rf"(?:The )?([A-Z0-9][^.]*?) ({'|'.join(VERBS)}) (?:the )?([A-Z][^.]*)\.")

PAGES = {
    path.relative_to(POLICIES).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(POLICIES.rglob("*.md"))
    if path.name != "README.md"
}
ROWS = (POLICIES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
QUESTIONS = [json.loads(row) for row in ROWS]
TITLES = {text.partition("\n")[0].removeprefix("# ") for text in PAGES.values()}
each_page = pytest.mark.parametrize("page", PAGES)
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=[row["id"] for row in QUESTIONS])


def sentences(page):
    """Return the sentences of a page; the full stops of initials such as "A. R." end none."""
    _, _, body = PAGES[page].partition("\n")
    lines = (line for line in body.splitlines() if line)
    return [s for line in lines for s in re.split(r"(?<!\b[A-Z]\.)(?<=[.!?]) (?=[A-Z0-9])", line)]


def relations(texts):
    return [found.groups() for text in texts if (found := RELATION.fullmatch(text))]


RELATIONS = [relation for page in PAGES for relation in relations(sentences(page))]
ALIASES = {subject: name for subject, verb, name in RELATIONS if verb in NAMING}


def keywords_in(text, row):
    return [k for k in row["keywords"] if keyword_match(text, {k["keyword"]: k["aliases"]})]


def test_there_are_enough_pages_of_each_sort():
    assert len(PAGES) >= 26
    found = Counter(page.partition("/")[0] for page in PAGES)
    assert all(found[folder] >= least for folder, least in FOLDERS.items())


@each_page
def test_a_page_is_a_title_and_short_plain_prose(page):
    title, _, body = PAGES[page].partition("\n")
    assert re.fullmatch(r"# [A-Z]\w.*", title)
    assert 120 <= len(PAGES[page].split()) <= 260
    assert not re.search(r"^\s*([#>|*-]|\d+\.)", body, re.MULTILINE)


def test_titles_are_unique():
    assert len(TITLES) == len(PAGES)


def test_each_kind_has_ten_questions_with_ids_of_their_own():
    assert Counter(row["kind"] for row in QUESTIONS) == {kind: 10 for kind in PAGE_RANGE}
    assert len({row["id"] for row in QUESTIONS}) == len({row["question"] for row in QUESTIONS}) == 30


@each_question
def test_form(question):
    connection = question["kind"] == "connection"
    assert set(question) == FIELDS | ({"connects"} if connection else set())
    assert re.fullmatch(rf"{question['kind']}-\d\d", question["id"])
    assert 8 <= len(question["question"].split()) <= 25 and question["question"].endswith("?")
    for entry in question["keywords"]:
        assert set(entry) == {"keyword", "aliases"}
        forms = [entry["keyword"], *entry["aliases"]]
        assert all(form.strip() for form in forms) and len(set(forms)) == len(forms)
    assert all(set(entry) == {"page", "quote"} for entry in question["evidence"])


@each_question
def test_every_quote_is_one_literal_sentence_that_stands_once_on_its_page(question):
    for entry in question["evidence"]:
        assert entry["quote"] in sentences(entry["page"]), entry
        assert PAGES[entry["page"]].count(entry["quote"]) == 1, entry


@each_question
def test_number_of_pages_and_quotes_fits_the_kind(question):
    evidence = question["evidence"]
    assert question["pages"] == list(dict.fromkeys(entry["page"] for entry in evidence))
    low, high = PAGE_RANGE[question["kind"]]
    assert low <= len(question["pages"]) <= high
    low, high = QUOTE_RANGE[question["kind"]]
    assert low <= len({entry["quote"] for entry in evidence}) == len(evidence) <= high


@each_question
def test_keywords_are_not_all_given_away_and_stand_in_the_evidence(question):
    assert 2 <= len(question["keywords"]) <= 4
    assert len(keywords_in(question["question"], question)) < len(question["keywords"])
    text = question["question"] + " " + " ".join(entry["quote"] for entry in question["evidence"])
    assert keywords_in(text, question) == question["keywords"]


def test_a_simple_rule_finds_every_type_of_relation():
    assert {verb for _, verb, _ in RELATIONS} == set(VERBS)
    assert len([verb for _, verb, _ in RELATIONS if verb not in NAMING]) >= 40


def test_a_relation_is_stated_once():
    assert [relation for relation, times in Counter(RELATIONS).items() if times > 1] == []


def test_both_ends_of_a_relation_have_a_page_or_are_a_name_of_one():
    ends = {end for subject, _, name in RELATIONS for end in (subject, name)}
    assert ends - TITLES - set(ALIASES) == set()
    assert set(ALIASES.values()) <= TITLES and not TITLES & set(ALIASES)


def test_an_order_and_a_product_state_their_edges():
    having = {(subject, verb) for subject, verb, _ in RELATIONS}
    for page, text in PAGES.items():
        verb = {"orders": "contains", "products": "is governed by"}.get(page.partition("/")[0])
        assert verb is None or (text.partition("\n")[0].removeprefix("# "), verb) in having, page


@each_question
def test_the_evidence_of_a_connection_holds_every_hop_of_its_path(question):
    if question["kind"] == "connection":
        start, goal = question["connects"]
        assert {start, goal} <= TITLES
        edges = [{subject, name} for subject, _, name in relations(e["quote"] for e in question["evidence"])]
        reached = {start}
        for _ in edges:
            reached = reached.union(*(edge for edge in edges if edge & reached))
        assert goal in reached


def test_the_rule_in_force_and_the_old_one_are_told_apart():
    (new, _, old), *more = [relation for relation in RELATIONS if relation[1] == "replaces"]
    assert not more and ALIASES[new] == ALIASES[old]
    assert any("in force" in text and new in text and old in text for text in PAGES.values())
