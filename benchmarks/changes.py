"""Changing a tree in place: what it costs against a rebuild, and what it does to retrieval.

    python benchmarks/changes.py --data FOLDER

Cost: 1 % more leaves in a tree of 5,000 synthetic ones. Retrieval: all documents of the folder (``docs.jsonl`` and
``questions.jsonl`` with gold sections, see benchmarks/public/sets.py) in one tree, changed 20 times at random; then
the changed tree is compared with trees built anew from the same leaves. The writer is a stub that keeps the first
sentences of each child, 75 words (about 100 tokens) in all; the embedder is the project's.
"""

import argparse
import json
import random
import time
from collections import Counter
from pathlib import Path

from langchain_core.documents import Document

from build import LEAVES_PER_TOPIC, Stub, TopicEmbedder, synthetic_leaves
from evidence import MEASURES, compare, compare_all, is_answerable, shares_found
from helpers.index import VectorIndex
from helpers.leaves import split_leaves
from helpers.machine import machine
from helpers.models import load_embedder
from helpers.profiles import load_profile
from helpers.retrievers import CollapsedTreeRetriever
from helpers.tree import build_tree
from helpers.updates import follow
from public.sets import PublicSet, load_set
from public.summaries import FirstSentences

OUTPUT = Path(__file__).parent / "results" / "changes.json"
LEAVES, NEW_LEAVES = 5_000, 50
RUNS, CHANGES, HELD_OUT = 8, 20, 0.3
CLUSTERING_SEEDS = (0, 1, 2)
TOKEN_BUDGET, WORDS = 1_000, 75


class CountedWriter(FirstSentences):
    """The stub, counting its calls."""

    def __init__(self):
        super().__init__(WORDS)
        self.calls = 0

    def __call__(self, passages):
        self.calls += 1
        return super().__call__(passages)


# Cost


def cost_of_adding() -> dict:
    """Return calls and seconds of adding 1 % of the leaves, all on few topics or each on another one."""
    leaves = synthetic_leaves(LEAVES)
    topics = LEAVES // LEAVES_PER_TOPIC  # the leaves of a topic are that far apart
    few = [leaf for topic in range(topics) for leaf in leaves[topic::topics]][:NEW_LEAVES]
    return {"on few topics": _cost(leaves, few), "each on another topic": _cost(leaves, leaves[:NEW_LEAVES])}


def _cost(leaves, new):
    ids = {leaf.metadata["id"] for leaf in new}
    old = [leaf for leaf in leaves if leaf.metadata["id"] not in ids]
    writer, rebuilder, embedder = Stub(), Stub(), TopicEmbedder(len(leaves))
    tree = build_tree(old, embedder, writer)
    before, started = writer.calls, time.perf_counter()
    tree.add(new)
    changed = time.perf_counter()
    rebuilt = build_tree([*old, *new], embedder, rebuilder)
    calls = writer.calls - before
    return {
        "calls": calls,
        "calls of a rebuild": rebuilder.calls,
        "share of the calls, %": round(100 * calls / rebuilder.calls, 1),
        "seconds": round(changed - started, 2),
        "seconds of a rebuild": round(time.perf_counter() - changed, 1),
        "levels": [len(level) for level in tree.levels],
        "levels of a rebuild": [len(level) for level in rebuilt.levels],
    }


# Retrieval


def recall_after_changes(public: PublicSet, embedder, seed: int) -> dict:
    """Change a tree at random and compare it with one built anew."""
    chance, writer = random.Random(seed), CountedWriter()
    profile = load_profile("cpu")
    leaves = split_leaves(
        public.documents, embedder.count_tokens, profile.chunk_tokens, profile.chunk_overlap
    )
    tales: dict[str, list[Document]] = {}
    for leaf in leaves:
        tales.setdefault(leaf.metadata["source"], []).append(leaf)
    start = chance.sample(list(tales), round((1 - HELD_OUT) * len(tales)))
    present = {tale: tales[tale] for tale in tales if tale in start}

    tree = build_tree(_flat(present), embedder, writer)
    index = VectorIndex.build(list(tree.nodes.values()), embedder)
    built, kinds = writer.calls, Counter()
    for _ in range(CHANGES):
        kinds[_change(tree, tales, present, chance)] += 1
        follow(index, tree)
    anew = [_rebuilt(tales, present, embedder, clustering_seed) for clustering_seed in CLUSTERING_SEEDS]
    questions = [question for question in public.questions if is_answerable(question, present)]
    found = [
        shares_found(questions, _retriever(index, embedder), tree) for tree, index in [(tree, index), *anew]
    ]
    return {
        "seed": seed,
        "changes": dict(sorted(kinds.items())),
        "calls of the first build": built,
        "calls of the changes": writer.calls - built,
        "leaves": len(tree.levels[0]),
        "levels": [len(level) for level in tree.levels],
        "levels of rebuilds": [[len(level) for level in rebuild.levels] for rebuild, _ in anew],
        "questions": len(questions),
        **{name: compare(*(shares[name] for shares in found)) for name in MEASURES},
    }


def _flat(tales):
    return [leaf for leaves in tales.values() for leaf in leaves]


def _change(tree, tales, present, chance):
    """Add a tale, remove one, or have one come back as its first half, its second half, or whole."""
    absent = [tale for tale in tales if tale not in present]
    kind = chance.choice(["remove", "replace", *["add"] * bool(absent)])
    tale = chance.choice(absent if kind == "add" else list(present))
    leaves, middle = tales[tale], len(tales[tale]) // 2
    if kind != "add":
        tree.remove(tale)
        old = present.pop(tale)
    if kind == "replace":
        versions = [version for version in (leaves, leaves[:middle], leaves[middle:]) if version != old]
        leaves = chance.choice(versions)
    if kind != "remove":
        tree.add(leaves)
        present[tale] = leaves
    return kind


def _rebuilt(tales, present, embedder, clustering_seed):
    leaves = _flat({tale: present[tale] for tale in tales if tale in present})
    tree = build_tree(leaves, embedder, CountedWriter(), seed=clustering_seed)
    return tree, VectorIndex.build(list(tree.nodes.values()), embedder)


def _retriever(index, embedder):
    return CollapsedTreeRetriever(
        index=index, reading="plain", token_budget=TOKEN_BUDGET, count_tokens=embedder.count_tokens
    )


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    public, embedder = load_set(options.data), load_embedder(load_profile("cpu"))
    runs = []
    for seed in range(RUNS):
        runs.append(recall_after_changes(public, embedder, seed))
        print(json.dumps(runs[-1]), flush=True)
    result = {
        "machine": machine(),
        f"{NEW_LEAVES} more leaves in a tree of {LEAVES:,}": cost_of_adding(),
        f"{CHANGES} random changes, evidence recall at {TOKEN_BUDGET:,} tokens": {
            "data": public.name,
            "retriever": "collapsed tree, plain",
            "writer": f"stub: the first sentences of each child, {WORDS} words in all",
            "all runs": compare_all(runs),
            "runs": runs,
        },
    }
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
