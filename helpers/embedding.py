"""Embedding: no token unread, no text embedded twice."""

import sqlite3
import warnings
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings
from tokenizers import Tokenizer

from helpers.recording import content_key

# WordPiece maps a word of more than 100 characters to a single [UNK]. Counting at least one token for every
# 6 characters keeps such text from slipping through every limit at the price of one token.
CHARACTERS_PER_TOKEN = 6
UNKNOWN_SHARE_WARNED = 0.3


class WindowEmbedder(Embeddings):
    """Sentence-transformers embeddings of texts of any length.

    A text over the model's window is cut into windows, and its vector is the mean of their vectors, weighted by
    their tokens and scaled to unit length. (The bare model reads its first 256 word pieces and cuts the rest off in
    silence.)

    Parameters
    ----------
    model : str
        A folder, or a name on the hub.
    identity : str
        What tells this embedder from others; it stands in every index made with it.
    window : int
        Tokens that the model reads, its special tokens not counted.
    cache : path, optional
        An SQLite file of vectors already computed.
    """

    def __init__(self, model: str, identity: str, window: int = 254, cache: str | Path | None = None):
        self.model, self.identity, self.window = model, identity, window
        self._cache = VectorCache(cache)
        # A token budget is read far down a ranking, so the same texts are counted with every question.
        self._count = lru_cache(maxsize=200_000)(self._count_uncached)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, without truncation and padding."""
        file = Path(self.model) / "tokenizer.json"
        tokenizer = Tokenizer.from_file(str(file)) if file.exists() else Tokenizer.from_pretrained(self.model)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _encoder(self):
        # Counting tokens needs no torch: it loads with the first text to embed.
        from langchain_huggingface import HuggingFaceEmbeddings

        return HuggingFaceEmbeddings(model_name=self.model, encode_kwargs={"normalize_embeddings": True})

    def count_tokens(self, text: str) -> int:
        """Return the tokens of a text, special tokens not counted, and never fewer than one per 6 characters."""
        return self._count(text)

    def _count_uncached(self, text):
        pieces = len(self.tokenizer.encode(text, add_special_tokens=False).ids)
        return max(pieces, -(-len(text) // CHARACTERS_PER_TOKEN))

    def unknown_share(self, text: str) -> float:
        """Return the share of a text's tokens that the model does not know (Chinese in MiniLM: two thirds)."""
        tokens = self.tokenizer.encode(text, add_special_tokens=False).tokens
        return tokens.count("[UNK]") / len(tokens) if tokens else 0.0

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector a text; only texts that were never embedded before reach the model."""
        keys = [content_key(self.identity, self.window, text) for text in texts]
        vectors = self._cache.get(keys)
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if fresh:
            self._warn_of_unknown_text(fresh.values())
            computed = dict(zip(fresh, self._embed_windows(list(fresh.values())), strict=True))
            self._cache.put(computed)
            vectors |= computed
        return [vectors[key].tolist() for key in keys]

    def embed_query(self, text: str) -> list[float]:
        """Return the unit vector of a question."""
        return self.embed_documents([text])[0]

    def windows(self, text: str) -> list[str]:
        """Cut a text between words into pieces of at most `window` tokens; a short text is one window."""
        encoding = self.tokenizer.encode(text, add_special_tokens=False)
        words, spans = encoding.word_ids, encoding.offsets
        windows, start = [], 0
        while len(spans) - start > self.window:
            end = start + self.window
            # Half a word has other tokens, and often more of them, than it had inside its word.
            while end > start and words[end] == words[end - 1]:
                end -= 1
            if end == start:  # one word fills the window
                end = start + self.window
            windows.append(text[spans[start][0] : spans[end - 1][1]])
            start = end
        return [*windows, text[spans[start][0] : spans[-1][1]]] if windows else [text]

    def _embed_windows(self, texts):
        windows = [self.windows(text) for text in texts]
        flat = [window for of_text in windows for window in of_text]
        vectors = np.asarray(self._encoder.embed_documents(flat), dtype=np.float32)  # (windows, d)
        weights = np.array([max(1, self.count_tokens(window)) for window in flat], dtype=np.float32)
        ends = np.cumsum([len(of_text) for of_text in windows])
        means = [
            np.average(vectors[end - len(of_text) : end], axis=0, weights=weights[end - len(of_text) : end])
            for end, of_text in zip(ends, windows, strict=True)
        ]
        return [(mean / np.linalg.norm(mean)).astype(np.float32) for mean in means]

    def _warn_of_unknown_text(self, texts):
        unread = [text for text in texts if self.unknown_share(text) > UNKNOWN_SHARE_WARNED]
        if unread:
            warnings.warn(
                f"{self.identity} does not know most tokens of {len(unread)} text(s), such as {unread[0][:30]!r}: "
                "their vectors mean little. Choose a multilingual embedder for this corpus.",
                stacklevel=4,
            )


class VectorCache:
    """Vectors by key in an SQLite file (in memory without one); several processes may share it."""

    def __init__(self, file: str | Path | None = None):
        if file:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(file or ":memory:", check_same_thread=False, timeout=60)
        self._database.execute("CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, vector BLOB)")

    def get(self, keys: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the vectors of those keys that are here."""
        found = {}
        for i in range(0, len(keys), 500):
            part = list(keys[i : i + 500])
            marks = ",".join("?" * len(part))
            rows = self._database.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", part)
            found |= {key: np.frombuffer(blob, dtype=np.float32) for key, blob in rows}
        return found

    def put(self, vectors: dict[str, np.ndarray]) -> None:
        """Store vectors; a key that is here already keeps its vector."""
        rows = [(key, vector.astype(np.float32).tobytes()) for key, vector in vectors.items()]
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
