"""Summaries: what the trees of the benchmark are written with."""

from collections.abc import Sequence

from langchain_core.prompts import PromptTemplate

from helpers.models import load_gist_writer, load_summariser, whole_sentences
from helpers.profiles import Profile
from helpers.recording import content_key
from helpers.summaries import SUMMARY_PROMPT

# The helpers' prompt speaks of software documentation; this one asks the same of any text.
TEXT_PROMPT = PromptTemplate.from_template(
    """Below are passages from a longer text, in its order.

{passages}

Summarise these passages in one paragraph of 80 to 120 words. Begin with what they are about together, then say \
what each adds. Keep exact names of people, places and things, who does what and why, and numbers. Use only what \
the passages say. No lists, no headings."""
)

PROMPTS = {"text": TEXT_PROMPT, "documentation": SUMMARY_PROMPT}


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
