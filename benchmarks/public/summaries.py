"""Summaries: what the trees of the benchmark are written with."""

from collections.abc import Sequence

from langchain_core.prompts import PromptTemplate

from helpers.models import load_gist_writer, load_summariser, whole_sentences
from helpers.profiles import Profile
from helpers.recording import content_key
from helpers.summaries import SUMMARY_PROMPT

# The helpers' prompt speaks of software documentation; this one asks the same of any text.
TEXT = """Below are passages from a longer text, in its order.

{passages}

Summarise these passages in one paragraph of LENGTH words. Begin with what they are about together, then say \
what each adds. Keep exact names of people, places and things, who does what and why, and numbers. Use only what \
the passages say. No lists, no headings."""

# What questions about stories ask for.
STORY_PROMPT = PromptTemplate.from_template(
    """Below are passages from a story, in its order.

{passages}

Retell these passages in one paragraph of 80 to 120 words: where they play, who acts, how these people stand to each \
other, what each wants, what happens and why, and how it ends. Call people, places and things by their names. Use only \
what the passages say. No lists, no headings."""
)


def _of_length(words):
    return PromptTemplate.from_template(TEXT.replace("LENGTH", words))


PROMPTS = {
    "text": _of_length("80 to 120"),
    "short": _of_length("40 to 60"),
    "long": _of_length("200 to 280"),
    "story": STORY_PROMPT,
    "documentation": SUMMARY_PROMPT,
}
"""The headline runs have "text". Others change its length ("long" with `--vary summary_tokens=400`) or what it asks."""


class FirstSentences:
    """A writer without a model: the first words of each passage, cut at whole sentences where there are some.

    Parameters
    ----------
    words : int
        Of a summary, shared evenly by the passages.
    """

    def __init__(self, words: int = 100):
        self.words = words
        self.identity = content_key("first sentences", words)

    def __call__(self, passages: Sequence[str]) -> str:
        share = max(5, self.words // len(passages))
        return " ".join(whole_sentences(" ".join(passage.split()[:share])) for passage in passages)


def load_writers(profile: Profile, prompt: str, count_tokens, extract: bool = False):
    """Return the writers of summaries and of gists: the profile's, or `FirstSentences` if `extract`.

    Raises
    ------
    ValueError
        If there is no such prompt for summaries in `PROMPTS`.
    """
    if extract:
        return FirstSentences(), FirstSentences(words=25)
    if prompt not in PROMPTS:
        raise ValueError(f"no prompt {prompt!r}: choose one of {', '.join(PROMPTS)}")
    return load_summariser(profile, count_tokens, PROMPTS[prompt]), load_gist_writer(profile, count_tokens)
