"""Writers: what is recorded, what is replayed, and when a model is loaded."""

import json
from dataclasses import replace

import pytest

from helpers import models
from helpers.fetch import WEIGHTS
from helpers.models import Writer, fetch_profile, load_embedder, load_judge, load_writer, whole_sentences
from helpers.profiles import load_profile
from helpers.recording import Journal, NotRecorded


class Model:
    """Stands for a loaded model: answers in capitals. Counts loads, keeps batches, fails where told to."""

    def __init__(self, fail_in_batch=None):
        self.loads, self.batches, self.fail_in_batch = 0, [], fail_in_batch

    def load(self):
        self.loads += 1
        return self.generate

    def generate(self, prompts):
        self.batches.append(prompts)
        if len(self.batches) == self.fail_in_batch:
            raise RuntimeError("out of memory")
        return [prompt.upper() for prompt in prompts]


def writer_on(model, journal=None, **options):
    return Writer(identity="small", load=model.load, journal=journal, **options)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "calls.jsonl"


# Recording.


def test_a_miss_is_computed_once_and_then_replayed(file):
    model = Model()
    writer = writer_on(model, Journal(file))
    assert model.loads == 0  # a writer costs nothing before its first call
    assert [writer.invoke("one"), writer.invoke("one"), writer.invoke("two")] == ["ONE", "ONE", "TWO"]
    assert model.batches == [["one"], ["two"]]
    assert model.loads == 1


def test_a_replay_loads_no_model(file):
    journal = Journal(file)
    writer_on(Model(), journal).batch(["one", "two"])
    journal.close()
    untouched = Model()
    replay = Journal(file)
    assert writer_on(untouched, replay).batch(["two", "one"]) == ["TWO", "ONE"]
    assert untouched.loads == 0
    assert (replay.live, replay.replayed) == (0, 2)


def test_without_a_journal_every_call_is_made():
    model = Model()
    writer = writer_on(model)
    assert [writer.invoke("one"), writer.invoke("one")] == ["ONE", "ONE"]
    assert model.batches == [["one"], ["one"]]


def test_an_entry_tells_a_reader_its_prompt_and_its_cost(file):
    writer_on(Model(), Journal(file)).invoke("one")
    (entry,) = map(json.loads, file.read_text().splitlines())
    assert set(entry) == {"key", "prompt", "seconds", "value"}
    assert (entry["prompt"], entry["value"]) == ("one", "ONE")
    assert entry["seconds"] >= 0


@pytest.mark.parametrize("identity", ["other weights", "other decoding"])
def test_another_model_or_decoding_does_not_replay_this_one(file, identity):
    journal = Journal(file)
    writer_on(Model(), journal).invoke("one")
    model = Model()
    Writer(identity=identity, load=model.load, journal=journal).invoke("one")
    assert model.batches == [["one"]]


def test_a_strict_miss_says_what_was_asked_and_what_to_do(file):
    model = Model()
    writer = writer_on(model, Journal(base=[file], strict=True))
    with pytest.raises(NotRecorded) as caught:
        writer.invoke("Question: what is a tokenizer?\n\nAnswer:")
    message = str(caught.value)
    assert "an answer to 'Question: what is a tokenizer?" in message
    assert "is not recorded" in message
    assert "python -m helpers fetch" in message
    assert model.loads == 0


# Batches.


def test_duplicates_in_a_batch_are_computed_once():
    model = Model()
    assert writer_on(model).batch(["a", "b", "a"]) == ["A", "B", "A"]
    assert [sorted(batch) for batch in model.batches] == [["a", "b"]]


def test_batches_are_made_of_prompts_of_like_length_and_answers_keep_the_order_asked():
    model = Model()
    prompts = ["xx", "xxxx", "x", "xxxxx", "xxx"]
    assert writer_on(model, batch_size=2).batch(prompts) == [prompt.upper() for prompt in prompts]
    # The longest first: what does not fit in memory fails at once, not after an hour.
    assert model.batches == [["xxxxx", "xxxx"], ["xxx", "xx"], ["x"]]


def test_a_failure_in_the_second_batch_keeps_the_first(file):
    journal = Journal(file)
    with pytest.raises(RuntimeError, match="out of memory"):
        writer_on(Model(fail_in_batch=2), journal, batch_size=2).batch(["aaaa", "bbb", "cc", "d"])
    journal.close()
    again = Model()
    answers = writer_on(again, Journal(file), batch_size=2).batch(["aaaa", "bbb", "cc", "d"])
    assert answers == ["AAAA", "BBB", "CC", "D"]
    assert again.batches == [["cc", "d"]]


def test_only_what_is_missing_reaches_the_model(file):
    journal = Journal(file)
    model = Model()
    writer = writer_on(model, journal)
    writer.invoke("one")
    assert writer.batch(["one", "two", "three"]) == ["ONE", "TWO", "THREE"]
    assert model.batches == [["one"], ["three", "two"]]


# Stop words.


def test_an_answer_is_cut_at_the_first_stop_word():
    model = Model()
    writer = writer_on(model)
    assert writer.invoke("answer;question#rest", stop=["#", ";"]) == "ANSWER"
    assert writer.invoke("answer;question#rest") == "ANSWER;QUESTION#REST"


def test_stop_words_are_part_of_the_key(file):
    writer = writer_on(Model(), Journal(file))
    assert writer.invoke("one-two", stop=["-"]) == "ONE"
    assert writer.invoke("one-two") == "ONE-TWO"
    assert writer.invoke("one-two", stop=["-"]) == "ONE"


