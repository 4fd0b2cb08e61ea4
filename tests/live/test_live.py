"""The tiny profile for real: SmolLM2-135M loads, reads and writes (not well: see tests/README.md)."""

import json
import os

import pytest
from langchain_core.documents import Document
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from helpers import backends
from helpers.backends import chat_prompt
from helpers.embedding import WindowEmbedder
from helpers.fetch import WEIGHTS, weights_folder
from helpers.index import VectorIndex
from helpers.leaves import split_leaves
from helpers.llamacpp import LlamaCpp
from helpers.models import load_embedder, load_writer
from helpers.pages import page_text
from helpers.profiles import load_profile
from helpers.rag import answer_chain
from helpers.recording import ROOT, Journal
from helpers.retrievers import CollapsedTreeRetriever
from helpers.summaries import GIST_PROMPT, Summariser
from helpers.tree import build_tree

PROFILE = load_profile("tiny")
WEIGHTS_FILE = weights_folder() / WEIGHTS[PROFILE.writer].file
PAGES = ["peft/lora.html", "datasets/streaming.html", "tokenizers/training-a-tokenizer.html"]
QUESTION = "What does the argument r of LoraConfig set?"

pytestmark = pytest.mark.skipif(
    not WEIGHTS_FILE.exists() and os.environ.get("WORKBENCH_REQUIRE_LIVE") != "1",
    reason=f"{WEIGHTS_FILE.name} is not on this machine: python -m helpers fetch tiny",
)


def read_pages(names):
    return [
        Document(
            page_text((ROOT / "data" / "site" / name).read_text(encoding="utf-8")), metadata={"source": name}
        )
        for name in names
    ]


@pytest.fixture(scope="module")
def embedder():
    return load_embedder(PROFILE)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(WEIGHTS_FILE.parent, gguf_file=WEIGHTS_FILE.name)


@pytest.fixture(scope="module")
def engine():
    """OpenVINO as the engine; the list says how many tokens of each batch the model really read."""
    genai = pytest.importorskip("openvino_genai")
    read = []

    class Noting(genai.LLMPipeline):
        def generate(self, *args, **kwargs):
            results = super().generate(*args, **kwargs)
            read.append(results.perf_metrics.get_num_input_tokens())
            return results

    # Neither what was opened before may stand in, nor what notes be left to others.
    backends._openvino_pipeline.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_BACKEND", "openvino")
        patch.setattr(genai, "LLMPipeline", Noting)
        yield read
    backends._openvino_pipeline.cache_clear()


