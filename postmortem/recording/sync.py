"""A copy of the run directory at a second place, kept up while the run lasts, for containers that vanish whole.

Everything that touches the second place happens in a thread of its own that the recording never waits for, but for a
bounded time at the start and at the end: a mount that hangs or a store that refuses costs the copy, not the run.
"""

import threading
from pathlib import Path
from typing import Protocol, Self

from postmortem.errors import UsageError
from postmortem.recording import scrub
from postmortem.recording.say import say
from postmortem.recording.stores import Directory, NotEmptyError, Store

__all__ = ["Copy"]

_START_S = 5.0  # how long the first look at the second place may hold up the start
_LONGEST_WORDS = 200
_END_S = 20.0  # how long the last copy may hold up the end


class Place(Protocol):
    """A second place."""

    shown: str
    """As messages name it."""
    every_s: float
    """Pause between two rounds, in seconds."""

    def prepare(self) -> None:
        """Make it. Raises NotEmptyError where something is there already, OSError and others where it cannot be."""
        ...

    def bring(self, file: Path, name: str, *, last: bool) -> None:
        """Bring one file up to date; `last` = there is no later round. Raises what the place raises."""
        ...


class Copy:
    """Copies what has grown; the recorder's files are only ever appended to or written once.

    `target`: a directory on another mount (a second behind), or an fsspec URL (whole files, some seconds behind).
    """

    def __init__(self, folder: Path, target: str | Path) -> None:
        self._folder = folder
        self._place: Place = Store(str(target)) if "://" in str(target) else Directory(Path(target))
        self._trouble = ""
        self._refused: NotEmptyError | None = None
        self._behind = True
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="sync", daemon=True)

    @property
    def trouble(self) -> str:
        """What went wrong last; empty where the copy is complete."""
        return self._trouble

    def __enter__(self) -> Self:
        """Start copying. Raises UsageError where the second place holds something already."""
        self._thread.start()
        answered = self._ready.wait(_START_S)
        if self._refused is not None:
            msg = f"--sync {self._place.shown} is not empty: it holds the copy of one run"
            raise UsageError(msg)
        if not answered:
            self._say(f"no answer for {_START_S:.0f} s")
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._refused is not None:
            return
        self._thread.join(_END_S)
        if self._thread.is_alive():
            self._trouble = self._trouble or "the last copy takes too long"
        if self._behind or self._thread.is_alive():
            say(f"the copy in {self._place.shown} is not complete ({self._trouble}); {self._folder} is")

    def _run(self) -> None:
        pause = 0.0
        while not self._stop.wait(pause) and not self._prepared():
            pause = self._place.every_s
        if self._refused is not None or (self._stop.is_set() and not self._prepared()):
            return
        while not self._stop.wait(self._place.every_s):
            self._round(last=False)
        self._round(last=True)

    def _prepared(self) -> bool:
        try:
            self._place.prepare()
        except NotEmptyError as error:
            self._refused = error
        except Exception as error:  # noqa: BLE001 (whatever a store's library raises must not end the recording)
            self._say(_words(error))
        else:
            self._trouble = ""
        self._ready.set()
        return self._refused is not None or not self._trouble

    def _round(self, *, last: bool) -> None:
        failed = ""
        for file in sorted(one for one in self._folder.rglob("*") if one.is_file()):
            try:
                self._place.bring(file, str(file.relative_to(self._folder)), last=last)
            except Exception as error:  # noqa: BLE001 (the other place may be full or away; the next round tries again)
                failed = _words(error)
                break
        self._behind = bool(failed)
        if failed:
            self._say(failed)
        self._trouble = failed

    def _say(self, trouble: str) -> None:
        """When trouble begins, not again in each round that it lasts."""
        if not self._trouble:
            say(f"--sync {self._place.shown}: {trouble}; the recording goes on")
        self._trouble = trouble


def _words(error: Exception) -> str:
    words = error.strerror if isinstance(error, OSError) and error.strerror else f"{error}"
    return scrub.text(words.splitlines()[0][:_LONGEST_WORDS] if words else type(error).__name__)
