"""Tables too long to be held: in pieces on disk, read back a piece and the wanted columns at a time.

The pieces of a reading share one temporary file without a name, so that nothing is left of it however the process
ends. Arrow's IPC format with LZ4: a million rows take 10 to 20 MiB of disk and a tenth of a second.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import polars as pl

from postmortem.schema import empty

__all__ = ["Gathering", "LongTable", "Piece", "Spill", "between"]

_PIECE_ROWS = 1 << 18
"""Rows that a table has before they leave memory: with all its columns, some 40 MiB."""
_KEY = ("source", "line")


@dataclasses.dataclass(frozen=True)
class Piece:
    """Some rows of a table, in order of source and line."""

    rows: int
    first: tuple[int, int]
    """(source, line) of its first row."""
    last: tuple[int, int]
    times: tuple[dt.datetime, dt.datetime] | None
    """Earliest and latest; None where a row has none, or all have none."""
    place: tuple[int, int] | pl.DataFrame
    """Offset and length in the spill's file; the rows themselves where the disk would not take them."""


class Spill:
    """The temporary file."""

    def __init__(self) -> None:
        self._file: BinaryIO | None = None
        self._end = 0
        self.refused: str | None = None
        """Why the disk did not take a piece, so that rows stay in memory."""

    def put(self, frame: pl.DataFrame) -> Piece:
        """Store a frame that has rows in order of source and line."""
        first, last = frame.row(0, named=True), frame.row(-1, named=True)
        low, high = frame["time"].min(), frame["time"].max()
        dated = frame["time"].null_count() == 0 and isinstance(low, dt.datetime) and isinstance(high, dt.datetime)
        return Piece(
            rows=frame.height,
            first=(first["source"], first["line"]),
            last=(last["source"], last["line"]),
            times=(low, high) if dated else None,  # type: ignore[arg-type]  # `dated` says that both are moments
            place=self._write(frame),
        )

    def _write(self, frame: pl.DataFrame) -> tuple[int, int] | pl.DataFrame:
        if self.refused is not None:
            return frame
        buffer = io.BytesIO()
        frame.write_ipc(buffer, compression="lz4")
        data, offset = buffer.getbuffer(), self._end
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="postmortem-")  # noqa: SIM115 (lives as long as the tables)
            at = 0
            while at < len(data):
                at += os.pwrite(self._file.fileno(), data[at:], offset + at)
        except OSError as error:
            self.refused = error.strerror or str(error)
            return frame
        self._end += len(data)
        return offset, len(data)

    def get(self, piece: Piece, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The rows of a piece."""
        if isinstance(piece.place, pl.DataFrame):
            return piece.place if columns is None else piece.place.select(columns)
        assert self._file is not None
        offset, length = piece.place
        data = io.BytesIO(os.pread(self._file.fileno(), length, offset))
        return pl.read_ipc(data, columns=list(columns) if columns is not None else None)


@dataclasses.dataclass(frozen=True)
class LongTable:
    """A table in pieces, in order of source and line. Rows outside of a window of time can be left out."""

    name: str
    spill: Spill
    pieces: tuple[Piece, ...]
    low: dt.datetime | None = None
    high: dt.datetime | None = None
    """Rows at or after `low` and before `high` are in it."""
    undated: bool = True
    """Whether rows without a time are."""

    @property
    def height(self) -> int:
        """Rows, those outside of the window included."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def dated(self) -> bool:
        """Whether every row has a time."""
        return all(piece.times for piece in self.pieces)

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pl.DataFrame]:
        """The rows, a piece at a time; `columns` in that order, None for all."""
        windowed = self.low is not None or self.high is not None or not self.undated
        for piece in self.pieces:
            if piece.times and not self._touches(*piece.times):
                continue
            wanted = columns if columns is None or "time" in columns or not windowed else [*columns, "time"]
            frame = self.spill.get(piece, wanted)
            if windowed:
                frame = frame.filter(_inside(self.low, self.high, undated=self.undated))
            if frame.height:
                yield frame.select(columns) if columns is not None else frame

    def frame(self) -> pl.DataFrame:
        """All rows at once."""
        return pl.concat([empty(self.name), *self.frames()])

    def between(self, low: dt.datetime | None, high: dt.datetime | None, *, undated: bool) -> LongTable:
        """The same without the rows outside of [low, high), and without those that have no time if so said."""
        lows, highs = ([t for t in pair if t] for pair in ((self.low, low), (self.high, high)))
        return dataclasses.replace(
            self,
            low=max(lows, default=None),
            high=min(highs, default=None),
            undated=self.undated and undated,
        )

    def rewritten(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> LongTable:
        """Each piece changed (rows stay where they are), before any window is set."""
        return dataclasses.replace(
            self, pieces=tuple(self.spill.put(change(self.spill.get(piece))) for piece in self.pieces)
        )

    def _touches(self, first: dt.datetime, last: dt.datetime) -> bool:
        return (self.low is None or last >= self.low) and (self.high is None or first < self.high)


def between(
    table: pl.DataFrame | LongTable, low: dt.datetime | None, high: dt.datetime | None, *, undated: bool
) -> pl.DataFrame | LongTable:
    """A table of either kind without the rows outside of [low, high), and without those that have no time if so said."""
    if isinstance(table, LongTable):
        return table.between(low, high, undated=undated)
    return table.filter(_inside(low, high, undated=undated))


def _inside(low: dt.datetime | None, high: dt.datetime | None, *, undated: bool) -> pl.Expr:
    inside = pl.col("time").is_not_null()
    if low is not None:
        inside &= pl.col("time") >= low
    if high is not None:
        inside &= pl.col("time") < high
    return inside | pl.col("time").is_null() if undated else inside


class Gathering:
    """The rows of one table as they are read, roughly in order; long tables leave memory in pieces."""

    def __init__(self, name: str, spill: Spill) -> None:
        self.name = name
        self._spill = spill
        self._held: list[pl.DataFrame] = []
        self._rows = 0
        self._pieces: list[Piece] = []

    def add(self, frames: Sequence[pl.DataFrame]) -> None:
        """Append rows in the table's own columns."""
        self._held.extend(frame for frame in frames if frame.height)
        self._rows += sum(frame.height for frame in frames)

    def settle(self) -> None:
        """Move what is held to disk if it is much: no row of an earlier line should be on its way."""
        if self._rows >= _PIECE_ROWS:
            self._store()

    def table(self) -> pl.DataFrame | LongTable:
        """All rows, in order of source and line."""
        if not self._pieces:
            return self._sorted()
        if self._held:
            self._store()
        return LongTable(self.name, self._spill, tuple(self._pieces))

    def _sorted(self) -> pl.DataFrame:
        if not self._held:
            return empty(self.name)
        frame = pl.concat(self._held).sort(_KEY, maintain_order=True)
        self._held, self._rows = [], 0
        return frame

    def _store(self) -> None:
        rows = self._sorted()
        late = self._late(rows)
        rows = rows.slice(late)
        # A parser of a whole stream gives its rows at the end: whatever belongs before them is brought in order.
        if rows.height:
            self._pieces.append(self._spill.put(rows))

    def _late(self, rows: pl.DataFrame) -> int:
        """Bring rows of lines that are already on disk into their pieces; how many they were."""
        done = 0
        for at, piece in enumerate(self._pieces):
            upto = rows.slice(done)
            here = upto.filter(_before(*piece.last))
            if here.is_empty():
                continue
            merged = pl.concat([self._spill.get(piece), here]).sort(_KEY, maintain_order=True)
            self._pieces[at] = self._spill.put(merged)
            done += here.height
        return done


def _before(source: int, line: int) -> pl.Expr:
    """Rows up to a line; rows of a source that comes before are before it."""
    return (pl.col("source") < source) | ((pl.col("source") == source) & (pl.col("line") <= line))
