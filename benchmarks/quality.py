"""Does it help? RAPTOR against plain RAG on documents and questions that others wrote.

    python benchmarks/quality.py run --data FOLDER --tier mini
    python benchmarks/quality.py run --data FOLDER --tier mini --likelihood cpu --answers --read-budgets 400
    python benchmarks/quality.py run --data FOLDER --vary prompt_tokens=800
    python benchmarks/quality.py readme

FOLDER holds docs.jsonl and questions.jsonl, see public/sets.py. A run that was stopped goes on where it was: summaries,
likelihoods and answers are kept in build/quality, and never paid for twice. Results hold numbers, never texts.
"""

import argparse
from collections import Counter
from contextlib import closing
from pathlib import Path

from tqdm.auto import tqdm

from helpers.jsonlines import write_rows
from helpers.machine import machine
from helpers.manifest import model_hashes, versions
from helpers.models import load_embedder, load_writer
from helpers.profiles import load_profile
from helpers.recording import ROOT, Journal
from public.answers import answered
from public.estimates import estimate
from public.likelihood import Scorer, scored
from public.report import write_readme
from public.results import RESAMPLES, SEED, sizes, summarise, write_result
from public.runs import Run
from public.sets import TIERS, load_set
from public.settings import Settings, changes, varied
from public.summaries import PROMPTS, load_writers
from public.systems import default_systems

RESULTS = Path(__file__).parent / "results"


def run(options: argparse.Namespace) -> None:
    """Measure a set, and write its rows to build/quality and its means to benchmarks/results."""
    data = load_set(options.data, options.tier)
    profile = varied(load_profile(options.profile), options.vary)
    embedder = load_embedder(profile)
    writers = load_writers(profile, options.prompt, embedder.count_tokens, options.extract)
    settings = Settings(profile, embedder, *writers)
    writer = "extract" if options.extract else f"{profile.name}-{options.prompt}"
    variant = "-".join([writer, *options.vary])
    folder = ROOT / "build" / "quality" / data.name / variant
    systems = options.systems or default_systems(data.is_pooled)
    measured = Run(data, settings, folder, systems, options.budgets)
    read = options.read_systems or systems, options.read_budgets or options.budgets
    if missing := {*read[0], *read[1]} - {*systems, *options.budgets}:
        raise SystemExit(f"not among the systems and budgets of this run: {', '.join(map(str, missing))}")
    told = estimate(measured, not options.extract, options.likelihood, options.answers, read)
    print(told, flush=True)
    rows = list(measured.rows())
    contexts = list(measured.all_contexts(*read)) if options.likelihood or options.answers else []
    if options.likelihood:
        rows = _joined(rows, _likelihoods(contexts, folder, options.likelihood))
    if options.answers:
        rows = _joined(rows, _answers(contexts, folder, profile))
    changed = changes(profile, options.prompt, options.extract)
    write_rows(folder / f"rows-{options.tier}.jsonl", rows)
    about = {
        "set": data.name,
        "tier": options.tier,
        "documents": len(data.documents),
        "questions": Counter(question.kind for question in data.questions),
        "writer": writer,
        "reader": options.likelihood,
        "changed": changed,
        "profile": vars(profile),
        "models": model_hashes(profile),
        "bootstrap": {"resamples": RESAMPLES, "seed": SEED, "level": 0.95},
        "trees": measured.costs(),
        "machine": machine(),
        "versions": versions(),
    }
    kind = f"variation-{variant}" if changed else "quality"
    output = options.output or RESULTS / f"{kind}-{data.name}-{options.tier}.json"
    write_result(output, about, summarise(rows), sizes(rows))
    print(f"{len(rows):,} rows in {folder}, means in {output}")


def _likelihoods(contexts, folder, profile_name):
    """Yield rows with the measures of a reader, which reads each different context once."""
    from helpers.likelihood import Reader

    journal = Journal(folder / f"likelihoods-{profile_name}.jsonl")
    scorer = Scorer(Reader.load(load_profile(profile_name)), journal)
    with closing(journal):
        yield from tqdm(scored(contexts, scorer), total=len(contexts), desc="likelihoods", unit="context")


def _answers(contexts, folder, profile):
    """Yield rows with the measures of the answers that the profile's writer gives."""
    journal = Journal(folder / "answers.jsonl")
    writer = load_writer(profile, journal, progress=True)
    with closing(journal):
        yield from answered(contexts, writer)


def _joined(rows, others):
    """Return rows with the measures of others on the same question, system and budget."""
    others = {_place(row): row for row in others}
    return [row | others.get(_place(row), {}) for row in rows]


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
    runs.add_argument("--systems", nargs="+", help="names in public/systems.py")
    runs.add_argument("--profile", help="of embedder and writer")
    runs.add_argument("--vary", nargs="+", default=[], metavar="FIELD=VALUE", help="numbers of the profile")
    runs.add_argument("--prompt", choices=PROMPTS, default="text")
    runs.add_argument("--extract", action="store_true", help="first sentences as summaries, no writer")
    runs.add_argument(
        "--likelihood", metavar="PROFILE", help="also measure by this profile's writer as reader"
    )
    runs.add_argument("--answers", action="store_true", help="also let the writer answer")
    runs.add_argument("--read-systems", nargs="+", help="only their contexts are read or answered from")
    runs.add_argument("--read-budgets", type=int, nargs="+", help="only contexts of these budgets")
    runs.add_argument("--output", type=Path, help="result file, in place of the one in benchmarks/results")
    runs.set_defaults(run=run)
    readme = commands.add_parser("readme", help="write tables and pictures of all results into the README")
    readme.set_defaults(
        run=lambda _: write_readme(
            ROOT / "README.md", *(sorted(RESULTS.glob(f"{kind}-*.json")) for kind in ("quality", "variation"))
        )
    )
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
