"""Recording: an append-only journal of what was paid for, and the three ways of reading it.

A journal is crash recovery, the recording that notebooks replay, and the base of incremental updates at once:
each finished call is one JSON line, on disk before the next call starts.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "data" / "recorded"
MODES = ("replay", "live", "strict")


class JournalError(RuntimeError):
    """A journal that cannot be read, or that another process is writing."""


class NotRecorded(RuntimeError):
    """A call that the recording does not hold, where none may be made."""


def content_key(*parts) -> str:
    """Return a short hash of JSON-able parts: equal parts, equal key, on every machine."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


class Journal:
    """Key-value store on append-only JSON lines.

    Parameters
    ----------
    path : path, optional
        The file that new entries go to; none makes the journal read-only.
    base : sequence of path
        Recordings that are read and never written.
    strict : bool
        Whether a missing key raises `NotRecorded`.

    Attributes
    ----------
    live, replayed : int
        How many entries were written, and how many read, by this object.
    """

    def __init__(self, path=None, base=(), strict=False):
        self.path = Path(path) if path else None
        self.strict = strict
        self.live = self.replayed = 0
        self._lock = None
        self._base = [Path(file) for file in base]
        self._entries = {}
        for file in self.files:
            self._entries |= _read_entries(file)

    @property
    def files(self) -> list[Path]:
        """The files that this journal reads, as far as they exist."""
        return [file for file in [*self._base, self.path] if file and file.exists()]

    def __len__(self):
        return len(self._entries)

    def __contains__(self, key):
        return key in self._entries

    def get(self, key: str, what: str = "call"):
        """Return the value of a key, or None: then the caller may compute it and `put` it.

        The first None locks the file, so that two runs on one journal never pay for the same call.

        Raises
        ------
        NotRecorded
            In a strict journal, which answers from its recording or not at all.
        JournalError
            If another process is writing this journal.
        """
        if key in self._entries:
            self.replayed += 1
            return self._entries[key]
        if self.strict:
            raise NotRecorded(
                f"{what} is not recorded (key {key}). Run it live: make compare LIVE=1, "
                "or set WORKBENCH_MODE=replay with the models fetched (python -m helpers fetch)"
            )
        if self.path and not self._lock:
            self._acquire()
            return self.get(key, what)
        return None

    def put(self, key: str, value, **about) -> None:
        """Append one entry; it is on disk when this returns. `about` is for human readers of the file."""
        if self.path:
            if not self._lock:
                self._acquire()
            self._append(json.dumps({"key": key, **about, "value": value}, ensure_ascii=False))
        self._entries[key] = value
        self.live += 1

    def _append(self, line):
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            with suppress(OSError):  # what was written of the line must not run into the next one
                os.truncate(self.path, size)
            raise JournalError(
                f"cannot write {self.path.name}: {error.strerror}. Earlier entries are safe; free the space "
                "and run again to go on from here"
            ) from error

    def close(self) -> None:
        """Release the lock, so that another process may write."""
        if self._lock:
            self._lock.release()
            self._lock = None

    def _acquire(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{self.path}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise JournalError(
                f"another run is writing {self.path.name}: wait for it or stop it, then run again"
            ) from None
        self._lock = lock
        if self.path.exists():
            # Entries that another run wrote since this object was made.
            self._entries |= _read_entries(self.path, mend=True)


def _read_entries(file: Path, mend: bool = False) -> dict:
    """Read a journal; a half-written last line (a crash while writing) is left out, and cut off if `mend`."""
    entries, good = {}, 0
    data = file.read_bytes()
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entry = json.loads(line)
                entries[entry["key"]] = entry["value"]
            except (ValueError, KeyError, TypeError):
                if any(rest.strip() for rest in lines[number:]):
                    raise JournalError(
                        f"{file.name}, line {number} is damaged: delete that line, the others are kept"
                    ) from None
                break
        good += len(line) + 1
    if mend and good < len(data):
        os.truncate(file, good)
    elif mend and data and not data.endswith(b"\n"):
        with file.open("ab") as handle:
            handle.write(b"\n")
    return entries


def recording_mode(mode: str | None = None) -> str:
    """Return the mode in force: the given one, else that of the environment's ``WORKBENCH_MODE``.

    ``replay`` (default) answers from the recording and computes what it lacks; ``live`` leaves the recording
    aside and computes everything, going on where an earlier live run stopped; ``strict`` only replays.
    """
    mode = mode or os.environ.get("WORKBENCH_MODE") or "replay"
    if mode not in MODES:
        raise ValueError(f"no mode {mode!r}: WORKBENCH_MODE is one of {', '.join(MODES)}")
    return mode


def open_recording(name: str, profile, mode: str | None = None) -> Journal:
    """Open the journal ``name`` of a profile in the given mode (default: the environment's)."""
    mode = recording_mode(mode)
    file = f"{profile.name}/{name}.jsonl"
    if mode == "live":
        return Journal(ROOT / "build" / "live" / file)
    recorded = RECORDED / file
    if mode == "strict":
        return Journal(base=[recorded], strict=True)
    return Journal(ROOT / "build" / "replay" / file, base=[recorded])
