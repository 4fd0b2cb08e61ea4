"""Profiles: which models run, and every size that follows from them."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Everything that a run depends on besides its corpus.

    Sizes of leaves, contexts and prompts are counted in tokens of the embedder's tokenizer, since it is
    always at hand (a recorded run needs no writer on disk) and since it is the one that cuts text off.
    """

    name: str
    embedder: str
    writer: str
    judge: str
    chunk_tokens: int = 100
    chunk_overlap: int = 0
    token_budget: int = 1000
    """Tokens of context for an answer, the same for every system."""
    prompt_tokens: int = 2000
    """Cap of a whole summary prompt, template included."""
    writer_ratio: float = 1.0
    """Tokens of the writer for one of the embedder's, where the writer's tokenizer cuts text finer."""
    summary_tokens: int = 180
    gist_tokens: int = 60
    answer_tokens: int = 160
    verdict_tokens: int = 200
    repetition_penalty: float = 1.0
    batch_size: int = 8
    max_levels: int = 3
    threshold: float = 0.1
    """Probability above which a node joins a further cluster."""
    margin: float = 0.05
    """Cosine within which a node also joins another cluster (see `helpers.clustering.cluster`)."""
    seed: int = 0

    @property
    def tree_options(self) -> dict:
        """The options of `helpers.tree.build_tree` that a profile decides."""
        return {
            "max_prompt_tokens": self.prompt_tokens,
            "max_levels": self.max_levels,
            "threshold": self.threshold,
            "margin": self.margin,
            "seed": self.seed,
        }


PROFILES = {
    "cpu": Profile("cpu", "all-MiniLM-L6-v2", "qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b"),
    "tiny": Profile(
        "tiny",
        "all-MiniLM-L6-v2",
        "smollm2-135m",
        "smollm2-135m",
        token_budget=600,
        prompt_tokens=1200,
        writer_ratio=1.35,  # the most of any leaf of the site is 1.33
        summary_tokens=80,
        answer_tokens=60,
        repetition_penalty=1.1,
        max_levels=2,
    ),
    # The models, chunk size and k of the source, on a GPU with the weights from the hub.
    "gpu": Profile(
        "gpu",
        "sentence-transformers/all-MiniLM-L6-v2",
        "mistralai/Mistral-7B-Instruct-v0.2",
        "Qwen/Qwen2-7B-Instruct",
        chunk_tokens=1000,
        chunk_overlap=100,
        token_budget=5000,
        prompt_tokens=12000,
        summary_tokens=512,
        answer_tokens=512,
        verdict_tokens=512,
    ),
    # Any OpenAI-compatible endpoint; names and address come from the environment (see `helpers.models`).
    "server": Profile("server", "all-MiniLM-L6-v2", "server", "server", token_budget=2000, batch_size=4),
}


def load_profile(name: str | None = None) -> Profile:
    """Return a profile by name.

    Parameters
    ----------
    name : str, optional
        ``cpu``, ``tiny``, ``gpu`` or ``server``; by default the environment's ``WORKBENCH_PROFILE``, else
        ``cpu``.

    Raises
    ------
    ValueError
        If there is no such profile.
    """
    name = name or os.environ.get("WORKBENCH_PROFILE") or "cpu"
    if name not in PROFILES:
        raise ValueError(f"no profile {name!r}: choose one of {', '.join(PROFILES)} (WORKBENCH_PROFILE)")
    return PROFILES[name]
