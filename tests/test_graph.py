"""The graph on an order, its product and two rules: every path and every refusal worked out by hand."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace
from itertools import permutations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.graph import KnowledgeGraph, Rejected, Relation

TEXTS = {
    "order": "Order 7 contains Milk. Order 7 was shipped by Van.",
    "milk": "Milk is governed by the Fresh rule.",
    "rules": "The Fresh rule is an exception to the Return policy. Bread is governed by the Return policy.",
}
CONTAINS = Relation("Order 7", "contains", "Milk", "order", "Order 7 contains Milk.")
SHIPPED = Relation("Order 7", "was shipped by", "Van", "order", "Order 7 was shipped by Van.")
GOVERNED = Relation("Milk", "is governed by", "Fresh rule", "milk", "Milk is governed by the Fresh rule.")
EXCEPTION = Relation(
    "Fresh rule",
    "is an exception to",
    "Return policy",
    "rules",
    "The Fresh rule is an exception to the Return policy.",
)
BREAD = Relation(
    "Bread", "is governed by", "Return policy", "rules", "Bread is governed by the Return policy."
)
ALL = [CONTAINS, SHIPPED, GOVERNED, EXCEPTION, BREAD]


@pytest.fixture
def graph():
    graph = KnowledgeGraph()
    assert graph.add(ALL, TEXTS) == []
    return graph


def graph_of(relations, aliases=None, texts=TEXTS):
    graph = KnowledgeGraph(aliases)
    assert graph.add(relations, texts) == []
    return graph


# What comes in.


def test_relations_by_page_and_place(graph):
    assert graph.relations == [GOVERNED, CONTAINS, SHIPPED, EXCEPTION, BREAD]
    assert graph.entities == ["Bread", "Fresh rule", "Milk", "Order 7", "Return policy", "Van"]
    assert repr(graph) == "KnowledgeGraph(6 entities, 5 relations)"


def test_the_network_is_a_multigraph_with_the_relation_on_its_edges(graph):
    assert isinstance(graph.network, nx.MultiDiGraph)
    assert graph.network.edges["Order 7", "Milk", 0]["relation"] == CONTAINS


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"evidence": "Order 7 contains Cheese."}, "evidence not in source"),
        ({"evidence": "order 7 contains milk."}, "evidence not in source"),
        ({"evidence": ""}, "evidence not in source"),
        ({"evidence": " "}, "evidence not in source"),
        ({"source": "gone"}, "no text of its source"),
        ({"source": "milk"}, "evidence not in source"),
        ({"object": "the order 7"}, "self-loop"),
        ({"subject": ""}, "empty name"),
        ({"object": "  "}, "empty name"),
        ({"type": ""}, "empty name"),
    ],
)
def test_a_relation_without_proof_stays_out(change, reason):
    graph, bad = KnowledgeGraph(), replace(CONTAINS, **change)
    assert graph.add([bad, GOVERNED], TEXTS) == [Rejected(bad, reason)]
    assert graph.relations == [GOVERNED]


def test_two_aliases_of_one_entity_are_a_self_loop():
    bad = replace(CONTAINS, object="The parcel")
    (rejected,) = KnowledgeGraph({"parcel": "Order 7"}).add([bad], TEXTS)
    assert rejected.reason == "self-loop"


def test_nothing_in_nothing_out():
    graph = KnowledgeGraph()
    assert graph.add([], {}) == []
    assert graph.relations == graph.entities == graph.communities() == graph.remove("order") == []
    assert graph.mentioned("Order 7") == []


def test_the_same_relation_twice_is_one(graph):
    graph.add([CONTAINS, replace(CONTAINS, subject="The order 7")], TEXTS)
    assert len(graph) == 5


def test_evidence_that_stands_twice_is_placed_at_its_first():
    text = "x Milk. Milk is cold. Milk is cold."
    relation = Relation("Milk", "is", "cold", "page", "Milk is cold.")
    assert graph_of([relation], texts={"page": text}).place(relation) == (8, 21)


# One entity, several names.


def test_two_names_of_one_entity():
    texts = {
        "a": "The Return policy holds Bread.",
        "b": "Return Policy holds Rice. The 7-day rule holds Salt.",
    }
    relations = [
        Relation("The Return policy", "holds", "Bread", "a", "The Return policy holds Bread."),
        Relation("Return Policy", "holds", "Rice", "b", "Return Policy holds Rice."),
        Relation("the 7-day rule", "holds", "Salt", "b", "The 7-day rule holds Salt."),
    ]
    graph = graph_of(relations, {"7-day rule": "the Return policy"}, texts)
    assert graph.entities == ["Bread", "Return policy", "Rice", "Salt"]
    assert [relation.subject for relation in graph.about("The 7-DAY rule")] == ["Return policy"] * 3
    assert graph.mentioned("What does the 7 day rule say of rice?") == ["Return policy", "Rice"]


def test_without_an_alias_the_most_frequent_spelling_is_the_name():
    texts = {"a": "milk in A. Milk in B. Milk in C."}
    relations = [
        Relation(name, "in", place, "a", f"{name} in {place}.")
        for name, place in (("milk", "A"), ("Milk", "B"), ("Milk", "C"))
    ]
    for order in permutations(relations):
        assert "Milk" in graph_of(order, texts=texts).entities


# Versions.


def test_removing_a_page_takes_exactly_its_relations(graph):
    assert graph.remove("rules") == [EXCEPTION, BREAD]
    assert graph.relations == [GOVERNED, CONTAINS, SHIPPED]
    assert "Bread" not in graph.entities


def test_a_new_version_replaces_its_page_alone(graph):
    text = "Milk is governed by the Return policy."
    new = replace(GOVERNED, object="Return policy", evidence=text)
    assert graph.update("milk", text, [new]) == []
    assert graph.relations == [new, CONTAINS, SHIPPED, EXCEPTION, BREAD]
    assert graph.paths("Order 7", "Return policy")[0] == [CONTAINS, new]


def test_a_new_version_that_no_longer_proves_a_relation_loses_it(graph):
    assert graph.update("milk", "Milk is white.", [GOVERNED]) == [
        Rejected(GOVERNED, "evidence not in source")
    ]
    assert graph.paths("Order 7", "Return policy") == []
    assert GOVERNED not in graph.relations


def test_an_update_takes_no_relation_of_another_page(graph):
    (rejected,) = graph.update("milk", TEXTS["milk"], [CONTAINS])
    assert rejected.reason == "no text of its source"
    assert CONTAINS in graph.relations  # of the page "order", which was not touched


def test_a_page_removed_while_its_relations_are_cited(graph):
    cited = graph.paths("Order 7", "Return policy")[0]
    graph.remove("milk")
    assert graph.paths("Order 7", "Return policy") == []
    # Whoever kept the old path can see which hop lost its proof.
    texts = {source: text for source, text in TEXTS.items() if source != "milk"}
    fresh = KnowledgeGraph()
    assert fresh.add(cited, texts) == [Rejected(GOVERNED, "no text of its source")]


def test_a_fact_that_two_pages_state_survives_the_removal_of_one(graph):
    other = replace(GOVERNED, source="shelf", evidence="Milk: see the Fresh rule.")
    graph.add([other], {"shelf": "Milk: see the Fresh rule."})
    assert graph.proofs(GOVERNED) == [GOVERNED, other]
    assert graph.paths("Order 7", "Fresh rule") == [[CONTAINS, GOVERNED]]  # one path, not two
    graph.remove("milk")
    assert graph.paths("Order 7", "Fresh rule") == [[CONTAINS, other]]


def test_faults_are_relations_that_the_texts_no_longer_prove(graph):
    assert graph.faults(TEXTS) == []
    assert graph.faults(TEXTS | {"milk": "Milk is white."}) == [Rejected(GOVERNED, "evidence not in source")]
    gone = {"milk": TEXTS["milk"], "order": TEXTS["order"]}
    assert [rejected.reason for rejected in graph.faults(gone)] == ["no text of its source"] * 2


some_relations = st.lists(
    st.builds(
        lambda a, b, page: Relation(a, "to", b, page, f"{a} to {b}."),
        st.sampled_from(["A", "the a", "B", "C", "D"]),
        st.sampled_from(["A", "B", "the b", "C", "D"]),
        st.sampled_from(["p1", "p2", "p3"]),
    )
)


def every_text(relations):
    texts = {"p1": "", "p2": "", "p3": ""}
    for relation in relations:
        texts[relation.source] += relation.evidence + " "
    return texts


@settings(deadline=None)
@given(some_relations, some_relations)
def test_removing_what_was_added_restores_the_graph(before, added):
    before = [relation for relation in before if relation.source != "p3"]
    added = [replace(relation, source="p3") for relation in added]
    graph = KnowledgeGraph()
    graph.add(before, every_text(before))
    relations, network, groups = graph.relations, list(graph.network.edges), graph.communities()
    graph.add(added, every_text(added))
    graph.remove("p3")
    assert (graph.relations, list(graph.network.edges), graph.communities()) == (relations, network, groups)


@settings(deadline=None)
@given(some_relations, st.randoms())
def test_the_order_in_which_pages_come_does_not_matter(relations, random):
    shuffled = random.sample(relations, len(relations))
    one, two = KnowledgeGraph(), KnowledgeGraph()
    one.add(relations, every_text(relations))
    two.add(shuffled, every_text(relations))
    assert one.relations == two.relations
    assert one.entities == two.entities


# Paths.


def test_a_path_with_the_evidence_of_every_hop(graph):
    assert graph.paths("Order 7", "Fresh rule") == [[CONTAINS, GOVERNED]]
    assert [hop.evidence for hop in graph.paths("order 7", "the fresh rule")[0]] == [
        "Order 7 contains Milk.",
        "Milk is governed by the Fresh rule.",
    ]


def test_edges_may_be_walked_backwards(graph):
    assert graph.paths("Fresh rule", "Order 7") == [[GOVERNED, CONTAINS]]
    assert graph.paths("Milk", "Bread") == [[GOVERNED, EXCEPTION, BREAD]]


def test_not_connected_is_an_empty_list(graph):
    graph.add([Relation("Sun", "warms", "Sea", "sky", "Sun warms Sea.")], {"sky": "Sun warms Sea."})
    assert graph.paths("Order 7", "Sun") == []
    assert graph.paths("Order 7", "Bread", max_hops=3) == []  # four hops away
    assert len(graph.paths("Order 7", "Bread", max_hops=4)) == 1
    assert graph.paths("Milk", "the milk") == graph.paths("Milk", "Van", max_hops=0) == []


def test_an_unknown_name_is_an_error_that_helps(graph):
    with pytest.raises(KeyError, match="no entity 'Mlik' in the graph; did you mean Milk"):
        graph.paths("Order 7", "Mlik")
    with pytest.raises(KeyError, match="no entity"):
        graph.about("")


def test_the_shortest_first_then_by_names():
    edges = [("A", "B"), ("B", "D"), ("A", "C"), ("C", "D"), ("D", "A"), ("B", "C")]
    relations = [Relation(a, "to", b, "page", f"{a} to {b}.") for a, b in edges]
    graph = graph_of(relations, texts={"page": " ".join(relation.evidence for relation in relations)})
    assert [[str(hop) for hop in path] for path in graph.paths("A", "D")] == [
        ["D to A"],
        ["A to B", "B to D"],
        ["A to C", "C to D"],
        ["A to B", "B to C", "C to D"],
        ["A to C", "B to C", "B to D"],
    ]
    assert len(graph.paths("A", "D", limit=2)) == 2


def test_two_types_between_two_entities_are_two_paths():
    relations = [Relation("A", kind, "B", "page", f"A {kind} B.") for kind in ("uses", "loads")]
    graph = graph_of(relations, texts={"page": "A uses B. A loads B."})
    assert [path[0].type for path in graph.paths("A", "B")] == ["loads", "uses"]


@settings(deadline=None)
@given(some_relations)
def test_paths_agree_with_networkx(relations):
    graph = KnowledgeGraph()
    graph.add(relations, every_text(relations))
    if not {"A", "D"} <= set(graph.entities):
        return
    facts = nx.MultiGraph()
    facts.add_edges_from({(relation.subject, relation.object, relation.fact) for relation in graph.relations})
    expected = sorted(
        tuple(key for _, _, key in path) for path in nx.all_simple_edge_paths(facts, "A", "D", cutoff=4)
    )
    found = graph.paths("A", "D")
    assert sorted(tuple(hop.fact for hop in path) for path in found) == expected
    assert [len(path) for path in found] == sorted(len(path) for path in found)


# Communities.


def test_two_groups_and_a_bridge():
    pairs = [("A", "B"), ("B", "C"), ("A", "C"), ("X", "Y"), ("Y", "Z"), ("X", "Z"), ("C", "X")]
    relations = [Relation(a, "to", b, "page", f"{a} to {b}.") for a, b in pairs]
    graph = graph_of(relations, texts={"page": " ".join(relation.evidence for relation in relations)})
    assert graph.communities() == [["A", "B", "C"], ["X", "Y", "Z"]]


def test_communities_are_the_same_in_every_process():
    code = (
        "from helpers.graph import *;"
        "n = [(i, (i * 7 + 3) % 40) for i in range(40)] + [(i, i // 2) for i in range(40)];"
        "r = [Relation(f'e{a}', 'to', f'e{b}', 'p', f'e{a} to e{b}.') for a, b in n];"
        "g = KnowledgeGraph(); g.add(r, {'p': ' '.join(x.evidence for x in r)}); print(g.communities(3))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


# Files.


def test_what_is_saved_is_loaded(graph, tmp_path):
    graph = graph_of(ALL, {"the cold clause": "Fresh rule"})
    graph.save(tmp_path / "new" / "graph.jsonl")
    again = KnowledgeGraph.load(tmp_path / "new" / "graph.jsonl")
    assert again.relations == graph.relations
    assert again.place(EXCEPTION) == (0, 52)
    assert again.paths("Order 7", "cold clause") == [[CONTAINS, GOVERNED]]
    assert not list(tmp_path.rglob("*.part"))


def test_the_file_is_json_lines_not_pickle(graph, tmp_path):
    path = tmp_path / "graph.jsonl"
    graph.save(path)
    header, *rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert header == {"format": "knowledge-graph 1", "relations": 5, "aliases": {}}
    assert rows[0]["evidence"] == "Order 7 contains Milk."


def test_an_empty_graph_is_saved_and_loaded(tmp_path):
    KnowledgeGraph().save(tmp_path / "graph.jsonl")
    assert len(KnowledgeGraph.load(tmp_path / "graph.jsonl")) == 0


@pytest.mark.parametrize("damage", [lambda lines: lines[:-1], lambda lines: lines[1:], lambda lines: ["[]"]])
def test_half_a_file_is_refused(graph, tmp_path, damage):
    path = tmp_path / "graph.jsonl"
    graph.save(path)
    path.write_text("\n".join(damage(path.read_text().splitlines())))
    with pytest.raises(ValueError, match="graph.jsonl is not a whole graph"):
        KnowledgeGraph.load(path)


def test_a_pickle_is_refused_without_being_read(tmp_path):
    path = tmp_path / "graph.jsonl"
    path.write_bytes(pickle.dumps({"format": "knowledge-graph 1"}))
    with pytest.raises(ValueError, match="not a whole graph"):
        KnowledgeGraph.load(path)
