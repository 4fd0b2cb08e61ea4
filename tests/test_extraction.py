"""Relations out of sentences, code lines and a writer's JSON, each with the sentence that proves it."""

import json
import time
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from helpers.extraction import (
    POLICY_PATTERNS,
    POLICY_TYPES,
    SITE_PATTERNS,
    extract_aliases,
    extract_by_rules,
    extract_by_writer,
    pieces,
)
from helpers.graph import KnowledgeGraph, Relation
from helpers.pages import page_text
from helpers.policies import load_policies
from helpers.recording import ROOT


def page(text, source="page"):
    return Document(text, metadata={"source": source})


def facts(text, patterns=POLICY_PATTERNS):
    return [relation.fact for relation in extract_by_rules(page(text), patterns)]


def test_sentences_and_lines_without_their_marks():
    text = "# Title\n\nAsked A. R. today. Is it 4.90? Yes!\n- from a import b\n\n"
    assert pieces(text) == ["Title", "Asked A. R. today.", "Is it 4.90?", "Yes!", "from a import b"]


# The shop's rules.


def test_a_relation_carries_its_page_and_its_sentence():
    (relation,) = extract_by_rules(page("Hello. Order 7 contains Milk. Bye.", "order.md"), POLICY_PATTERNS)
    assert relation == Relation("Order 7", "contains", "Milk", "order.md", "Order 7 contains Milk.")


@pytest.mark.parametrize("kind", POLICY_TYPES)
def test_every_type_has_its_sentence(kind):
    assert facts(f"The Fresh-food rule {kind} Return policy 2024.") == [
        ("The Fresh-food rule", kind, "Return policy 2024")
    ]


def test_several_objects_in_one_sentence_are_several_relations_with_one_proof():
    relations = extract_by_rules(page("Order 7 contains Milk, Bread and Tea 500 g."), POLICY_PATTERNS)
    assert [relation.object for relation in relations] == ["Milk", "Bread", "Tea 500 g"]
    assert {relation.evidence for relation in relations} == {"Order 7 contains Milk, Bread and Tea 500 g."}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Milk is white.",
        "A photo of a red indicator replaces the photo of the damage, since it looks normal.",
        "A complaint that already contains the photos of the damage counts as a report.",
        "The shop replaces an invalid code within 2 working days of the report.",
        "Does Order 7 contain Milk?",
        "Order 7 does not contain Milk.",
        "If Order 7 contains Milk, it is cooled.",
    ],
)
def test_sentences_that_state_no_relation(text):
    assert facts(text) == []


def test_aliases():
    pages = [page("The RMA is another name for the Return number. KETT-12 is another name for Ember Kettle.")]
    assert extract_aliases(pages) == {"The RMA": "the Return number", "KETT-12": "Ember Kettle"}


# The site.


def test_an_import_says_what_a_library_consists_of():
    text = (
        "Load it:\n\nfrom transformers import AutoModel, AutoTokenizer\nfrom accelerate.utils import set_seed"
    )
    relations = extract_by_rules(page(text), SITE_PATTERNS)
    assert [relation.fact for relation in relations] == [
        ("AutoModel", "is part of", "transformers"),
        ("AutoTokenizer", "is part of", "transformers"),
        ("set_seed", "is part of", "accelerate"),
    ]
    assert relations[0].evidence == "from transformers import AutoModel, AutoTokenizer"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('model = AutoModel.from_pretrained("x")', ("AutoModel", "offers", "from_pretrained")),
        ('raw = tok.from_file("tokenizer.json")', ("from_file", "loads", "tokenizer.json")),
        ("AutoConfig reads config.json without the weights.", ("AutoConfig", "loads", "config.json")),
        ("save_pretrained writes the name to config.json.", ("save_pretrained", "saves to", "config.json")),
        ("PEFT stores it in adapter_config.json, always.", ("PEFT", "saves to", "adapter_config.json")),
        ("With it, load_dataset returns an IterableDataset.", ("load_dataset", "returns", "IterableDataset")),
        ("Here the Trainer needs max_steps.", ("Trainer", "requires", "max_steps")),
        ("Trainer is built on Accelerate and is quick.", ("Trainer", "uses", "Accelerate")),
        ("AutoTokenizer normally wraps a Tokenizer.", ("AutoTokenizer", "uses", "Tokenizer")),
    ],
)
def test_relations_of_libraries(text, fact):
    assert facts(text, SITE_PATTERNS) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "It needs metric_for_best_model.",
        "The weights are in model.safetensors.",
        "import torch",
        "The Trainer",
    ],
)
def test_a_sentence_without_two_names_gives_nothing(text):
    assert facts(text, SITE_PATTERNS) == []


# Both corpora.


