"""What a parser is, and what it is given.

A stream is read in chunks of whole lines. Each chunk is offered to the parsers in the order of their
`priority`; a parser says which of the lines that are left it claims, and turns them into tables.
A parser whose records span lines far apart (`whole = True`) gets all its lines at once, at the end.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import ClassVar, Protocol, runtime_checkable

import polars as pl

from postmortem.schema import conform

__all__ = ["Context", "Head", "Parser", "Skipped", "Sweeping", "Swept", "Tables"]


@dataclasses.dataclass(frozen=True)
class Head:
    """The beginning of a stream: at most 64 KiB, decoded, colour codes and CRs removed."""

    lines: list[str]
    name: str
    """File name without its folder and compression suffix, `-` for standard input."""

    def share(self, pattern: re.Pattern[str]) -> float:
        """The share of the non-blank lines that match `pattern` at their beginning."""
        lines = [line for line in self.lines if line.strip()]
        return sum(bool(pattern.match(line)) for line in lines) / len(lines) if lines else 0.0


@dataclasses.dataclass(frozen=True)
class Skipped:
    """A claimed line that could not be read whole, and why."""

    line: int
    reason: str
    text: str


@dataclasses.dataclass
class Context:
    """What a parser may know of the stream and leave for the analysis."""

    source: int
    name: str
    profile: object
    """The active `postmortem_parsers.profiles.Profile`."""
    warnings: list[str] = dataclasses.field(default_factory=list)
    skipped: list[Skipped] = dataclasses.field(default_factory=list)
    columns: list[str] = dataclasses.field(default_factory=list)
    """What columns or bare values were taken to mean, in words, for the report."""
    cut_line: int | None = None
    """The stream's last line, when the stream ended within it: a value at its very end may not be whole."""


class Tables:
    """Frames by table name, gathered from several parsers or chunks."""

    def __init__(self) -> None:
        self._frames: dict[str, list[pl.DataFrame]] = {}

    def add(self, table: str, frame: pl.DataFrame) -> None:
        """Append rows; columns that the table knows and the frame lacks become null."""
        if frame.height:
            self._frames.setdefault(table, []).append(conform(table, frame))

    def update(self, other: Tables) -> None:
        """Append all of another's rows."""
        for table, frames in other._frames.items():
            self._frames.setdefault(table, []).extend(frames)

    def names(self) -> list[str]:
        """The tables that hold rows."""
        return list(self._frames)

    def frames(self, table: str) -> list[pl.DataFrame]:
        """A table's rows as they were added."""
        return self._frames.get(table, [])

    def get(self, table: str) -> pl.DataFrame | None:
        """All rows of a table in the order of their lines, or None."""
        frames = self._frames.get(table)
        return pl.concat(frames).sort("source", "line", maintain_order=True) if frames else None


@dataclasses.dataclass(frozen=True)
class Swept:
    """What one fast pass over a chunk has settled."""

    frames: list[tuple[str, pl.DataFrame]]
    """Rows, by table, in the tables' own columns."""
    sure: pl.Series
    """Which of the chunk's lines are surely this parser's and begin with a UTC time."""
    rest: pl.DataFrame
    """Lines (clean text) that still go through `claim` and `parse`: all that are not sure, and some that are."""


@runtime_checkable
class Sweeping(Protocol):
    """A parser that settles most of its lines in a pass of its own; only the parser of the lowest priority is asked.

    `sweep` runs in several threads at once, on chunks in any order, and must give what `claim` and `parse` would.
    """

    def sweep(
        self, lines: pl.DataFrame, context: Context, clean: Callable[[pl.Series], pl.Series] | None
    ) -> Swept | None:
        """Settle lines of `lines` (columns `line`, `text`), None for none.

        With `clean`, the texts still hold colour codes, which it takes off.
        """
        ...


@runtime_checkable
class Parser(Protocol):
    """One family of formats. Found through the entry-point group `postmortem.parsers`."""

    name: ClassVar[str]
    reads: ClassVar[str]
    """One line for `postmortem formats`: which programs write this."""
    example: ClassVar[str]
    """A sample line (or a few)."""
    priority: ClassVar[int]
    """Lower is asked first. 10 daemon records, 30 kernel, 50 samples, 80 loose lines of text."""
    whole: ClassVar[bool]
    """True: `parse` is called once with all claimed lines of the stream."""

    def sniff(self, head: Head) -> float:
        """How sure (0…1) this parser is that the stream holds lines for it; 0 = do not offer any."""
        ...

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Which of `lines` (columns `line`, `text`; text without colour codes and CR) are this parser's."""
        ...

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Tables from claimed lines. Broken ones are reported in `context.skipped`, never raised."""
        ...
