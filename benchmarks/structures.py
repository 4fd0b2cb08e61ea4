"""What each structure costs: calls, tokens, seconds and bytes to build, calls for a change, time for a question.

    python benchmarks/structures.py

Building is timed without the cache of vectors. The trees are replayed: the seconds that writing them took are read from
the manifest of the recorded run.
Questions are timed without the embedding of the question, which is the same for all.
"""

import json
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from helpers.embedding import WindowEmbedder
from helpers.families import split_families
from helpers.index import VectorIndex
from helpers.keywords import KeywordIndex
from helpers.machine import machine
from helpers.recording import RECORDED
from helpers.stages import ShopWorkbench, Workbench
from helpers.structures import build_graph, build_structures
from timing import milliseconds, timed

OUTPUT = Path(__file__).parent / "results" / "structures.json"
BUDGETS = {"site": 1000, "shop": 300}
PARTS = {
    "leaf RAG": ["leaves"],
    "collapsed tree": ["leaves", "tree"],
    "traversal": ["leaves", "tree"],
    "parent and child": ["children"],
    "fusion": ["leaves", "keywords"],
    "graph": ["graph"],
    "tree + fusion": ["leaves", "tree", "keywords"],
    "fusion + graph": ["leaves", "keywords", "graph"],
}


def prices(bench: Workbench, token_budget: int) -> dict:
    """Return the price of every structure over one corpus."""
    structures = build_structures(bench, token_budget)
    questions = [question.text for question in bench.questions]
    bench.embedder.embed_documents(questions)
    build = _build_prices(bench)
    return {
        name: build[name] | {"milliseconds a question": milliseconds(retriever, questions)}
        for name, retriever in structures.items()
    }


def _build_prices(bench):
    above = [_summaries_above(bench.tree, page.metadata["source"]) for page in bench.pages]
    nothing = {"calls to build": 0, "prompt tokens to build": 0, "calls after a page changed": 0}
    of_tree = {
        "calls to build": len(bench.tree.summaries),
        "prompt tokens to build": sum(bench.summary_prompt_tokens),
        "calls after a page changed": round(mean(above), 1),
    }
    size, seconds = _bytes_on_disk(bench), _build_seconds(bench)
    return {
        name: (of_tree if "tree" in parts else nothing)
        | {
            "seconds to build": round(sum(seconds[part] for part in parts), 1),
            # All nodes of a tree, its leaves included, are one index.
            "bytes": sum(size[part] for part in parts if not (part == "leaves" and "tree" in parts)),
        }
        for name, parts in PARTS.items()
    }


def _build_seconds(bench):
    """Return the seconds to build each part from the pages, nothing embedded before."""
    embedder = WindowEmbedder(bench.embedder.model, bench.embedder.identity)
    embedder.embed_query("loads the model")
    recorded = json.loads((RECORDED / bench.profile.name / "manifest.json").read_text(encoding="utf-8"))[
        "seconds"
    ]
    _, children = split_families(bench.pages, embedder.count_tokens)
    return {
        "leaves": timed(lambda: VectorIndex.build(bench.leaves, embedder))[1],
        "tree": recorded["policies tree" if isinstance(bench, ShopWorkbench) else "tree"],
        "children": timed(lambda: VectorIndex.build(children, embedder))[1],
        "keywords": timed(lambda: KeywordIndex(bench.leaves))[1],
        "graph": timed(lambda: build_graph(bench))[1],
    }


def _summaries_above(tree, source):
    """Return how many summaries a page went into: what has to be written again when it changes."""
    leaves = [leaf for leaf in tree.levels[0] if leaf.metadata["source"] == source]
    return len({node.metadata["id"] for leaf in leaves for node in tree.ancestors(leaf.metadata["id"])})


def _bytes_on_disk(bench):
    _, children = split_families(bench.pages, bench.embedder.count_tokens)
    saved = {
        "leaves": VectorIndex.build(bench.leaves, bench.embedder).save,
        "tree": bench.index.save,
        "children": VectorIndex.build(children, bench.embedder).save,
        "keywords": KeywordIndex(bench.leaves).save,
        "graph": lambda folder: build_graph(bench).save(Path(folder) / "graph.jsonl"),
    }
    sizes = {}
    for name, save in saved.items():
        with TemporaryDirectory() as folder:
            save(folder)
            sizes[name] = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return sizes


def main() -> None:
    """Measure both corpora and write the result."""
    benches = {"site": Workbench(), "shop": ShopWorkbench()}
    result = {"machine": machine()} | {name: prices(bench, BUDGETS[name]) for name, bench in benches.items()}
    OUTPUT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
