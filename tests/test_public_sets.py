"""Sets of documents and questions: what is read, and what each fault is told by."""

import json

import pytest

from public.sets import Passage, load_set

DOCS = [
    {"id": "tale", "title": "A tale", "text": "Once upon a time. The end.", "tier": "mini"},
    {"id": "other", "text": "Nothing here.", "tier": "full"},
]
QUESTIONS = [
    {
        "id": "q1",
        "question": "When?",
        "answers": ["once"],
        "type": "local",
        "doc_id": "tale",
        "evidence": [{"doc_id": "tale", "text": "The end."}],
        "tier": "mini",
    },
    {
        "id": "q2",
        "question": "Which?",
        "answers": ["b"],
        "options": ["a", "b"],
        "answer_index": 1,
        "type": "multiple choice",
        "doc_id": "other",
        "tier": "full",
    },
]


def write(folder, docs=DOCS, questions=QUESTIONS):
    for name, rows in (("docs", docs), ("questions", questions)):
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_a_set_is_read_with_the_places_of_its_gold_passages(tmp_path):
    data = load_set(write(tmp_path))
    assert [document.metadata for document in data.documents] == [
        {"source": "tale", "title": "A tale"},
        {"source": "other", "title": "other"},
    ]
    first, second = data.questions
    assert first.evidence == (Passage("tale", 18, 26, "The end."),)
    assert (first.kind, first.answers, first.options) == ("local", ("once",), ())
    assert (second.options, second.answer_index) == (("a", "b"), 1)
    assert not data.is_pooled


def test_the_mini_tier_keeps_its_own_rows(tmp_path):
    data = load_set(write(tmp_path), "mini")
    assert [question.id for question in data.questions] == ["q1"]
    assert len(data.documents) == 1


def test_the_rest_is_what_is_not_mini(tmp_path):
    data, mini = load_set(write(tmp_path), "rest"), load_set(write(tmp_path), "mini")
    whole = load_set(write(tmp_path))
    assert {q.id for q in data.questions} == {q.id for q in whole.questions} - {q.id for q in mini.questions}
    assert len(data.documents) + len(mini.documents) == len(whole.documents)


def test_a_set_whose_questions_name_no_document_is_pooled(tmp_path):
    questions = [{**QUESTIONS[0], "doc_id": None}, QUESTIONS[1]]
    assert load_set(write(tmp_path, questions=questions)).is_pooled


@pytest.mark.parametrize(
    ("docs", "questions", "message"),
    [
        ([*DOCS, DOCS[0]], QUESTIONS, "docs.jsonl of .*the same id twice: tale"),
        (DOCS, [*QUESTIONS, QUESTIONS[0]], "questions.jsonl of .*the same id twice: q1"),
        ([{"id": "tale"}], QUESTIONS, "docs.jsonl of .*, row 1: no text"),
        (DOCS, [{**QUESTIONS[0], "answers": []}], "questions.jsonl of .*, row 1: no answers"),
        (["{", *DOCS], QUESTIONS, "docs.jsonl of .*a line is no JSON"),
        (["[]"], QUESTIONS, "docs.jsonl of .*, row 1: no id, text"),
        (DOCS, [{**QUESTIONS[0], "doc_id": "lost"}], "question q1: no document lost"),
        (DOCS, [{**QUESTIONS[1], "answer_index": 2}], "question q2: answer_index 2 for 2 options"),
        (
            DOCS,
            [{**QUESTIONS[0], "evidence": [{"doc_id": "tale", "text": "the end"}]}],
            "question q1: the evidence 'the end' does not stand in tale",
        ),
        (
            DOCS,
            [{**QUESTIONS[0], "evidence": [{"doc_id": "tale", "text": "The end.", "start": 3}]}],
            "question q1: the evidence 'The end.' does not stand in tale",
        ),
        (
            DOCS,
            [{**QUESTIONS[0], "evidence": [{"doc_id": "lost", "text": "The end."}]}],
            "question q1: no document lost",
        ),
    ],
)
def test_a_fault_is_told_with_its_place(tmp_path, docs, questions, message):
    with pytest.raises(ValueError, match=message):
        load_set(write(tmp_path, docs, questions))


def test_a_missing_file_a_missing_tier_and_an_empty_tier(tmp_path):
    with pytest.raises(ValueError, match="has no docs.jsonl"):
        load_set(tmp_path)
    with pytest.raises(ValueError, match="no tier 'big'"):
        load_set(write(tmp_path), "big")
    with pytest.raises(ValueError, match="questions.jsonl of .* has no row of tier mini"):
        load_set(write(tmp_path, questions=QUESTIONS[1:]), "mini")
