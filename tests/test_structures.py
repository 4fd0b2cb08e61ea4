"""The eight structures over the shop: real pages, real vectors, the recorded tree."""

import pytest

from helpers.stages import ShopWorkbench
from helpers.structures import build_graph, build_structures, evidence_by_structure

BUDGET = 300


@pytest.fixture(scope="module")
def bench():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_MODE", "strict")
        bench = ShopWorkbench("cpu")
        assert len(bench.tree.levels[0]) == len(bench.leaves)
        yield bench


@pytest.fixture(scope="module")
def structures(bench):
    return build_structures(bench, BUDGET)


def test_no_structure_reads_more_than_its_budget(bench, structures):
    assert len(structures) == 8
    for retriever in structures.values():
        for question in bench.questions[::6]:
            hits = retriever.invoke(question.text)
            assert sum(bench.embedder.count_tokens(hit.page_content) for hit in hits) <= BUDGET


def test_every_hit_of_the_graph_is_an_original_sentence(bench, structures):
    text_of = {page.metadata["source"]: page.page_content for page in bench.pages}
    hits = structures["graph"].invoke("Why can the fish in order 1042 not be returned without cause?")
    assert hits
    for hit in hits:
        about = hit.metadata
        assert text_of[about["source"]][about["start"] : about["end"]] == hit.page_content


def test_the_graph_brings_what_the_leaves_do_not(bench, structures):
    chosen = {name: structures[name] for name in ("leaf RAG", "graph")}
    results = evidence_by_structure(bench, chosen)
    recall = results[results.kind == "connection"].groupby("system").recall.mean()
    assert recall["graph"] > recall["leaf RAG"]
    assert ((results.recall == 1) == (results.complete == 1)).all()


def test_the_graph_is_built_from_every_page_that_states_a_relation(bench):
    graph = build_graph(bench)
    assert {relation.source for relation in graph.relations} <= {
        page.metadata["source"] for page in bench.pages
    }
    assert len(graph.relations) >= 40
