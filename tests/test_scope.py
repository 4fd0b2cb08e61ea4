"""The scope of a question, by the real embedder: questions of kinds that are not among the examples."""

from typing import NamedTuple

import numpy as np
import pytest

from helpers.embedding import WindowEmbedder
from helpers.models import load_embedder
from helpers.profiles import load_profile
from helpers.scope import THRESHOLD, Scope


class Judge(NamedTuple):
    scope: Scope
    embedder: WindowEmbedder

    def is_broad(self, question):
        return self.scope.is_broad(np.array(self.embedder.embed_query(question)))


@pytest.fixture(scope="module")
def minilm():
    embedder = load_embedder(load_profile("cpu"))
    return Judge(Scope(embedder), embedder)


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
    """Broad examples on one axis, narrow ones on the other, none of unit length."""

    def embed_documents(self, texts):
        return [[3.0, 0.0] if text.startswith("b") else [0.0, 5.0] for text in texts]


def test_breadth_is_the_difference_of_mean_cosines():
    scope, question = Scope(Axes(), broad=["b1", "b2", "b3", "b4"], narrow=["n1", "n2", "n3"]), [0.6, 0.8]
    assert scope.breadth(np.array(question)) == pytest.approx(0.6 - 0.8)
    assert scope.is_broad(np.array(question)) == (THRESHOLD < -0.2)
