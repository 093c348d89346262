"""The second places that `--sync` knows: a directory on another mount, and whatever fsspec opens by URL.

Directories are appended to every second. Object stores cannot append: there a file that has grown is written whole, and
rests twenty times as long as that took, so that large logs cost at most a twentieth of the time.
"""

import importlib
import time
from pathlib import Path
from typing import Any

from postmortem.errors import UsageError
from postmortem.recording import scrub

__all__ = ["Directory", "NotEmptyError", "Store"]

_BLOCK = 1 << 20
_REST_TIMES = 20
_HINT = "needs fsspec and the store's own package: pip install 'oom-postmortem[objects]' s3fs (or gcsfs, adlfs, …)"


class NotEmptyError(Exception):
    """Something is there already."""


class Directory:
    """A directory, on another mount for the best."""

    def __init__(self, path: Path) -> None:
        self.shown = str(path)
        self.every_s = 1.0
        self._path = path
        self._copied: dict[str, int] = {}

    def prepare(self) -> None:
        """Make it. Raises NotEmptyError, OSError."""
        self._path.mkdir(parents=True, exist_ok=True)
        if any(self._path.iterdir()):
            raise NotEmptyError

    def bring(self, file: Path, name: str, *, last: bool) -> None:
        """Append what is new. What a full disk took only in part is written again from its beginning."""
        del last
        copy = self._path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as source, copy.open("r+b" if name in self._copied else "wb", buffering=0) as target:
            done = self._copied.setdefault(name, 0)
            source.seek(done)
            target.seek(done)
            while block := source.read(_BLOCK):
                done += target.write(block)
                source.seek(done)
                self._copied[name] = done


class Store:
    """An fsspec URL such as `s3://bucket/runs/7`. Raises UsageError where its package is not installed."""

    def __init__(self, url: str) -> None:
        self.shown = scrub.text(url)
        self.every_s = 5.0
        try:
            core = importlib.import_module("fsspec.core")
            self._files: Any
            self._files, path = core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            msg = f"--sync {self.shown}: {error}; {_HINT}"
            raise UsageError(msg) from error
        self._root = str(path).rstrip("/")
        self._brought: dict[str, int] = {}
        self._rests_until: dict[str, float] = {}

    def prepare(self) -> None:
        """Look whether it is free. Raises NotEmptyError, and what the store raises."""
        self._files.invalidate_cache()
        try:
            found = self._files.find(self._root)
        except FileNotFoundError:
            found = []
        if found:
            raise NotEmptyError
        self._files.makedirs(self._root, exist_ok=True)

    def bring(self, file: Path, name: str, *, last: bool) -> None:
        """Write the whole file if it has grown and has rested long enough."""
        size = file.stat().st_size
        began = time.monotonic()
        if size == self._brought.get(name, -1) or (began < self._rests_until.get(name, 0.0) and not last):
            return
        self._files.put_file(str(file), f"{self._root}/{name}")
        self._brought[name] = size
        self._rests_until[name] = time.monotonic() + _REST_TIMES * (time.monotonic() - began)
