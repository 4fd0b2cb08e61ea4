"""Summaries: what the trees of the benchmark are written with."""

from collections.abc import Sequence

from langchain_core.prompts import PromptTemplate

from helpers.models import load_writer, whole_sentences
from helpers.profiles import Profile
from helpers.recording import Journal, content_key
from helpers.summaries import SUMMARY_PROMPT, Summariser

# The helpers' prompt speaks of software documentation; this one asks the same of any text.
TEXT_PROMPT = PromptTemplate.from_template(
    """Below are passages from a longer text, in its order.

{passages}

Summarise these passages in one paragraph of 80 to 120 words. Begin with what they are about together, then say \
what each adds. Keep exact names of people, places and things, who does what and why, and numbers. Use only what \
the passages say. No lists, no headings."""
)

# What questions about a story ask: where, who, how they stand to each other, what comes of it.
STORY_PROMPT = PromptTemplate.from_template(
    """Below are passages from a longer story, in its order.

{passages}

Summarise these passages in one paragraph of 80 to 120 words: where it happens, who the people are and how they stand \
to each other, what each of them does, why and with what result, and which things matter. Keep exact names of people, \
places and things. Use only what the passages say. No lists, no headings."""
)

SHORTEN_PROMPT = PromptTemplate.from_template(
    """Passage:
{passages}

Shorten this passage to one sentence of 20 to 30 words that keeps the names of people, places and things, and what \
happens or is said."""
)
SHORT_TOKENS = 60

DEFAULT_PROMPT = "text"
PROMPTS = {
    "text": TEXT_PROMPT,
    "story": STORY_PROMPT,
    "shorten": SHORTEN_PROMPT,
    "documentation": SUMMARY_PROMPT,
}


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


class ShortenedPassages(Summariser):
    """Shortens each passage by itself, and puts the sentences together: no passage is lost among many."""

    def batch(self, inputs, config=None, *, return_exceptions=False, **kwargs) -> list:
        passages = list(dict.fromkeys(passage for group in inputs for passage in group))
        prompts = [{"passages": passage} for passage in passages]
        sentences = dict(zip(passages, self.chain.batch(prompts, config, **kwargs), strict=True))
        return [" ".join(sentences[passage] for passage in group) for group in inputs]


def load_summariser(profile: Profile, prompt: str, count_tokens, extract: bool = False):
    """Return the profile's writer behind a prompt of `PROMPTS`, or `FirstSentences` if `extract`.

    Raises
    ------
    ValueError
        If there is no such prompt.
    """
    if extract:
        return FirstSentences()
    if prompt not in PROMPTS:
        raise ValueError(f"no prompt {prompt!r}: choose one of {', '.join(PROMPTS)}")
    if prompt == "shorten":
        # A passage may stand in two clusters: the journal, which is in memory alone, has it shortened once.
        writer = load_writer(profile, Journal(), max_new_tokens=SHORT_TOKENS)
        return ShortenedPassages(writer, count_tokens, PROMPTS[prompt], profile.writer_ratio)
    writer = load_writer(profile, max_new_tokens=profile.summary_tokens)
    return Summariser(writer, count_tokens, PROMPTS[prompt], profile.writer_ratio)
