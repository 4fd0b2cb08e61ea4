"""Ways through a graph: shortest first, no node twice; groups the same in every process."""

import networkx as nx

from helpers.graph_walks import louvain, paths

LINKS = [("a", "b"), ("b", "c"), ("a", "d"), ("d", "e"), ("e", "c")]


def walk(links, start, end, max_hops):
    network = nx.MultiDiGraph(links)
    hops = {
        node: sorted(
            (other, [f"{node}{other}"]) for other in {*network.successors(node), *network.predecessors(node)}
        )
        for node in network
    }
    return list(paths(network, hops, start, end, max_hops))


def test_the_shortest_way_comes_first():
    assert walk(LINKS, "a", "c", 4) == [["ab", "bc"], ["ad", "de", "ec"]]


def test_links_are_walked_against_their_direction_too():
    assert walk(LINKS, "c", "a", 2) == [["cb", "ba"]]


def test_no_way_within_the_limit_is_no_path():
    assert walk(LINKS, "a", "c", 1) == []
    assert walk([("a", "b"), ("c", "d")], "a", "d", 9) == []
    assert walk(LINKS, "a", "a", 3) == []


def test_groups_hang_together_and_come_largest_first():
    triangle, pair = [("x", "y"), ("y", "z"), ("z", "x")], [("k", "l")]
    assert louvain(nx.MultiDiGraph(triangle + pair), seed=0) == [["x", "y", "z"], ["k", "l"]]
    assert louvain(nx.MultiDiGraph(), seed=0) == []
