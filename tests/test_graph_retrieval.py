"""Graph retrieval on a small shop: which sentences come, in which order, and where they stand."""

import pytest
from langchain_core.documents import Document

from helpers.evaluation import evidence_recall
from helpers.extraction import POLICY_PATTERNS, extract_by_rules
from helpers.graph import KnowledgeGraph
from helpers.graph_retrieval import GraphRetriever
from helpers.questions import Evidence

TEXTS = {
    "order": "# Order 7\n\nHello. Order 7 contains Milk and Bread. Order 7 was shipped by Van.",
    "milk": "Milk is governed by the Fresh rule.",
    "bread": "Bread is governed by the Return policy.",
    "tea": "Tea is governed by the Return policy. Tea is covered by the Warranty.",
    "fresh": "The Fresh rule is an exception to the Return policy.",
    "damage": "The Damage rule takes precedence over the Fresh rule. "
    "The Damage rule requires the Photo report.",
}
ALIASES = {"the 7-day rule": "Return policy", "fresh food exception": "Fresh rule"}


def shop_graph(texts=TEXTS):
    graph = KnowledgeGraph(ALIASES)
    for source, text in texts.items():
        assert graph.update(source, text, extract_by_rules(page(source, text), POLICY_PATTERNS)) == []
    return graph


def page(source, text):
    return Document(text, metadata={"source": source})


def ask(question, graph=None, **options):
    return GraphRetriever(graph=shop_graph() if graph is None else graph, **options).invoke(question)


def sentences(hits):
    return [hit.page_content for hit in hits]


def count_words(text):
    return len(text.split())


def test_the_path_between_two_named_entities_comes_first():
    hits = ask("Why is order 7 under the fresh food exception?", k=4)
    assert sentences(hits) == [
        "Order 7 contains Milk and Bread.",
        "Milk is governed by the Fresh rule.",
        # Then what changes the rule, before the rest of the order.
        "The Damage rule takes precedence over the Fresh rule.",
        "The Fresh rule is an exception to the Return policy.",
    ]


def test_a_hit_says_where_its_sentence_stands():
    best, *_ = ask("Why is order 7 under the Fresh rule?", k=1)
    about = best.metadata
    assert TEXTS[about["source"]][about["start"] : about["end"]] == best.page_content
    assert (about["source"], about["start"], about["end"]) == ("order", 18, 50)
    assert (about["level"], about["sources"], about["score"]) == (0, ["order"], 2.0)
    assert best.id == about["id"]


def test_one_sentence_that_proves_two_relations_is_one_hit():
    hits = ask("What is in Order 7?", k=1)
    assert hits[0].metadata["relation"] == "Order 7 contains Bread; Order 7 contains Milk"


def test_recall_is_literal():
    quote = "Milk is governed by the Fresh rule."
    evidence = [Evidence("milk", 0, len(quote), quote)]
    assert evidence_recall(evidence, ask("Why is order 7 under the Fresh rule?", k=2)) == 1.0
    assert evidence_recall(evidence, ask("Why is order 7 under the Fresh rule?", k=1)) == 0.0


def test_from_one_entity_outwards_the_nearer_first():
    hits = ask("Tell me about Milk", k=9)
    assert sentences(hits) == [
        "Milk is governed by the Fresh rule.",
        "Order 7 contains Milk and Bread.",
        "The Damage rule takes precedence over the Fresh rule.",
        "The Fresh rule is an exception to the Return policy.",
        "The Damage rule requires the Photo report.",
    ]
    assert [hit.metadata["score"] for hit in hits] == [0.1, 0.1, 0.05, 0.05, 0.033333]


def test_words_of_the_question_go_before_nearness():
    assert sentences(ask("Which photo shows bad Milk?", k=1)) == [
        "The Damage rule requires the Photo report."
    ]


def test_words_meet_in_other_endings():
    assert sentences(ask("Who ships Order 7, what is the shipping?", k=1)) == ["Order 7 was shipped by Van."]


def test_from_a_rule_not_back_to_all_its_products_neighbours():
    # The products of a named rule come, what else is known of these products does not.
    assert "Tea is governed by the Return policy." in sentences(ask("the 7-day rule", k=20))
    assert "Tea is covered by the Warranty." not in sentences(ask("the 7-day rule", k=20))
    # Nor do other products of a rule that was only reached.
    assert "Tea is governed by the Return policy." not in sentences(ask("Bread", k=20))


def test_hops_limit_how_far_it_walks():
    assert sentences(ask("Milk", k=20, hops=1)) == [
        "Milk is governed by the Fresh rule.",
        "Order 7 contains Milk and Bread.",
    ]


def test_a_fact_that_two_pages_state_comes_once():
    texts = TEXTS | {"shelf": "Milk is governed by the Fresh rule. See there."}
    found = sentences(ask("Milk", shop_graph(texts), k=20))
    assert found.count("Milk is governed by the Fresh rule.") == 1


@pytest.mark.parametrize("question", ["", "Hello?", "Is orders 77 under a rule?"])
def test_no_entity_no_hit(question):
    assert ask(question, k=5) == []


def test_an_empty_graph_has_no_hit():
    assert ask("Why is order 7 under the Fresh rule?", KnowledgeGraph(), k=5) == []


def test_two_entities_without_a_path_still_bring_what_is_known_of_each():
    graph = shop_graph(TEXTS | {"sun": "Sun contains Heat."})
    assert "Sun contains Heat." in sentences(ask("Milk and Sun", graph, k=20))


def test_a_removed_page_is_no_longer_quoted():
    graph = shop_graph()
    graph.remove("damage")
    assert not any("Damage" in sentence for sentence in sentences(ask("Milk", graph, k=20)))


def test_k_and_budget_limit_what_comes():
    question = "Why is order 7 under the fresh food exception?"
    assert len(ask(question, k=3)) == 3
    hits = ask(question, token_budget=13, count_tokens=count_words)
    assert [count_words(hit.page_content) for hit in hits] == [6, 7]


def test_the_same_question_twice():
    assert ask("Order 7 and the 7-day rule", k=9) == ask("Order 7 and the 7-day rule", k=9)
