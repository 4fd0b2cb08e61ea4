"""Stand-ins for the two models: deterministic, and counting what they are asked for."""

import hashlib

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.recording import content_key


def random_vector(text, dimensions=32):
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=dimensions)


def random_vectors(n, dimensions=32, seed=0):
    return np.random.default_rng(seed).normal(size=(n, dimensions))


class TopicEmbedder(Embeddings):
    """Texts that begin with the same word lie close together; different words are random directions."""

    identity = "topics"

    def __init__(self, spread=0.3):
        self.spread = spread
        self.texts = []  # all that was ever embedded

    def embed_documents(self, texts):
        self.texts += texts
        return [(random_vector(t.split()[0]) + self.spread * random_vector(t)).tolist() for t in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class OnePointEmbedder(TopicEmbedder):
    """Every text has the same vector: all are one cluster, and only the prompt's cap divides them."""

    identity = "one point"

    def embed_documents(self, texts):
        self.texts += texts
        return [[1.0, 0.0]] * len(texts)


class CountingWriter:
    """Writes, for a cluster, the first word of its first text and eight characters that depend on all.

    `fails(number, texts)`, the number of the call from 1, says whether a call raises.
    """

    identity = "counting"

    def __init__(self, fails=lambda number, texts: False):
        self.fails = fails
        self.calls = []

    def __call__(self, texts):
        self.calls.append(list(texts))
        if self.fails(len(self.calls), texts):
            raise ConnectionError("the writer is out")
        return f"{texts[0].split()[0]} {content_key(texts)[:8]}"


class CountingGists(CountingWriter):
    """Writes, for a text, its first three words."""

    identity = "gists"

    def __call__(self, texts):
        super().__call__(texts)
        (text,) = texts
        return " ".join(text.split()[:3])


def make_leaves(texts, pages=1):
    """Leaves in the order of the texts, spread evenly over a number of pages."""
    return [
        Document(
            text,
            id=f"leaf{i}",
            metadata={"id": f"leaf{i}", "source": f"https://x.org/{i * pages // len(texts)}"},
        )
        for i, text in enumerate(texts)
    ]