def test_the_pages_of_the_shop(tmp_path):
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "b.md").write_text("# Order 7\n\nText.", encoding="utf-8")
    (tmp_path / "a.md").write_text("# Étage\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("no page", encoding="utf-8")
    first, second = load_policies(tmp_path)
    assert first.metadata == {"source": "https://shop.example/a.md", "title": "Étage"}
    assert (second.metadata["source"], second.page_content) == (
        "https://shop.example/orders/b.md",
        "# Order 7\n\nText.",
    )


def corpora():
    site = [page(page_text(path.read_text(encoding="utf-8")), str(path)) for path in html_files()]
    return [(load_policies(), POLICY_PATTERNS), (site, SITE_PATTERNS)]


def html_files() -> list[Path]:
    return sorted((ROOT / "data" / "site").rglob("*.html"))


def test_every_relation_of_both_corpora_has_its_sentence_in_its_page():
    for pages, patterns in corpora():
        texts = {document.metadata["source"]: document.page_content for document in pages}
        graph = KnowledgeGraph()
        for document in pages:
            assert graph.add(extract_by_rules(document, patterns), texts) == []
        assert len(graph) >= len(pages)


def test_a_thousand_pages_in_under_ten_seconds():
    for pages, patterns in corpora():
        thousand = (pages * (1000 // len(pages) + 1))[:1000]
        started = time.process_time()
        for document in thousand:
            extract_by_rules(document, patterns)
        assert time.process_time() - started < 10


@pytest.mark.parametrize("word", ["A", "Aa", "Aa bb ", "a_", "A, ", "a_b writes ", "(", "Aa.a"])
@pytest.mark.parametrize("length", [1000, 50_000])
def test_no_text_makes_a_pattern_hang(word, length):
    started = time.process_time()
    for patterns in (POLICY_PATTERNS, SITE_PATTERNS):
        extract_by_rules(page(word * (length // len(word))), patterns)
    assert time.process_time() - started < 2


# By a writer.

PAGE = page(
    "Milk is white. Order 7 contains Milk and is cold. The Fresh rule requires the Photo report.", "order"
)
GOOD = {
    "subject": "Order 7",
    "type": "contains",
    "object": "Milk",
    "evidence": "Order 7 contains Milk and is cold.",
}
RELATION = Relation("Order 7", "contains", "Milk", "order", "Order 7 contains Milk and is cold.")


def written(answer, **options):
    rejected = []
    relations = extract_by_writer(PAGE, lambda prompt: answer, rejected=rejected, **options)
    return relations, [entry.reason for entry in rejected]


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps([GOOD]),
        json.dumps(GOOD),
        f"```json\n{json.dumps([GOOD], indent=1)}\n```",
        f"Here is the list [as you asked]:\n{json.dumps([GOOD])}\nI hope this helps!",
        json.dumps([GOOD]).replace('"}]', '",},]'),
        json.dumps([GOOD])[:-12],  # cut off inside the evidence: the sentence around it is the proof
        json.dumps([GOOD, GOOD]),
    ],
)
def test_a_good_answer_in_any_wrapping(answer):
    assert written(answer) == ([RELATION], [])


def test_a_quote_grows_to_its_whole_sentence():
    assert written(json.dumps([GOOD | {"evidence": "Order 7 contains Milk"}])) == ([RELATION], [])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"evidence": "Order 7 contains Milk and Bread."}, "evidence not in source"),
        ({"evidence": ""}, "evidence not in source"),
        ({"evidence": "Milk is white."}, "the evidence does not name both"),
        ({"object": "Order 7"}, "self-loop"),
        ({"object": " "}, "empty name"),
        ({"type": "is a friend of"}, "unknown type"),
    ],
)
def test_what_the_page_does_not_prove_stays_out(change, reason):
    assert written(json.dumps([GOOD | change, GOOD])) == ([RELATION], [reason])


@pytest.mark.parametrize(
    "bad", [{"subject": "Order 7"}, GOOD | {"object": None}, GOOD | {"object": ["Milk"]}]
)
def test_an_entry_that_is_no_relation(bad):
    relations, (reason,) = written(json.dumps([bad]))
    assert relations == []
    assert reason.startswith("not a relation")


@pytest.mark.parametrize("answer", ["", "I cannot do this.", "[]", "null", "{", "[[[", '"contains"'])
def test_a_malformed_answer_gives_nothing_and_says_so(answer):
    relations, reasons = written(answer)
    assert relations == []
    assert len(reasons) == 1


def test_the_echoed_skeleton_of_the_prompt_is_no_relation():
    prompts = []
    extract_by_writer(PAGE, lambda prompt: prompts.append(prompt.to_string()) or "[]")
    relations, reasons = written(prompts[0][-120:])
    assert (relations, len(reasons)) == ([], 1)


def test_the_writer_sees_the_page_and_the_types():
    prompts = []
    extract_by_writer(
        PAGE, RunnableLambda(lambda prompt: prompts.append(prompt.to_string()) or "[]"), types=["eats"]
    )
    (prompt,) = prompts
    assert PAGE.page_content in prompt
    assert "types of relation: eats." in prompt


def test_reasons_need_not_be_asked_for():
    assert extract_by_writer(PAGE, lambda prompt: "no") == []


def test_what_a_writer_finds_passes_the_graphs_own_check():
    relations, _ = written(json.dumps([GOOD]))
    assert KnowledgeGraph().add(relations, {"order": PAGE.page_content}) == []
