"""Estimates: how long a run will take, told before it begins."""

from collections.abc import Sequence

from public.runs import Run
from public.systems import needs_trees

# The cpu profile's writer on 2 cores (AMD EPYC): prompts read a second, the writing of their summaries included.
PROMPT_TOKENS_PER_SECOND = 104
# A leaf is read once for each of its one or two parents, and its summaries again, each with the prompt around it.
PROMPT_TOKENS_PER_LEAF_TOKEN = 1.8
SECONDS_PER_CONTEXT = 0.006
# The tiny profile's model as a reader of contexts and options. The cpu profile's is about ten times slower.
READ_TOKENS_PER_SECOND = 350


def estimate(run: Run, is_written: bool = True, read: Sequence[str] = ()) -> str:
    """Return a line on how long a run takes on 2 cores.

    Parameters
    ----------
    run : Run
        Trees that were begun in an earlier run are taken for built.
    is_written : bool
        Whether a model writes the summaries.
    read : sequence of str
        Systems whose contexts a model reads for likelihoods.
    """
    trees = needs_trees(run.systems)
    waiting = [corpus for corpus in run.corpora.values() if not corpus.journal_file.exists()] if trees else []
    tokens = trees * sum(leaf.metadata["tokens"] for corpus in waiting for leaf in corpus.leaves)
    building = tokens * PROMPT_TOKENS_PER_LEAF_TOKEN / PROMPT_TOKENS_PER_SECOND if is_written else 0
    contexts = len(run.data.questions) * len(run.systems) * len(run.budgets)
    reading = len(run.data.questions) * len(read) * sum(run.budgets) / READ_TOKENS_PER_SECOND
    parts = {"trees": building, "contexts": contexts * SECONDS_PER_CONTEXT, "likelihoods": reading}
    minutes = ", ".join(f"{name} {seconds / 60:.0f}" for name, seconds in parts.items())
    return (
        f"{contexts:,} contexts of {len(run.corpora)} corpora; trees to build: {trees * len(waiting)}, over "
        f"{tokens:,} tokens of leaves. Minutes on 2 cores, about: {minutes}."
    )
