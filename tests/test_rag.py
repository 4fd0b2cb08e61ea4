"""RAG: context in, answer out; and the state that says whether the evidence was enough."""

import pytest
from langchain_core.documents import Document
from langchain_core.language_models.llms import LLM
from langchain_core.retrievers import BaseRetriever

from helpers.rag import ABSTENTION, ANSWERED, INSUFFICIENT, answer_chain, format_context, is_abstention

LEAF = Document(
    "Pass padding=True.",
    metadata={"id": "a", "level": 0, "source": "https://docs/padding", "title": "Padding"},
)
SUMMARY = Document(
    "All on padding.", metadata={"id": "s", "level": 1, "sources": ["https://docs/1", "https://docs/2"]}
)


class FixedRetriever(BaseRetriever):
    """Finds the documents that its table has for a question."""

    table: dict[str, list[Document]]

    def _get_relevant_documents(self, query, *, run_manager):
        return self.table[query]


class FixedWriter(LLM):
    """Says one thing, and remembers the prompts."""

    says: str
    prompts: list[str] = []

    @property
    def _llm_type(self):
        return "fixed"

    def _call(self, prompt, stop=None, run_manager=None, **kwargs):
        self.prompts.append(prompt)
        return self.says


def ask(says, hits=(LEAF,)):
    writer = FixedWriter(says=says, prompts=[])
    return answer_chain(FixedRetriever(table={"How?": list(hits)}), writer).invoke("How?"), writer.prompts


def test_an_answer_comes_with_its_state_and_the_context_it_stands_on():
    answer, _ = ask(" Pass padding=True.\n", [LEAF, SUMMARY])
    assert answer.text == "Pass padding=True."
    assert answer.state == ANSWERED
    assert answer.hits == [LEAF, SUMMARY]


def test_the_prompt_holds_question_context_and_the_words_to_abstain_with():
    _, (prompt,) = ask("Yes.")
    assert prompt.endswith("Context:\n[Padding]\nPass padding=True.\n\nQuestion: How?\n\nAnswer:")
    assert f"write only: {ABSTENTION}\n" in prompt


def test_braces_in_a_page_are_text_not_a_template():
    page = Document('{"input_ids": {x}}', metadata={"level": 0, "title": "JSON"})
    _, (prompt,) = ask("Yes.", [page])
    assert '{"input_ids": {x}}' in prompt


def test_without_evidence_the_writer_is_not_asked():
    answer, prompts = ask("From memory: use padding.", hits=())
    assert prompts == []
    assert (answer.text, answer.state, answer.hits) == (ABSTENTION, INSUFFICIENT, [])


def test_an_abstention_is_a_state_not_an_answer():
    answer, _ = ask(ABSTENTION)
    assert answer.state == INSUFFICIENT


def test_a_batch_keeps_the_order_of_its_questions():
    other = LEAF.model_copy(update={"page_content": "Other."})
    retriever = FixedRetriever(table={"one": [LEAF], "none": [], "two": [other]})
    writer = FixedWriter(says="Yes.", prompts=[])
    answers = answer_chain(retriever, writer).batch(["one", "none", "two"])
    assert [answer.hits for answer in answers] == [[LEAF], [], [other]]
    assert [answer.state for answer in answers] == [ANSWERED, INSUFFICIENT, ANSWERED]
    assert len(writer.prompts) == 2


def test_an_empty_batch_gives_no_answers():
    assert answer_chain(FixedRetriever(table={}), FixedWriter(says="Yes.")).batch([]) == []


def test_the_chain_composes_like_any_runnable():
    chain = answer_chain(FixedRetriever(table={"How?": [LEAF]}), FixedWriter(says="Yes.", prompts=[]))
    assert (chain | (lambda answer: answer.text)).invoke("How?") == "Yes."


def test_context_is_headed_by_page_title_or_by_what_a_summary_covers():
    assert (
        format_context([LEAF, SUMMARY])
        == "[Padding]\nPass padding=True.\n\n[summary of 2 page(s)]\nAll on padding."
    )


@pytest.mark.parametrize(
    ("metadata", "heading"),
    [({"source": "https://docs/x"}, "https://docs/x"), ({"title": "", "source": "s"}, "s"), ({}, "passage")],
)
def test_a_page_without_title_is_headed_by_its_address(metadata, heading):
    assert format_context([Document("text", metadata=metadata)]) == f"[{heading}]\ntext"


@pytest.mark.parametrize(
    "text",
    [
        ABSTENTION,
        "",
        " \n",
        "The context does not contain the answer.",
        "The provided context doesn't mention a default batch size.",
        "The provided context doesn’t mention it.",  # a typographic apostrophe
        "The context provided does not explicitly state which optimizer is the default.",
        "The passages do not specify a licence.",
        "It seems that the documentation does not cover this.",
        "I cannot answer this question from the context.",
        "I'm unable to determine that.",
        "I don't know.",
        "There is no information about pricing in the provided context.",
        "The price is not mentioned in the documentation.",
        "The price isn't specified in the given context.",
        "This cannot be determined from the provided context.",
        "The question cannot be answered.",
        "There is not enough information to say.",
        "You ask for the price. The documentation does not say.",
    ],
)
def test_abstentions(text):
    assert is_abstention(text)


@pytest.mark.parametrize(
    "text",
    [
        "Use padding=True.",
        "The tokenizer does not provide padding by default.",
        "The tokenizer does not say which language it reads; pass it.",
        "The text does not contain special tokens until the post-processor adds them.",
        "from_pretrained cannot find the file when HF_HUB_OFFLINE is set.",
        "DataCollatorWithPadding is needed: the default collator cannot pad.",
        "With streaming=True the length of the data set cannot be determined.",
        "If dtype is not specified in the call, float32 is used.",
        "A pad token must be given if the vocabulary does not include one.",
        # About passages, but as a condition: this is how question answering treats them.
        "When the context does not contain the answer, the pipeline returns an empty string.",
        "The offsets are (0, 0) where the passage does not hold the answer.",
        # An answer that ends with a limit is still an answer.
        "Call map. It takes num_proc. It is fast. The documentation does not say how fast.",
    ],
)
def test_answers_that_only_sound_like_abstentions(text):
    assert not is_abstention(text)