@pytest.fixture(scope="module")
def build(engine, embedder, tmp_path_factory):
    """A tree over the first 150 tokens or so of three pages, and the journal of its writer's calls."""
    pages = [Document(page.page_content[:900], metadata=page.metadata) for page in read_pages(PAGES)]
    leaves = split_leaves(pages, embedder.count_tokens, chunk_tokens=60, overlap=0)
    calls = tmp_path_factory.mktemp("live") / "calls.jsonl"
    writer = load_writer(PROFILE, Journal(calls), max_new_tokens=PROFILE.summary_tokens)
    summarise = Summariser(writer, embedder.count_tokens, writer_ratio=PROFILE.writer_ratio)
    tree = build_tree(
        leaves, embedder, summarise, max_prompt_tokens=PROFILE.prompt_tokens, max_levels=PROFILE.max_levels
    )
    return tree, [json.loads(line) for line in calls.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def answer(build, embedder):
    tree, _ = build
    retriever = CollapsedTreeRetriever(
        index=VectorIndex.build(list(tree.nodes.values()), embedder),
        token_budget=PROFILE.token_budget,
        count_tokens=embedder.count_tokens,
    )
    return answer_chain(retriever, load_writer(PROFILE)).invoke(QUESTION)


def test_the_weights_are_here():
    # With WORKBENCH_REQUIRE_LIVE=1 nothing here is skipped: this says at once what is missing.
    assert WEIGHTS_FILE.exists(), "python -m helpers fetch tiny"


def test_a_tree_over_a_dozen_leaves(build):
    tree, calls = build
    assert len(tree.levels[0]) >= 12
    assert 1 <= len(tree.levels[1]) <= len(tree.levels[0]) // 2
    summaries = [node for level in tree.levels[1:] for node in level]
    assert len(calls) >= len(summaries)
    for summary in summaries:
        assert len(summary.page_content.split()) > 5
        assert set(summary.metadata["sources"]) == set(tree.sources(summary.metadata["id"])) <= set(PAGES)
    assert {source for node in tree.roots for source in node.metadata["sources"]} == set(PAGES)


def test_gists_say_less_than_their_leaves(engine, embedder):
    pages = [Document(page.page_content[:900], metadata=page.metadata) for page in read_pages(PAGES)]
    leaves = split_leaves(pages, embedder.count_tokens, chunk_tokens=100, overlap=0)[:4]
    writer = load_writer(PROFILE, max_new_tokens=PROFILE.gist_tokens)
    gist = Summariser(writer, embedder.count_tokens, GIST_PROMPT, PROFILE.writer_ratio)
    tree = build_tree(leaves, embedder, str, gist=gist, max_levels=0)
    said, gists = (
        sum(embedder.count_tokens(node.page_content) for node in nodes) for nodes in (leaves, tree.gists)
    )
    assert len(tree.gists) == 4 and 0 < gists < said
    assert not any("Shorten this passage" in node.page_content for node in tree.gists)


def test_no_summary_gives_its_prompt_back(build):
    _, calls = build
    for call in calls:
        instruction = call["prompt"].split(".")[0]
        assert instruction == "Below are passages from software documentation"
        assert instruction not in call["value"]
        assert not call["value"].startswith(call["prompt"][:100])
        assert "<|im_" not in call["value"]


def test_an_answer_with_its_sources(answer):
    assert answer.text
    assert "<|im_" not in answer.text
    assert f"Question: {QUESTION}" not in answer.text
    assert answer.state in ("answered", "insufficient evidence")
    assert "peft/lora.html" in answer.hits[0].metadata["sources"]
    assert all(set(hit.metadata["sources"]) <= set(PAGES) for hit in answer.hits)


def test_openvino_applies_the_chat_template_once(engine, tokenizer):
    # Bug bank 18: the engine has read exactly the tokens of the prompt in its template, no marker more.
    prompt = "What is the capital of France?"
    writer = load_writer(PROFILE, max_new_tokens=8, whole_sentences=False)
    assert "Paris" in writer.invoke(prompt)
    assert engine[-1] == len(tokenizer(chat_prompt(tokenizer, prompt), add_special_tokens=False).input_ids)


def test_llamacpp_answers_a_batch(monkeypatch):
    monkeypatch.setenv("WORKBENCH_BACKEND", "llamacpp")
    writer = load_writer(PROFILE, max_new_tokens=8, whole_sentences=False)
    paris, *others = writer.batch(["Name the capital of France.", *["Name a colour."] * 5])
    assert "Paris" in paris
    assert len(set(others)) == 1 and others[0]


def test_llamacpp_applies_the_chat_template_once_and_refuses_what_is_too_long(tokenizer):
    model, prompt = LlamaCpp(WEIGHTS_FILE, window=256), "What is the capital of France?"
    (completion,) = model.chats([prompt], max_tokens=8, temperature=0)
    rendered = tokenizer(chat_prompt(tokenizer, prompt), add_special_tokens=False).input_ids
    assert completion["usage"]["prompt_tokens"] == len(rendered)
    with pytest.raises(ValueError, match="llama.cpp: .*lower the budget"):
        model.chats(["word " * 300], max_tokens=8)
    with pytest.raises(ValueError, match="llama.cpp had room for"):
        model.chats(["word " * 200], max_tokens=80, ignore_eos=True)


def test_transformers_answers_without_echo(monkeypatch):
    monkeypatch.setenv("WORKBENCH_BACKEND", "transformers")
    writer = load_writer(PROFILE, max_new_tokens=8, whole_sentences=False)
    # Bug bank 17: the answer alone. Two prompts of different length: the shorter one is padded.
    prompts = ["What is the capital of France?", "Say hello."]
    capital, hello = writer.batch(prompts)
    assert "Paris" in capital
    assert hello
    assert not any(prompt in text for prompt in prompts for text in (capital, hello))


def test_the_real_template_reaches_the_model_once(tokenizer):
    # Bug bank 18, with the tokenizer that the profile really uses and a model of random weights.
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=128,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )
    model = LlamaForCausalLM(config).eval()
    seen, generate = [], model.generate
    model.generate = lambda *args, **kwargs: seen.append(kwargs["input_ids"]) or generate(*args, **kwargs)
    backends._pipeline_generate(model, tokenizer, {"max_new_tokens": 1, "repetition_penalty": 1.0})(["Hello"])
    assert tokenizer.decode(seen[0][0]) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


class OnePoint(WindowEmbedder):
    """Counts as the profile's embedder, but puts all texts in one place: only the cap divides them."""

    def embed_documents(self, texts):
        return [[1.0, 0.0]] * len(texts)


def test_rendered_prompts_stay_under_the_cap_in_the_writers_own_tokens(embedder, tokenizer):
    # Sizes are planned in the embedder's tokens. Here every prompt over the site, which the cap alone cuts
    # into clusters, is counted as the writer reads it: in its own tokens, template included.
    prompts = []

    def writer(prompt):
        prompts.append(prompt.to_string())
        return "A summary."

    names = sorted(
        str(path.relative_to(ROOT / "data" / "site")) for path in (ROOT / "data" / "site").rglob("*.html")
    )
    leaves = split_leaves(
        read_pages(names), embedder.count_tokens, PROFILE.chunk_tokens, PROFILE.chunk_overlap
    )
    summarise = Summariser(writer, embedder.count_tokens, writer_ratio=PROFILE.writer_ratio)
    one_point = OnePoint(embedder.model, "one point")
    build_tree(leaves, one_point, summarise, max_prompt_tokens=PROFILE.prompt_tokens, max_levels=1)
    sizes = [
        len(tokenizer(chat_prompt(tokenizer, prompt), add_special_tokens=False).input_ids)
        for prompt in prompts
    ]
    assert max(sizes) > PROFILE.prompt_tokens // 2  # the cap was at work
    assert max(sizes) <= PROFILE.prompt_tokens
