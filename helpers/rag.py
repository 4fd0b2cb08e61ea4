"""RAG: a question, its retrieved context, and an answer that says when the context is not enough."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableSerializable
from pydantic import ConfigDict

ANSWERED = "answered"
INSUFFICIENT = "insufficient evidence"
ABSTENTION = "The documentation does not say."

ANSWER_PROMPT = PromptTemplate.from_template(
    """You are an expert on the Hugging Face ecosystem. Answer the question from the context alone, in \
a few sentences, with exact names of classes, functions and arguments. If the context does not hold the \
answer, write only: """
    + ABSTENTION
    + """

Context:
{context}

Question: {question}

Answer:"""
)

# What a model says instead of the sentence it was asked for. The subject matters: that a context holds
# nothing is an abstention; that a tokenizer does not provide something, or cannot find it, is an answer.
_EVIDENCE = r"(documentation|docs|context|passages?|(provided|given) (text|information))"
_IN_EVIDENCE = rf"(in|from|by|with|based on) (the )?(provided |given |available )?{_EVIDENCE}"
_NOT = r"(not|n't)( (explicitly|directly|clearly|specifically))?"
_ABSTAINS = re.compile(
    rf"\b{_EVIDENCE}( provided| given| above)? (do|does|did) ?{_NOT} "
    r"(say|mention|specify|state|discuss|address|cover|contain|provide|include|hold|give|explain|describe)"
    rf"|{_NOT} (mentioned|specified|stated|provided|covered|discussed|described|given|found) {_IN_EVIDENCE}"
    rf"|\bno (\w+ )?(information|mention|details?)\b.{{0,60}} {_IN_EVIDENCE}"
    rf"|(cannot|can't|could not) be (answered|found|determined) {_IN_EVIDENCE}"
    r"|\bquestion (cannot|can't|could not) be answered"
    r"|\bI('m| am)? (cannot|can't|could not|couldn't|unable to) (answer|find|determine)"
    r"|\bI (do not|don't) (know|have (enough|any|the|sufficient))"
    r"|\b(not enough|insufficient) (information|evidence)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(if|when|whenever|where|whether|unless)\b[^,;:]*$", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    """An answer with what it stands on.

    Attributes
    ----------
    text : str
    state : str
        ``answered`` or ``insufficient evidence``: then a person takes over.
    hits : list of Document
        The context, in the order in which the writer saw it.
    """

    text: str
    state: str
    hits: list[Document]


class AnswerChain(RunnableSerializable[str, Answer]):
    """Question in, `Answer` out; `batch` sends all prompts to the writer at once."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    retriever: BaseRetriever
    writer: BaseLanguageModel
    prompt: PromptTemplate = ANSWER_PROMPT

    def invoke(self, input: str, config: Any = None, **kwargs) -> Answer:
        return self.batch([input], config, **kwargs)[0]

    def batch(self, inputs, config=None, *, return_exceptions=False, **kwargs) -> list[Answer]:
        found = [self.retriever.invoke(question) for question in inputs]
        # Without evidence there is nothing to ask the writer: it would answer from memory.
        asked = [i for i, hits in enumerate(found) if hits]
        prompts = [{"context": format_context(found[i]), "question": inputs[i]} for i in asked]
        chain = self.prompt | self.writer | StrOutputParser()
        texts = dict(zip(asked, chain.batch(prompts, config), strict=True)) if prompts else {}
        return [_answer(texts.get(i, ABSTENTION), hits) for i, hits in enumerate(found)]


def answer_chain(retriever: BaseRetriever, writer: BaseLanguageModel) -> AnswerChain:
    """Return the chain that retrieves, writes, and states whether the evidence was enough."""
    return AnswerChain(retriever=retriever, writer=writer)


def format_context(documents: Sequence[Document]) -> str:
    """Return documents as one context, each headed by where it comes from."""
    return "\n\n".join(f"[{_heading(document)}]\n{document.page_content}" for document in documents)


def is_abstention(text: str) -> bool:
    """Return whether a text says, in its first two sentences, that the context does not hold the answer."""
    opening = re.split(r"(?<=[.!?])\s+", text.replace("’", "'").strip())[:2]
    return not any(opening) or any(map(_abstains, opening))


def _abstains(sentence):
    found = _ABSTAINS.search(sentence)
    # "Where the context does not contain the answer, the offsets are (0, 0)" answers.
    return bool(found) and not _CONDITION.search(sentence[: found.start()])


def _heading(document):
    metadata = document.metadata
    if metadata.get("level", 0) == 0:
        return metadata.get("title") or metadata.get("source") or "passage"
    return f"summary of {len(metadata['sources'])} page(s)"


def _answer(text, hits):
    return Answer(text.strip(), INSUFFICIENT if is_abstention(text) else ANSWERED, hits)
