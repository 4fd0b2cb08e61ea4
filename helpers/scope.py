"""Scope: whether a question is about a whole text or about one place in it, told from its wording."""

from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from helpers.vectors import unit_rows

# Written for this purpose, with no names, so that only the form of a question is compared.
BROAD = (
    "What is it about as a whole?",
    "Give an overview of the main ideas.",
    "What is the plot?",
    "Describe the setting.",
    "Who is this person and what happens to them throughout?",
    "How does the relationship between the two develop?",
    "What is the significance of this object?",
    "Compare the different approaches and their trade-offs.",
    "How do the parts fit together?",
    "Summarise what the documentation says about this topic.",
)
NARROW = (
    "What did he say when he arrived?",
    "Where did they find it?",
    "Who gave her the ring?",
    "How many were there?",
    "When did it happen?",
    "Why did she run away?",
    "What did the man do after that?",
    "How did he feel when he lost it?",
    "What is the default value of this parameter?",
    "Which option turns it off?",
    "How do I save the model?",
    "Which function loads the data?",
    "What does this method return?",
    "What happens when the argument is missing?",
)
NEAREST = 3
# Chosen on six stories and six tales: 93 % of the broad questions are above it, and 2 % of the narrow ones.
THRESHOLD = -0.02


class Scope:
    """Compares a question with examples of broad and of narrow ones.

    The choice of how to retrieve from the question itself follows Adaptive-RAG (Jeong et al., NAACL 2024), with
    nearest examples in the place of a trained classifier.

    Parameters
    ----------
    embedder : Embeddings
        Its threshold was measured with all-MiniLM-L6-v2.
    broad, narrow : sequence of str
        Examples; others may suit another corpus better.
    """

    def __init__(self, embedder: Embeddings, broad: Sequence[str] = BROAD, narrow: Sequence[str] = NARROW):
        self._broad, self._narrow = (
            unit_rows(embedder.embed_documents(list(part))) for part in (broad, narrow)
        )

    def breadth(self, vector: np.ndarray) -> float:
        """Return how much nearer a question is to broad examples than to narrow ones (mean cosine of the 3 nearest).

        Parameters
        ----------
        vector : array of shape (d,)
            The question's, of unit length (`helpers.index.VectorIndex.question_vector`).
        """
        broad, narrow = (np.sort(part @ vector)[-NEAREST:].mean() for part in (self._broad, self._narrow))
        return float(broad - narrow)

    def is_broad(self, vector: np.ndarray) -> bool:
        """Return whether the question with this vector is about a whole text."""
        return self.breadth(vector) > THRESHOLD
