"""Summaries: the prompts, their cap in tokens, and what happens to text that is over it."""

import math
from collections.abc import Callable, Sequence

from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable

from helpers.recording import content_key

SUMMARY_PROMPT = PromptTemplate.from_template(
    """Below are passages from software documentation.

{passages}

Summarise these passages in one paragraph of 80 to 120 words. Begin with what they are about together, then say \
what each adds. Keep exact names of classes, functions, arguments and files, and numbers, defaults and \
exceptions. Use only what the passages say. No lists, no headings, no code."""
)

GIST_PROMPT = PromptTemplate.from_template(
    """Passage:
{passages}

Shorten this passage to one sentence of 20 to 30 words that keeps the names of people, places and things, and what \
happens or is said."""
)

# Tokens that a chat template puts around a prompt: role markers, for some models a default system message.
TEMPLATE_TOKENS = 40


class Summariser(Runnable[list[str], str]):
    """Writes the summary of a list of passages; a Runnable, so that `batch` reaches the writer as one batch.

    Parameters
    ----------
    writer : Runnable of str to str
    count_tokens : callable
    prompt : PromptTemplate
        With one variable, ``passages``.
    writer_ratio : float
        Tokens of the writer for one of `count_tokens`.
    """

    def __init__(
        self,
        writer,
        count_tokens: Callable[[str], int],
        prompt: PromptTemplate = SUMMARY_PROMPT,
        writer_ratio: float = 1.0,
    ):
        self.chain = prompt | writer
        self._count_tokens = count_tokens
        self._ratio = writer_ratio
        self._prompt = prompt
        self.batch_size = getattr(writer, "batch_size", 8)
        self.identity = content_key(getattr(writer, "identity", type(writer).__name__), prompt.template)

    def prompt_tokens(self, passages: Sequence[str]) -> int:
        """Return the tokens of the whole prompt for these passages, chat template included."""
        tokens = self._count_tokens(self._prompt.format(passages=join_passages(passages)))
        return math.ceil(tokens * self._ratio) + TEMPLATE_TOKENS

    def invoke(self, input, config=None, **kwargs) -> str:
        return self.batch([input], config, **kwargs)[0]

    def batch(self, inputs, config=None, *, return_exceptions=False, **kwargs) -> list:
        prompts = [{"passages": join_passages(passages)} for passages in inputs]
        return self.chain.batch(prompts, config, return_exceptions=return_exceptions, **kwargs)


def join_passages(passages: Sequence[str]) -> str:
    """Return passages as one text, a blank line between them."""
    return "\n\n".join(passages)


def pack_in_order(texts: Sequence[str], fits: Callable[[Sequence[str]], bool]) -> list[list[str]]:
    """Pack texts greedily, in their order, into groups that fit; a text that is over the cap alone is cut."""
    groups, group = [], []
    for text in texts:
        for piece in cut_to_fit(text, fits):
            if group and not fits([*group, piece]):
                groups.append(group)
                group = []
            group.append(piece)
    return [*groups, group] if group else groups


def cut_to_fit(text: str, fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Cut a text into pieces that each fit: in halves, at white space where there is some."""
    if fits([text]) or len(text) < 2:
        return [text]
    middle = len(text) // 2
    space = text.rfind(" ", 1, middle)
    cut = space if space > middle // 2 else middle
    return cut_to_fit(text[:cut], fits) + cut_to_fit(text[cut:], fits)
