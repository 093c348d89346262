"""Where a batch's results go: a folder, or an object store by its fsspec URL. Files appear whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from postmortem.archives.places import is_url
from postmortem.errors import InputError, UsageError

__all__ = ["Bucket", "Folder", "Target", "target_of"]

_AGAIN = "what is done is kept, call again"
_SEGMENT_ROWS = 100
_SEGMENT_S = 5.0


class Target(Protocol):
    """A place for files by name (`runs.parquet`, `reports/a.html`), with a journal of lines beside them.

    Everything raises InputError where the place refuses.
    """

    shown: str
    """As the user named it."""

    def prepare(self) -> None:
        """Make it ready for one batch's journal. Raises UsageError where another batch is at work."""
        ...

    def read(self, name: str) -> bytes | None:
        """A file's bytes; None where there is none."""
        ...

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    def write(self, name: str, data: bytes) -> None:
        """Put a file in place of any that is there."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...

    def append(self, line: bytes) -> None:
        """Add a line (with its newline) to the journal."""
        ...

    def journal(self) -> Iterator[bytes]:
        """The journal's whole lines, oldest first; a last one that a death has cut is left out."""
        ...

    def clear_journal(self) -> None:
        """Forget the journal's lines."""
        ...

    def release(self) -> None:
        """Let others write there."""
        ...


def target_of(out: str) -> Target:
    """The place that `--out` names. Raises UsageError where a store's package is missing."""
    if out.startswith("file://"):
        return Folder(Path(out.removeprefix("file://")))
    return Bucket(out) if is_url(out) else Folder(Path(out))


class Folder:
    """A directory of a file system that all workers see."""

    def __init__(self, folder: Path) -> None:
        self.shown = str(folder)
        self._folder = folder
        self._journal_path = folder / ".batch" / "journal.jsonl"
        self._lock: BinaryIO | None = None
        self._journal: BinaryIO | None = None

    def prepare(self) -> None:
        """Make the folder, lock it, and remove what an earlier call that was killed left half-written."""
        try:
            self._journal_path.parent.mkdir(parents=True, exist_ok=True)
            lock = (self._journal_path.parent / "lock").open("wb")
        except OSError as error:
            raise self._refused(error, then="") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            msg = f"{self.shown}: another batch is writing there; wait for it or give another --out"
            raise UsageError(msg) from error
        self._lock = lock
        for part in (*self._folder.glob(".*.part"), *self._folder.glob("reports/.*.part")):
            part.unlink(missing_ok=True)

    def read(self, name: str) -> bytes | None:
        """See `Target`."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(error) from error

    def exists(self, name: str) -> bool:
        """See `Target`."""
        return (self._folder / name).exists()

    def write(self, name: str, data: bytes) -> None:
        """See `Target`. A file is written beside its place and then renamed."""
        path = self._folder / name
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(exist_ok=True)
            part.write_bytes(data)
            part.replace(path)
        except OSError as error:
            raise self._refused(error) from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    def remove(self, name: str) -> None:
        """See `Target`."""
        with contextlib.suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def append(self, line: bytes) -> None:
        """See `Target`. The kernel has the line when this returns."""
        try:
            if self._journal is None:
                self._journal = self._journal_path.open("ab", buffering=0)
            done = 0
            while done < len(line):
                done += self._journal.write(line[done:])
        except OSError as error:
            raise self._refused(error) from error

    def journal(self) -> Iterator[bytes]:
        """See `Target`."""
        if not self._journal_path.exists():
            return
        with self._journal_path.open("rb") as lines:
            yield from (line for line in lines if line.endswith(b"\n"))

    def clear_journal(self) -> None:
        """See `Target`."""
        if self._journal_path.is_file():
            with self._journal_path.open("r+b") as journal:
                journal.truncate(0)

    def release(self) -> None:
        """See `Target`."""
        for file in (self._journal, self._lock):
            if file is not None:
                file.close()
        self._journal = self._lock = None

    def _refused(self, error: OSError, then: str = f"; {_AGAIN}") -> InputError:
        return InputError(f"{self.shown}: cannot be written ({error.strerror or error}){then}")


class Bucket:
    """An object store: an object is there whole or not at all, and cannot be appended to.

    The journal is a row of small objects, one every hundred runs or five seconds: a client that is killed loses those
    rows at most. A store has no locks: that only one batch writes into a prefix is the caller's to see to.
    """

    def __init__(self, url: str) -> None:
        self.shown = url.rstrip("/")
        try:
            core = importlib.import_module("fsspec.core")
            self._files: Any
            self._files, path = core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            msg = (
                f"{url}: {error}; needs fsspec and the store's own package: "
                "pip install 'oom-postmortem[objects]' s3fs (or gcsfs, adlfs, …)"
            )
            raise UsageError(msg) from error
        self._root = str(path).rstrip("/")
        self._lines: list[bytes] = []
        self._begun, self._number, self._since = time.time_ns(), 0, time.monotonic()

    def prepare(self) -> None:
        """Find out now whether it can be written."""
        self._asked(self._files.invalidate_cache)
        self.write(".batch/began", str(self._begun).encode())

    def read(self, name: str) -> bytes | None:
        """See `Target`."""
        try:
            return self._asked(self._files.cat_file, self._at(name))
        except FileNotFoundError:
            return None

    def exists(self, name: str) -> bool:
        """See `Target`."""
        self._files.invalidate_cache()
        return bool(self._asked(self._files.exists, self._at(name)))

    def write(self, name: str, data: bytes) -> None:
        """See `Target`."""
        self._asked(self._files.pipe_file, self._at(name), data)

    def remove(self, name: str) -> None:
        """See `Target`."""
        with contextlib.suppress(FileNotFoundError, InputError):
            self._asked(self._files.rm_file, self._at(name))

    def append(self, line: bytes) -> None:
        """See `Target`."""
        self._lines.append(line)
        if len(self._lines) >= _SEGMENT_ROWS or time.monotonic() - self._since >= _SEGMENT_S:
            self._flush()

    def journal(self) -> Iterator[bytes]:
        """See `Target`."""
        self._flush()
        for segment in self._segments():
            yield from (self._asked(self._files.cat_file, segment) or b"").splitlines(keepends=True)

    def clear_journal(self) -> None:
        """See `Target`."""
        for segment in self._segments():
            with contextlib.suppress(FileNotFoundError):
                self._asked(self._files.rm_file, segment)

    def release(self) -> None:
        """Nothing holds it."""

    def _flush(self) -> None:
        if self._lines:
            self._number += 1
            self.write(f".batch/journal/{self._begun}-{self._number:06d}.jsonl", b"".join(self._lines))
        self._lines, self._since = [], time.monotonic()

    def _segments(self) -> list[str]:
        self._files.invalidate_cache()
        try:
            return sorted(self._asked(self._files.find, self._at(".batch/journal")))
        except FileNotFoundError:
            return []

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _asked(self, call: Any, *arguments: Any) -> Any:  # noqa: ANN401 (fsspec has no types)
        try:
            return call(*arguments)
        except FileNotFoundError as error:
            if call in (self._files.pipe_file, self._files.invalidate_cache):  # a bucket that is not there
                msg = f"{self.shown}: nothing of that name is there ({error}); make the bucket first"
                raise InputError(msg) from error
            raise
        except Exception as error:
            msg = f"{self.shown}: the store refuses ({error or type(error).__name__}); {_AGAIN}"
            raise InputError(msg) from error
