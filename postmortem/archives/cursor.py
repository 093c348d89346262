"""Reading a run's files: from disk, or from its archive with a cursor that only goes forwards.

Runs are handed out in the order of their archive, so that each worker passes a compressed tar once, however many runs
it takes of it.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from typing import BinaryIO, cast

from postmortem.archives.grouping import FoundRun
from postmortem.archives.held import hold
from postmortem.archives.limits import Limits, RefusedError
from postmortem.archives.members import Member, walk
from postmortem.archives.places import open_file

__all__ = ["read_run"]


class _Named(io.BufferedReader):
    """An open file under the name that the run has for it."""

    def __init__(self, raw: io.RawIOBase, name: str) -> None:
        super().__init__(raw, 1 << 20)
        self._shown = name

    @property
    def name(self) -> str:
        return self._shown


@dataclasses.dataclass
class _Cursor:
    place: str
    file: BinaryIO
    members: Iterator[Member]
    passed: int = 0

    def forward_to(self, number: int) -> Member | None:
        member = None
        while self.passed <= number:
            member = next(self.members, None)
            if member is None:
                return None
            self.passed += 1
        return member


_open: dict[str, _Cursor] = {}
"""The one archive that this process is in."""


def read_run(run: FoundRun, limits: Limits) -> list[BinaryIO]:
    """The run's files as the analysis takes them. Raises OSError where one cannot be read."""
    files: list[BinaryIO] = []
    held = 0
    for entry in sorted(run.entries, key=lambda entry: (entry.place, entry.number)):
        if entry.number < 0:
            files.append(_file(entry.place, run.shown(entry)))
            continue
        member = _at(entry.place, entry.number, limits)
        if member is None or member.open is None:
            msg = f"{entry.path}: no longer in its archive"
            raise RefusedError(msg)
        kept, held = hold(run.shown(entry), member.open(), limits, held)
        files.append(kept)
    return files


def _file(place: str, name: str) -> BinaryIO:
    file = open_file(place)
    raw = getattr(file, "raw", file)
    if isinstance(raw, io.RawIOBase):
        cast(io.BufferedReader, file).detach()
        return cast(BinaryIO, _Named(raw, name))
    return cast(BinaryIO, _Named(cast(io.RawIOBase, file), name))


def _at(place: str, number: int, limits: Limits) -> Member | None:
    cursor = _open.get(place)
    if cursor is None or cursor.passed > number:
        for old in _open.values():
            old.file.close()
        _open.clear()
        file = open_file(place)
        cursor = _open[place] = _Cursor(place, file, walk(file, limits))
    return cursor.forward_to(number)
