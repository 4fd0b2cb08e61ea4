"""Manifest: what a live run was made with, and how it becomes the recording."""

import datetime
import json
import platform
import shutil
import time
from importlib.metadata import version

from helpers.engines import engines
from helpers.fetch import WEIGHTS, weights_folder
from helpers.jsonlines import read_rows
from helpers.machine import machine
from helpers.profiles import Profile, load_profile
from helpers.recording import RECORDED, ROOT, content_key, recording_mode
from helpers.stages import LEAF_RAG, RAPTOR, ShopWorkbench, Workbench

PACKAGES = (
    "torch",
    "transformers",
    "openvino-genai",
    "xllamacpp",
    "sentence-transformers",
    "langchain-core",
    "langchain-community",
    "faiss-cpu",
    "umap-learn",
    "scikit-learn",
    "numba",
    "numpy",
)
STAGES = ("crawled", "leaves", "tree", "index", "results", "verdicts")
MAX_RECORDING_BYTES = 10_000_000


def run_everything(profile: str | Profile | None = None) -> str:
    """Compute every stage with progress bars, note the seconds of each, and write the manifest.

    What an earlier run that was stopped has paid for is read from its journals; its seconds are added up.

    Returns
    -------
    str
        One line on how much was computed and how much was replayed.
    """
    bench, shop = (kind(profile, progress=True) for kind in (Workbench, ShopWorkbench))
    folder = ROOT / "build" / recording_mode() / bench.profile.name
    folder.mkdir(parents=True, exist_ok=True)
    seconds = _read_json(folder / "seconds.json")
    stages = {stage: (bench, stage) for stage in STAGES}
    if not bench.site:  # notebook 10 belongs to the site in data/site
        stages["policies tree"] = shop, "tree"
    for name, (owner, stage) in stages.items():
        started = time.perf_counter()
        try:
            getattr(owner, stage)
        finally:
            seconds[name] = round(seconds.get(name, 0) + time.perf_counter() - started, 1)
            _write_json(folder / "seconds.json", seconds)
    _write_json(folder / "manifest.json", manifest(bench, seconds))
    calls = bench.calls()
    return f"done: {calls.live.sum()} results computed, {calls.replayed.sum()} replayed; in build/{recording_mode()}"


def manifest(bench: Workbench, seconds: dict) -> dict:
    """Return what decides a run, and what it took."""
    profile = bench.profile
    tree = bench.tree
    tokens = bench.results.groupby("system").tokens.mean().round(1)
    return {
        "date": datetime.date.today().isoformat(),
        "profile": {key: value for key, value in vars(profile).items()},
        "models": model_hashes(profile),
        "corpus": {
            "pages": len(bench.pages),
            "leaves": len(bench.leaves),
            "hash": content_key([page.page_content for page in bench.pages]),
        },
        "tree": {
            "levels": [len(level) for level in tree.levels],
            "largest prompt, tokens": max(bench.summary_prompt_tokens),
            "prompt cap, tokens": profile.prompt_tokens,
        },
        "calls": {
            "summaries": len(tree.summaries),
            "answers": len(bench.answer_journal),
            "verdicts": len(bench.verdict_journal),
        },
        "tokens": _call_tokens(bench),
        "context tokens, mean": {system: tokens[system] for system in (LEAF_RAG, RAPTOR)},
        "seconds": seconds,
        "versions": versions(),
        "machine": machine(),
    }


def versions() -> dict:
    """Return the versions of Python and of the packages that decide results."""
    return {name: version(name) for name in PACKAGES} | {"python": platform.python_version()}


def model_hashes(profile: Profile) -> dict:
    """Return file and sha256 of the profile's weights, as far as they are files, and the engine that runs them here."""
    return {
        name: {
            "file": weights.file,
            "sha256": weights.sha256,
            "engine": engines(weights_folder() / weights.file)[0],
        }
        for name, weights in WEIGHTS.items()
        if name in (profile.writer, profile.judge)
    }


def promote(profile: str | Profile | None = None) -> str:
    """Copy the journals and the manifest of the last whole live run to ``data/recorded``.

    Raises
    ------
    ValueError
        If there is no whole live run, or it is too large to commit.
    """
    name = (profile if isinstance(profile, Profile) else load_profile(profile)).name
    source, target = ROOT / "build" / "live" / name, RECORDED / name
    if not (source / "manifest.json").exists():
        raise ValueError("no whole live run of this profile: make compare LIVE=1")
    files = [*sorted(source.glob("*.jsonl")), source / "manifest.json"]
    size = sum(file.stat().st_size for file in files)
    if size > MAX_RECORDING_BYTES:
        raise ValueError(
            f"the recording has {size:,} bytes, over the {MAX_RECORDING_BYTES:,} that may be committed"
        )
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, target / file.name)
    return f"{len(files)} files, {size:,} bytes, are now the recording of profile {name}"


def _call_tokens(bench):
    """Return the tokens read and written by each kind of call, by the embedder's tokenizer."""
    count = bench.embedder.count_tokens
    written = sum(count(node.page_content) for node in bench.tree.summaries)
    tokens = {"summaries": {"read": sum(bench.summary_prompt_tokens), "written": written}}
    for name, journal in (("answers", bench.answer_journal), ("verdicts", bench.verdict_journal)):
        calls = [call for file in journal.files for call in read_rows(file)]
        written, prompts = ([call[part] for call in calls] for part in ("value", "prompt"))
        tokens[name] = {"read": sum(map(count, prompts)), "written": sum(map(count, written))}
    return tokens


def _read_json(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
