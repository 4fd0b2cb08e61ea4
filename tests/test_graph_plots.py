"""Pictures: what they show, that they are equal for a seed, and that nothing to show is no error."""

import io

import pytest
from matplotlib.figure import Figure

from helpers.graph import KnowledgeGraph, Relation
from helpers.graph_plots import graph_picture, path_picture

EDGES = [("Order 7", "Milk"), ("Milk", "Fresh rule"), ("Damage rule", "Fresh rule"), ("Sun", "Sea")]


@pytest.fixture
def graph():
    relations = [Relation(a, "to", b, "page", f"{a} to {b}.") for a, b in EDGES]
    graph = KnowledgeGraph()
    graph.add(relations, {"page": " ".join(relation.evidence for relation in relations)})
    return graph


def texts(figure):
    return [text.get_text().replace("\n", " ") for text in figure.axes[0].texts]


def pixels(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba")
    return buffer.getvalue()


def test_every_entity_has_its_label(graph):
    figure = graph_picture(graph)
    assert isinstance(figure, Figure)
    assert sorted(texts(figure)) == graph.entities


def test_a_part_of_the_graph(graph):
    assert sorted(texts(graph_picture(graph, names=["Milk", "Order 7", "unknown"]))) == ["Milk", "Order 7"]


def test_equal_for_a_seed(graph):
    assert pixels(graph_picture(graph, seed=1)) == pixels(graph_picture(graph, seed=1))


@pytest.mark.parametrize("names", [None, []])
def test_no_entities(names):
    assert texts(graph_picture(KnowledgeGraph(), names)) == ["no entities"]


def test_a_path_with_its_boxes_types_and_sentences(graph):
    (path,) = graph.paths("Order 7", "Damage rule")
    shown = texts(path_picture(path))
    assert shown[:4] == ["Order 7", "Milk", "Fresh rule", "Damage rule"]
    assert "“Damage rule to Fresh rule.” page" in shown
    assert shown.count("to") == 3


def test_an_arrow_points_the_way_its_sentence_reads(graph):
    (path,) = graph.paths("Order 7", "Damage rule")
    arrows = [text for text in path_picture(path).axes[0].texts if getattr(text, "arrow_patch", None)]
    assert [arrow.xy[0] > arrow.get_position()[0] for arrow in arrows] == [True, True, False]


def test_a_path_walked_backwards(graph):
    (path,) = graph.paths("Fresh rule", "Order 7")
    assert texts(path_picture(path))[:3] == ["Fresh rule", "Milk", "Order 7"]


def test_a_path_of_one_hop_and_of_none(graph):
    assert texts(path_picture(graph.paths("Milk", "Order 7")[0]))[:2] == ["Order 7", "Milk"]
    assert texts(path_picture([])) == ["no path"]
