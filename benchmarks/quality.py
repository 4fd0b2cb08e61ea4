"""Does it help? RAPTOR against plain RAG on documents and questions that others wrote.

    python benchmarks/quality.py run --data FOLDER --tier mini
    python benchmarks/quality.py run --data FOLDER --tier mini --likelihood tiny
    python benchmarks/quality.py readme

FOLDER holds docs.jsonl and questions.jsonl, see public/sets.py. A run that was stopped goes on where it was: summaries
and likelihoods are kept in build/quality, and never paid for twice. Results hold numbers, never texts.
"""

import argparse
from collections import Counter
from pathlib import Path

from tqdm.auto import tqdm

from helpers.jsonlines import write_rows
from helpers.machine import machine
from helpers.manifest import model_hashes, versions
from helpers.models import load_embedder
from helpers.profiles import load_profile
from helpers.recording import ROOT, Journal
from public.corpora import Settings
from public.estimates import estimate
from public.likelihood import Scorer, scored
from public.report import write_readme
from public.results import RESAMPLES, SEED, sizes, summarise, write_result
from public.runs import Run
from public.sets import TIERS, load_set
from public.summaries import PROMPTS, load_summariser
from public.systems import default_systems

RESULTS = Path(__file__).parent / "results"


def run(options: argparse.Namespace) -> None:
    """Measure a set, and write its rows to build/quality and its means to benchmarks/results."""
    data = load_set(options.data, options.tier)
    profile = load_profile(options.profile)
    embedder = load_embedder(profile)
    summariser = load_summariser(profile, options.prompt, embedder.count_tokens, options.extract)
    settings = Settings(profile, embedder, summariser, options.leaf_tokens)
    writer = "extract" if options.extract else f"{profile.name}-{options.prompt}"
    folder = ROOT / "build" / "quality" / data.name / f"{writer}-{options.leaf_tokens}"
    systems = options.systems or default_systems(data.is_pooled)
    measured = Run(data, settings, folder, systems, options.budgets)
    read = (options.likelihood_systems or systems) if options.likelihood else []
    print(estimate(measured, is_written=not options.extract, read=read), flush=True)
    rows = list(measured.rows())
    if options.likelihood:
        rows = _with_likelihoods(rows, measured, options.likelihood, read)
    write_rows(folder / f"rows-{options.tier}.jsonl", rows)
    about = {
        "set": data.name,
        "tier": options.tier,
        "documents": len(data.documents),
        "questions": Counter(question.kind for question in data.questions),
        "writer": writer,
        "reader": options.likelihood,
        "leaf tokens": options.leaf_tokens,
        "profile": vars(profile),
        "models": model_hashes(profile),
        "bootstrap": {"resamples": RESAMPLES, "seed": SEED, "level": 0.95},
        "trees": measured.costs(),
        "machine": machine(),
        "versions": versions(),
    }
    output = options.output or RESULTS / f"quality-{data.name}-{options.tier}.json"
    write_result(output, about, summarise(rows), sizes(rows))
    print(f"{len(rows):,} rows in {folder}, means in {output}")


def _with_likelihoods(rows, measured, profile_name, systems):
    """Return rows with the measures of a reader, which reads each different context of some systems once."""
    from helpers.likelihood import Reader

    journal = Journal(measured.folder / f"likelihoods-{profile_name}.jsonl")
    scorer = Scorer(Reader.load(load_profile(profile_name)), journal)
    contexts = (context for name in measured.corpora for context in measured.contexts(name, systems))
    total = sum(row["system"] in systems for row in rows)
    found = {
        _place(row): row
        for row in tqdm(scored(contexts, scorer), total=total, desc="likelihoods", unit="context")
    }
    journal.close()
    return [row | found.get(_place(row), {}) for row in rows]


def _place(row):
    return row["question"], row["system"], row["budget"]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run", help="measure a set")
    runs.add_argument("--data", type=Path, required=True, help="folder of docs.jsonl and questions.jsonl")
    runs.add_argument("--tier", choices=TIERS, default="mini")
    runs.add_argument("--budgets", type=int, nargs="+", default=[400, 800, 2000])
    runs.add_argument("--leaf-tokens", type=int, default=100)
    runs.add_argument("--systems", nargs="+", help="names in public/systems.py")
    runs.add_argument("--profile", help="of embedder and writer")
    runs.add_argument("--prompt", choices=PROMPTS, default="text")
    runs.add_argument("--extract", action="store_true", help="first sentences as summaries, no writer")
    runs.add_argument(
        "--likelihood", metavar="PROFILE", help="also measure by this profile's writer as reader"
    )
    runs.add_argument("--likelihood-systems", nargs="+", help="only these of the systems")
    runs.add_argument("--output", type=Path, help="result file, in place of the one in benchmarks/results")
    runs.set_defaults(run=run)
    readme = commands.add_parser("readme", help="write tables and pictures of all results into the README")
    readme.set_defaults(
        run=lambda _: write_readme(ROOT / "README.md", sorted(RESULTS.glob("quality-*.json")))
    )
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
