"""Estimates: how long a run will take, told before it begins."""

from collections.abc import Sequence

from public.runs import Run
from public.systems import trees_needed

# The cpu profile's writer on 2 cores (AMD EPYC): prompts read a second, the writing of their summaries included.
PROMPT_TOKENS_PER_SECOND = 104
# A leaf is read once for each of its one or two parents, and its summaries again, each with the prompt around it.
# Gists read and write more than clusters do, in shorter prompts, and take about as long.
PROMPT_TOKENS_PER_LEAF_TOKEN = 1.8
SECONDS_PER_CONTEXT = 0.015
# Tokens of contexts and options that a model reads for likelihoods, by profile.
READ_TOKENS_PER_SECOND = {"tiny": 350, "cpu": 150}
# Answers are about as long as summaries, but their prompts shorter.
ANSWER_TOKENS_PER_SECOND = 60


def estimate(
    run: Run,
    is_written: bool = True,
    reader: str | None = None,
    is_answered: bool = False,
    read: tuple[Sequence[str], Sequence[int]] = ((), ()),
) -> str:
    """Return a line on how long a run takes on 2 cores.

    Parameters
    ----------
    run : Run
        Trees that were begun in an earlier run are taken for built.
    is_written : bool
        Whether a model writes the summaries.
    reader : str, optional
        The profile of the model that reads contexts for likelihoods.
    is_answered : bool
        Whether the writer answers from contexts.
    read : (systems, budgets)
        Whose contexts are read or answered from.
    """
    waiting = [
        corpus
        for kind in trees_needed(run.systems)
        for corpus in run.corpora.values()
        if not corpus.has_begun(kind)
    ]
    tokens = sum(leaf.metadata["tokens"] for corpus in waiting for leaf in corpus.leaves)
    building = tokens * PROMPT_TOKENS_PER_LEAF_TOKEN / PROMPT_TOKENS_PER_SECOND if is_written else 0
    contexts = len(run.data.questions) * len(run.systems) * len(run.budgets)
    tokens_read = len(read[0]) * sum(read[1])
    open_questions = sum(not question.options for question in run.data.questions)
    reading = len(run.data.questions) * tokens_read / READ_TOKENS_PER_SECOND.get(reader, 150) if reader else 0
    answering = open_questions * tokens_read / ANSWER_TOKENS_PER_SECOND if is_answered else 0
    parts = {
        "trees": building,
        "contexts": contexts * SECONDS_PER_CONTEXT,
        "likelihoods": reading,
        "answers": answering,
    }
    minutes = ", ".join(f"{name} {seconds / 60:.0f}" for name, seconds in parts.items())
    return (
        f"{contexts:,} contexts of {len(run.corpora)} corpora; trees to build: {len(waiting)}, over "
        f"{tokens:,} tokens of leaves. Minutes on 2 cores, about: {minutes}."
    )
