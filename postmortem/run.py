"""One run: every table of its evidence, and where each row came from."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import polars as pl

from postmortem.model import MemoryModel
from postmortem.schema import TABLES, empty
from postmortem.spill import LongTable, between

__all__ = ["Excerpts", "Options", "Run", "SourceFacts"]

Excerpts = Callable[[Sequence[tuple[int, int]], int], Mapping[tuple[int, int], list[tuple[int, str]]]]
"""((source, line) pairs, lines around) -> numbered lines of text for each pair."""


class SourceFacts(Protocol):
    """What reading a source told about it, beside the tables (`reading.SourceInfo`)."""

    path: str
    sha256: str
    bytes: int
    lines: int
    unmatched: int
    skipped: int

    @property
    def parsers(self) -> Mapping[str, int]:
        """Lines by parser."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """What was wrong with it."""
        ...

    @property
    def unmatched_examples(self) -> Sequence[str]:
        """A line of each kind that no parser knows."""
        ...

    @property
    def columns(self) -> Sequence[str]:
        """What columns or bare values were taken to mean."""
        ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """What the user states about the run, above all evidence."""

    limit: int | None = None
    budget: int | None = None
    tz_minutes: int | None = None
    """Offset of undated or zoneless clocks, minutes east of UTC; None = found from the overlap with the log."""
    since: dt.datetime | None = None
    until: dt.datetime | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Tables by name (every name of `schema.TABLES`), and what is known of their sources."""

    name: str
    tables: Mapping[str, pl.DataFrame | LongTable]
    sources: Sequence[SourceFacts]
    lines_time: pl.DataFrame
    """(source, line, time) of dated log lines, thinned: neighbours for lines without a time."""
    model: MemoryModel = dataclasses.field(default_factory=MemoryModel)
    profile: str | None = None
    options: Options = dataclasses.field(default_factory=Options)

    def table(self, name: str) -> pl.DataFrame:
        """A table, empty where no parser filled it. One that may be long is better gone through by `frames`."""
        frame = self.tables.get(name)
        if isinstance(frame, LongTable):
            return frame.frame()
        return empty(name) if frame is None else frame

    def frames(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """A table's rows in order, those of a long one in several frames."""
        held = self.tables.get(name)
        if isinstance(held, LongTable):
            yield from held.frames(columns)
        else:
            frame = self.table(name)
            yield frame if columns is None else frame.select(columns)

    def rows(self, name: str) -> int:
        """Rows of a table; of a long one, those outside of the attempt included."""
        held = self.tables.get(name)
        return 0 if held is None else held.height

    def pick(self, name: str, where: pl.Expr, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The rows of a table for which `where` (an expression over `columns`) holds."""
        schema = TABLES[name]
        nothing = pl.DataFrame(schema={column: schema[column] for column in columns or schema})
        return pl.concat([nothing, *(frame.filter(where) for frame in self.frames(name, columns))])

    def first(self, name: str, where: pl.Expr) -> dict[str, Any] | None:
        """The first row of a table for which `where` holds."""
        for frame in self.frames(name):
            found = frame.filter(where).head(1)
            if found.height:
                return found.row(0, named=True)
        return None

    def last(self, name: str, where: pl.Expr) -> dict[str, Any] | None:
        """The last row of a table for which `where` holds."""
        found: dict[str, Any] | None = None
        for frame in self.frames(name):
            rows = frame.filter(where).tail(1)
            found = rows.row(0, named=True) if rows.height else found
        return found

    def cite(self, source: int, line: int) -> str:
        """`file:line`, as every output cites a line."""
        return f"{self.sources[source].path}:{line}"

    def inside_window(self) -> "Run":
        """The run between `options.since` and `until`; rows that no clock could place stay. For placed tables only."""
        since, until = self.options.since, self.options.until
        after = None if until is None else until + dt.timedelta(microseconds=1)
        # Task tables belong to their kill reports, whatever their own stamps say.
        tables = {
            name: frame if name == "tasks" else between(frame, since, after, undated=True)
            for name, frame in self.tables.items()
        }
        lines_time = between(self.lines_time, since, after, undated=True)
        assert isinstance(lines_time, pl.DataFrame)
        return dataclasses.replace(self, tables=tables, lines_time=lines_time)

    def with_tables(self, tables: Mapping[str, pl.DataFrame | LongTable]) -> "Run":
        """The same run with some tables replaced."""
        return dataclasses.replace(self, tables={**self.tables, **tables})
