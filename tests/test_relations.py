"""What makes a relation unfit for a graph, each with its reason."""

import pytest

from helpers.relations import Relation, fault, keyed

TEXTS = {"page": "Order 7 contains Milk. Milk is fresh."}
GOOD = Relation("Order 7", "contains", "Milk", "page", "Order 7 contains Milk.")


def test_a_relation_with_its_sentence_is_without_fault():
    assert fault(GOOD, TEXTS) is None
    assert str(GOOD) == "Order 7 contains Milk"


@pytest.mark.parametrize(
    "subject, object, source, evidence, reason",
    [
        (" ", "Milk", "page", "Milk is fresh.", "empty name"),
        ("Milk", "the milk", "page", "Milk is fresh.", "self-loop"),
        ("Order 7", "Milk", "other", "Milk is fresh.", "no text of its source"),
        ("Order 7", "Milk", "page", "order 7 contains milk.", "evidence not in source"),
        ("Order 7", "Milk", "page", " ", "evidence not in source"),
    ],
)
def test_a_fault_names_its_reason(subject, object, source, evidence, reason):
    assert fault(Relation(subject, "contains", object, source, evidence), TEXTS) == reason


def test_two_spellings_of_a_fact_have_one_key():
    spelt = Relation("the Order 7", "contains", "MILK", "page", "Order 7 contains Milk.")
    assert keyed(spelt, lambda name: name.lower().removeprefix("the ")) == keyed(GOOD, str.lower)
