"""The scope of a question, by the real embedder: questions of kinds that are not among the examples."""

import pytest

from helpers.models import load_embedder
from helpers.profiles import load_profile
from helpers.scope import THRESHOLD, Scope


@pytest.fixture(scope="module")
def minilm():
    return Scope(load_embedder(load_profile("cpu")))


@pytest.mark.parametrize(
    "question",
    [
        "What is the book about?",
        "Describe the main character and how he changes.",
        "What is the relationship between the king and his daughter?",
        "Give me a summary of how adapters are trained.",
    ],
)
def test_questions_about_a_whole_are_broad(minilm, question):
    assert minilm.is_broad(question)


@pytest.mark.parametrize(
    "question",
    [
        "What did the fox say to the hen?",
        "Where did the boy hide the key?",
        "How many cows did the farmer sell?",
        "What is the default learning rate?",
    ],
)
def test_questions_about_a_place_are_narrow(minilm, question):
    assert not minilm.is_broad(question)


class Axes:
    """Broad examples on one axis, narrow ones on the other."""

    def embed_documents(self, texts):
        return [[1.0, 0.0] if text.startswith("b") else [0.0, 1.0] for text in texts]

    def embed_query(self, text):
        return [0.6, 0.8]


def test_breadth_is_the_difference_of_mean_cosines():
    scope = Scope(Axes(), broad=["b1", "b2", "b3", "b4"], narrow=["n1", "n2", "n3"])
    assert scope.breadth("?") == pytest.approx(0.6 - 0.8)
    assert scope.is_broad("?") == (THRESHOLD < -0.2)
