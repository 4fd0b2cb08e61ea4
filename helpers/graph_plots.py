"""Graph plots: a graph coloured by its communities, and one path with the sentence of each hop."""

from collections.abc import Collection, Sequence
from textwrap import fill

import networkx as nx
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from helpers.graph import KnowledgeGraph, Relation
from helpers.plots import PALETTE

WORDS = {"break_long_words": False, "break_on_hyphens": False}


def graph_picture(
    graph: KnowledgeGraph, names: Collection[str] | None = None, seed: int = 0, width=10.0, height=7.0
) -> Figure:
    """Entities as dots (larger with more relations), relations as arrows, communities in colours.

    Parameters
    ----------
    graph : KnowledgeGraph
    names : collection of str, optional
        Draw these entities only, with the relations between them.
    seed : int
        Of the layout and of the communities.
    """
    shown = graph.entities if names is None else [name for name in graph.entities if name in set(names)]
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    if not shown:
        axes.text(0.5, 0.5, "no entities", ha="center", transform=axes.transAxes)
        return figure
    links = nx.DiGraph()
    links.add_nodes_from(shown)  # in order: the layout depends on it, and a subgraph has that of a set
    links.add_edges_from(sorted(nx.DiGraph(graph.network).subgraph(shown).edges))
    places, colors = _layout(links.to_undirected(), seed), _colors(graph, seed)
    nx.draw_networkx_edges(links, places, ax=axes, edge_color="#bbbbbb", arrowsize=9, node_size=150)
    sizes = [60 + 25 * links.degree(name) for name in shown]
    nx.draw_networkx_nodes(links, places, ax=axes, node_size=sizes, node_color=[colors[n] for n in shown])
    halo = [withStroke(linewidth=2.5, foreground="white")]
    for name in shown:
        label = fill(name, 18, **WORDS)
        style = {"ha": "center", "va": "bottom", "fontsize": 8, "path_effects": halo}
        axes.annotate(label, places[name], xytext=(0, 6), textcoords="offset points", **style)
    axes.margins(0.1)
    return figure


def _layout(links, seed):
    """Return a place a node: linked nodes near each other, parts that are not linked beside each other."""
    places, left = {}, 0.0
    for part in sorted(nx.connected_components(links), key=lambda part: (-len(part), min(part))):
        size = len(part) ** 0.5
        ordered = nx.Graph()
        ordered.add_nodes_from(name for name in links if name in part)
        ordered.add_edges_from((a, b) for a, b in links.edges if a in part)
        start = nx.random_layout(ordered, seed=seed)
        settled = nx.kamada_kawai_layout(ordered, pos=start, scale=size / 2)
        places |= {name: settled[name] + (left + size / 2, 0) for name in ordered}
        left += size + 0.8
    return places


def _colors(graph, seed):
    groups = enumerate(graph.communities(seed))
    return {name: PALETTE[number % len(PALETTE)] for number, group in groups for name in group}


def path_picture(path: Sequence[Relation]) -> Figure:
    """Boxes for the entities of a path, arrows with the types of its relations, each hop's sentence below.

    An arrow points the way its sentence reads, also where the path walks it backwards.
    """
    figure = Figure(figsize=(2.9 * max(1, len(path)) + 1.8, 2.0), layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(-0.32, len(path) + 0.32), ylim=(-0.75, 0.45))
    axes.set_axis_off()
    if not path:
        axes.text(0, 0, "no path", ha="center", va="center")
        return figure
    box = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": PALETTE[0], "linewidth": 1.5}
    names = _stations(path)
    for at, name in enumerate(names):
        label = fill(name, 14, **WORDS)
        axes.text(at, 0.12, label, ha="center", va="center", fontsize=10, bbox=box, zorder=3)
    for at, step in enumerate(path):
        tail, head = (at + 0.28, at + 0.72) if step.subject == names[at] else (at + 0.72, at + 0.28)
        arrow = {"arrowstyle": "-|>", "color": PALETTE[1]}
        axes.annotate("", xy=(head, 0.12), xytext=(tail, 0.12), arrowprops=arrow)
        label = fill(step.type, 16, **WORDS)
        axes.text(at + 0.5, 0.18, label, ha="center", va="bottom", fontsize=9, color=PALETTE[1])
        proof = fill(f"“{step.evidence}”", 40, **WORDS) + f"\n{step.source}"
        axes.text(at + 0.5, -0.2, proof, ha="center", va="top", fontsize=8, color="#444444")
    return figure


def _stations(path):
    """Return the entities that a path visits, in order."""
    if len(path) == 1:
        return [path[0].subject, path[0].object]
    first, second = path[0], path[1]
    shared = {second.subject, second.object}
    names = [first.object, first.subject] if first.subject in shared else [first.subject, first.object]
    for step in path[1:]:
        names.append(step.object if step.subject == names[-1] else step.subject)
    return names