# Answers that the token limit cut off.


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Use map. It is fast. It also ca", "Use map. It is fast."),
        ("Use map. It is fast.", "Use map. It is fast."),
        ('It says "stop." Then it', 'It says "stop."'),
        ("Is it 3.14 or model.safetensors? It", "Is it 3.14 or model.safetensors?"),
        ("no whole sentence", "no whole sentence"),
        ("Do it:\n1. Load it.\n2. Save", "Do it:\n1. Load it."),
        ("Do this:\n1. Load the", "Do this:\n1. Load the"),  # the 1. ends no sentence
        ("Like this. ```python\nx = 1", "Like this. ```python\nx = 1"),
        ("Like this. ```python\nx = 1\n```\n", "Like this. ```python\nx = 1\n```"),
        ("", ""),
    ],
)
def test_an_answer_ends_with_a_whole_sentence(text, kept):
    assert whole_sentences(text) == kept
    writer = Writer(identity="small", load=lambda: lambda prompts: [text])
    assert writer.invoke("prompt") == kept


def test_a_verdict_is_kept_as_it_was_written(loaders):
    judge = load_judge(load_profile("tiny"))
    assert judge.invoke('One sentence. {"winner": "A"}') == 'One sentence. {"winner": "A"}'


# From profiles.


@pytest.fixture
def loaders(monkeypatch):
    """Replace the three loaders by ones that note how they were called."""
    calls = []

    def note(kind):
        def load(*args, **kwargs):
            calls.append((kind, args, kwargs))
            return lambda prompts: prompts

        return load

    for kind in ("gguf", "hub", "server"):
        monkeypatch.setattr(models, f"load_{kind}", note(kind))
    return calls


def decoding(profile, tokens):
    return {"max_new_tokens": tokens, "repetition_penalty": profile.repetition_penalty, "greedy": True}


@pytest.mark.parametrize("name", ["cpu", "tiny"])
def test_gguf_profiles_load_their_file_once_at_the_first_call(loaders, name):
    profile = load_profile(name)
    writer = load_writer(profile)
    assert loaders == []
    writer.invoke("a")
    writer.invoke("b")
    assert loaders == [("gguf", (WEIGHTS[profile.writer], decoding(profile, profile.answer_tokens)), {})]


def test_the_gpu_profile_loads_the_writer_in_4_bits_and_the_judge_as_it_is(loaders):
    profile = load_profile("gpu")
    load_writer(profile).invoke("a")
    load_judge(profile).invoke("a")
    assert [(kind, args[0], kwargs) for kind, args, kwargs in loaders] == [
        ("hub", "mistralai/Mistral-7B-Instruct-v0.2", {"four_bit": True}),
        ("hub", "Qwen/Qwen2-7B-Instruct", {"four_bit": False}),
    ]


def test_the_server_profile_asks_for_the_model_in_the_environment(loaders, monkeypatch):
    monkeypatch.setenv("WORKBENCH_SERVER_MODEL", "some-model")
    load_writer(load_profile("server")).invoke("a")
    assert [(kind, args[0]) for kind, args, _ in loaders] == [("server", "some-model")]


def test_summaries_and_answers_may_have_different_lengths(loaders):
    profile = load_profile("tiny")
    load_writer(profile, max_new_tokens=profile.summary_tokens).invoke("a")
    assert loaders[0][1][1]["max_new_tokens"] == 80


def test_whatever_decides_an_answer_decides_the_identity():
    cpu, tiny, gpu = map(load_profile, ("cpu", "tiny", "gpu"))
    identities = [
        load_writer(cpu).identity,
        load_writer(cpu, max_new_tokens=7).identity,
        load_writer(tiny).identity,
        load_writer(gpu).identity,
        load_judge(gpu).identity,
    ]
    assert len(set(identities)) == 5
    # One model, the same decoding: writer or judge is no difference, and neither is the size of a batch.
    assert load_judge(cpu).identity == load_writer(cpu, max_new_tokens=cpu.verdict_tokens).identity
    assert load_writer(cpu, batch_size=3).identity == load_writer(cpu).identity


def test_the_identity_of_a_model_and_settings_stays_what_it_was():
    # data/recorded holds calls under such identities: made in another way, every recorded answer is lost.
    profile = replace(load_profile("cpu"), answer_tokens=160, repetition_penalty=1.0)
    assert load_writer(profile).identity == "1d03486d3a17924ca2b6399e"


def test_the_embedder_of_the_cpu_profile_comes_out_of_a_package(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "ROOT", tmp_path)
    embedder = load_embedder(load_profile("cpu"))
    assert embedder.identity == "all-MiniLM-L6-v2"
    assert embedder.count_tokens("hello world") == 2
    assert (tmp_path / "build" / "embeddings" / "all-MiniLM-L6-v2.sqlite").exists()


def test_the_embedder_of_the_gpu_profile_is_named_as_on_the_hub(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "ROOT", tmp_path)
    embedder = load_embedder(load_profile("gpu"))
    assert embedder.model == "sentence-transformers/all-MiniLM-L6-v2"
    file = "sentence-transformers--all-MiniLM-L6-v2.sqlite"
    assert (tmp_path / "build" / "embeddings" / file).exists()


def test_fetching_a_profile_fetches_each_of_its_models_once(monkeypatch, tmp_path):
    fetched = []
    monkeypatch.setattr(models, "fetch", lambda name: fetched.append(name) or tmp_path / "file.gguf")
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched.append)
    assert list(fetch_profile(load_profile("tiny"))) == ["smollm2-135m: file.gguf is here"]
    list(fetch_profile(load_profile("gpu")))
    list(fetch_profile(load_profile("server")))  # needs nothing on this machine
    assert fetched == [
        "smollm2-135m",
        "sentence-transformers/all-MiniLM-L6-v2",
        "mistralai/Mistral-7B-Instruct-v0.2",
        "Qwen/Qwen2-7B-Instruct",
    ]
