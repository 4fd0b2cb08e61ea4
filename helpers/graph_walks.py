"""Walks: ways through a graph from one entity to another, and groups of entities that hang together."""

from collections.abc import Iterator, Mapping, Sequence

import networkx as nx

# What a node is linked to: the neighbour, and the facts that link the two.
Hops = Mapping[str, Sequence[tuple[str, Sequence]]]


def paths(network: nx.MultiDiGraph, hops: Hops, a: str, b: str, max_hops: int) -> Iterator[list]:
    """Yield the ways from `a` to `b` that meet no node twice, the shortest first, then by `hops`."""
    if a == b:
        return
    left = nx.single_source_shortest_path_length(network.to_undirected(as_view=True), b, max_hops)
    for length in range(1, max_hops + 1):
        yield from _walks(a, length, hops, left, (a,))


def _walks(at, length, hops, left, seen):
    """Yield the ways of exactly `length` hops; `left` is the distance of each node from the end."""
    if length == 0:
        yield []
        return
    for neighbour, facts in hops[at]:
        distance = left.get(neighbour, length)
        if neighbour in seen or distance >= length or (distance == 0 and length > 1):
            continue
        for rest in _walks(neighbour, length - 1, hops, left, (*seen, neighbour)):
            yield from ([fact, *rest] for fact in facts)


def louvain(network: nx.MultiDiGraph, seed: int) -> list[list[str]]:
    """Return groups of nodes, the largest first, names sorted; equal in every process for a seed."""
    if not network:
        return []
    names = sorted(network)
    # Numbers as nodes: sets of strings are ordered differently in every process.
    numbers = {name: number for number, name in enumerate(names)}
    links = nx.Graph()
    links.add_nodes_from(range(len(names)))
    links.add_edges_from(sorted((numbers[a], numbers[b]) for a, b in network.edges()))
    groups = nx.community.louvain_communities(links, weight=None, seed=seed)
    return sorted((sorted(names[number] for number in group) for group in groups), key=lambda g: (-len(g), g))
