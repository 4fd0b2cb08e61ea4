"""What each structure costs: calls, tokens, seconds and bytes to build, calls for a change, time for a question.

    python benchmarks/structures.py

The trees are replayed: the seconds that writing them took stand in the manifest of the recorded run.
Questions are timed without the embedding of the question, which is the same for all.
"""

import json
import time
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

from helpers.keywords import KeywordIndex
from helpers.manifest import machine
from helpers.stages import ShopWorkbench, Workbench
from helpers.structures import build_graph, build_structures

OUTPUT = Path(__file__).parent / "results" / "structures.json"
BUDGETS = {"site": 1000, "shop": 300}


def prices(bench: Workbench, token_budget: int) -> dict:
    """Return the price of every structure over one corpus."""
    structures = build_structures(bench, token_budget)
    questions = [question.text for question in bench.questions]
    bench.embedder.embed_documents(questions)
    build = _build_prices(bench)
    return {
        name: build[name] | {"milliseconds a question": _milliseconds(retriever, questions)}
        for name, retriever in structures.items()
    }


def _build_prices(bench):
    tree, summariser = bench.tree, bench.summariser
    summaries = [node for level in tree.levels[1:] for node in level]
    prompts = [[child.page_content for child in tree.children(node.metadata["id"])] for node in summaries]
    above = [_summaries_above(tree, page.metadata["source"]) for page in bench.pages]
    nothing = {"calls to build": 0, "prompt tokens to build": 0, "calls after a page changed": 0}
    of_tree = {
        "calls to build": len(summaries),
        "prompt tokens to build": sum(map(summariser.prompt_tokens, prompts)),
        "calls after a page changed": round(mean(above), 1),
    }
    size = _bytes_on_disk(bench)
    leaves, everything, keywords, graph = (size[name] for name in ("leaves", "tree", "keywords", "graph"))
    return {
        "leaf RAG": nothing | {"bytes": leaves},
        "collapsed tree": of_tree | {"bytes": everything},
        "traversal": of_tree | {"bytes": everything},
        "parent and child": nothing | {"bytes": size["children"]},
        "fusion": nothing | {"bytes": leaves + keywords},
        "graph": nothing | {"bytes": graph},
        "tree + fusion": of_tree | {"bytes": everything + keywords},
        "fusion + graph": nothing | {"bytes": leaves + keywords + graph},
    }


def _summaries_above(tree, source):
    """Return how many summaries a page went into: what has to be written again when it changes."""
    leaves = [leaf for leaf in tree.levels[0] if leaf.metadata["source"] == source]
    return len({node.metadata["id"] for leaf in leaves for node in tree.ancestors(leaf.metadata["id"])})


def _bytes_on_disk(bench):
    from helpers.families import split_families
    from helpers.index import VectorIndex

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


def _milliseconds(retriever, questions):
    seconds = []
    for question in questions:
        started = time.perf_counter()
        retriever.invoke(question)
        seconds.append(time.perf_counter() - started)
    return round(1000 * median(seconds), 1)


def main() -> None:
    """Measure both corpora and write the result."""
    benches = {"site": Workbench(), "shop": ShopWorkbench()}
    result = {"machine": machine()} | {name: prices(bench, BUDGETS[name]) for name, bench in benches.items()}
    OUTPUT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
