"""Answers: what the writer says from a context, measured by the words that the references have in common."""

from collections.abc import Iterable, Iterator, Sequence

from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable

from helpers.summaries import join_passages
from public.measures import common_words, word_recall
from public.runs import Context

ANSWER_PROMPT = PromptTemplate.from_template(
    """Below are passages from a longer text.

{passages}

Question: {question}

Answer the question from these passages in one paragraph of 80 to 120 words, with exact names of people, places \
and things."""
)


def answered(contexts: Iterable[Context], writer: Runnable) -> Iterator[dict]:
    """Yield a row with ``answer words`` for each context that it applies to.

    That is for questions without options whose references have words in common. All prompts reach the writer at once;
    one with a journal answers the same question over the same context once.
    """
    asked = [
        (context, gold)
        for context in contexts
        if not context.question.options and (gold := common_words(context.question.answers))
    ]
    prompts = [prompt(context.question.text, context.hits) for context, _ in asked]
    for (context, gold), text in zip(asked, writer.batch(prompts), strict=True):
        yield context.about | {"answer words": round(word_recall(gold, [text]), 6)}


def prompt(question: str, hits: Sequence[Document]) -> str:
    """Return what the writer is asked."""
    passages = join_passages([hit.page_content for hit in hits])
    return ANSWER_PROMPT.format(passages=passages, question=question)
