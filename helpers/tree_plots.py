"""Tree plots: the tree as a whole, and one summary with the text it stands on."""

from collections import Counter
from urllib.parse import urlsplit

import numpy as np
from matplotlib.figure import Figure

from helpers.drilldown import DrillDown
from helpers.nodes import Tree
from helpers.plots import PALETTE, new_figure, section_colors, section_legend, section_of


def tree_picture(tree: Tree) -> Figure:
    """The tree: a row a level, leaves in page order coloured by section, a line from each node to its children."""
    colors = section_colors(leaf.metadata["source"] for leaf in tree.levels[0])
    place = {leaf.metadata["id"]: float(i) for i, leaf in enumerate(tree.levels[0])}
    figure, axes = new_figure(9.0, 4.2)
    for level, nodes in enumerate(tree.levels):
        if level:
            centres = {n.metadata["id"]: np.mean([place[c] for c in n.metadata["children"]]) for n in nodes}
            # Spread a level evenly in the order of its nodes' centres, so that they do not hide each other.
            order = sorted(centres, key=centres.get)
            gap = len(tree.levels[0]) / len(order)
            place |= {node_id: (i + 0.5) * gap for i, node_id in enumerate(order)}
            for node in nodes:
                for child in node.metadata["children"]:
                    ends = place[child], place[node.metadata["id"]]
                    heights = tree.nodes[child].metadata["level"], level
                    axes.plot(ends, heights, color="#bbbbbb", linewidth=0.4, zorder=1)
        axes.scatter(
            [place[node.metadata["id"]] for node in nodes],
            [level] * len(nodes),
            s=12 if not level else 20 + 4 * np.array([len(node.metadata["children"]) for node in nodes]),
            c=[_main_color(node, colors) for node in nodes],
            zorder=2,
        )
        axes.text(
            -0.02,
            level,
            f"level {level}: {len(nodes)}",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
        )
    section_legend(axes, colors, title="section of most sources")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    return figure


def drill_down_picture(found: DrillDown) -> Figure:
    """One summary on top, the pages under it as bars, and on each the characters that it was made from."""
    longest = max(passage.end for passage in found.passages)
    figure, axes = new_figure(7.5, 1.2 + 0.36 * len(found.sources))
    for row, source in enumerate(found.sources):
        axes.barh(row, longest, height=0.5, color="#eeeeee")
        for passage in found.passages:
            if passage.source == source:
                axes.barh(row, passage.end - passage.start, left=passage.start, height=0.5, color=PALETTE[0])
    axes.set_yticks(
        range(len(found.sources)), [urlsplit(source).path.lstrip("/") or "(top)" for source in found.sources]
    )
    axes.invert_yaxis()
    axes.set(xlabel="characters of the page", xlim=(0, longest))
    opening = " ".join(found.node.page_content.split())[:70]
    axes.set_title(f"level {found.node.metadata['level']}: {opening} ...", loc="left", fontsize=9)
    return figure


def _main_color(node, colors):
    return colors[Counter(map(section_of, node.metadata["sources"])).most_common(1)[0][0]]
