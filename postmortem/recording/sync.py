"""A copy of the run directory at a second place, kept up while the run lasts, for containers that vanish whole."""

import threading
from pathlib import Path
from typing import Self

from postmortem.errors import UsageError

__all__ = ["Copy"]

_EVERY_S = 1.0
_BLOCK = 1 << 20


class Copy:
    """Every second appends what has grown; the recorder's files are only ever appended to or written once."""

    def __init__(self, folder: Path, target: Path) -> None:
        self._folder, self._target = folder, target
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"--sync {target}: {error.strerror}"
            raise UsageError(msg) from error
        if any(target.iterdir()):
            msg = f"--sync {target} is not empty: it holds the copy of one run"
            raise UsageError(msg)
        self._copied: dict[Path, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._once()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self._once()

    def _once(self) -> None:
        for file in [one for one in self._folder.rglob("*") if one.is_file()]:
            try:
                self._append(file)
            except OSError:
                continue  # the other place may be full or away for a while; the next second tries again

    def _append(self, file: Path) -> None:
        name = file.relative_to(self._folder)
        copy = self._target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        with file.open("rb") as source, copy.open("ab") as target:
            source.seek(self._copied.get(name, 0))
            while block := source.read(_BLOCK):
                target.write(block)
                self._copied[name] = self._copied.get(name, 0) + len(block)
