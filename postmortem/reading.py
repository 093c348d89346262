"""Streams through parsers into the tables of one run, with an account of every line.

For each stream: parsed + skipped + unmatched = read. No text is kept: excerpts are read again when a report
asks for them.
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import polars as pl

from postmortem.chunks import Chunk
from postmortem.lines import clean, lines_of, raw_lines
from postmortem.schema import KEYS, TABLES
from postmortem.sources import Stream
from postmortem.spill import Gathering, LongTable, Spill
from postmortem_parsers.interface import Context, Head, Parser, Sweeping, Swept, Tables
from postmortem_parsers.timestamps import has_utc_time, utc_time

__all__ = ["Reading", "SourceInfo", "beginning", "read"]

_HEAD_BYTES = 1 << 16
_BEGINNING_BYTES = 1 << 20
_ANCHOR_EVERY = 50
_THREADS = 2
_MOST_IN_FLIGHT = 4
_EXAMPLES = 5
_LOOK_FOR_EXAMPLES = 2000
_EXAMPLE_WIDTH = 200
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?|[0-9a-f]{8,}")


@dataclasses.dataclass
class SourceInfo:
    """What was read of one stream; the analysis makes a `result.Source` of it."""

    path: str
    sha256: str = ""
    bytes: int = 0
    lines: int = 0
    parsers: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    """Lines that each parser claimed (skipped ones included); parsers that claimed none are left out."""
    unmatched: int = 0
    skipped: int = 0
    skipped_examples: list[tuple[int, str, str]] = dataclasses.field(default_factory=list[tuple[int, str, str]])
    """The first skipped lines: number, reason, text."""
    warnings: list[str] = dataclasses.field(default_factory=list[str])
    unmatched_examples: list[str] = dataclasses.field(default_factory=list[str])
    columns: list[str] = dataclasses.field(default_factory=list[str])
    binary: bool = False
    ends_cut: bool = False
    """The stream ends within a line."""


@dataclasses.dataclass
class Reading:
    """All tables of a run and where they came from."""

    tables: dict[str, pl.DataFrame | LongTable]
    """Every table of `schema.TABLES`, in order of source and line; empty where nothing was found."""
    sources: list[SourceInfo]
    lines_time: pl.DataFrame
    """`source`, `line`, `time` of lines with a UTC clock: one in 50, each stream's first and last, and the
    neighbours of rows without a time."""
    _streams: list[Stream] = dataclasses.field(default_factory=list[Stream])

    def text(self, source: int, line: int, around: int = 0) -> list[tuple[int, str]]:
        """A line with its neighbours, as (number, text)."""
        return self.excerpts([(source, line)], around).get((source, line), [])

    def excerpts(
        self, wanted: Iterable[tuple[int, int]], around: int = 0
    ) -> dict[tuple[int, int], list[tuple[int, str]]]:
        """Many such excerpts, each stream read once more at most. Lines that do not exist are left out."""
        places = sorted(set(wanted))
        found: dict[tuple[int, int], list[tuple[int, str]]] = {}
        for source in {source for source, _ in places}:
            centres = [line for at, line in places if at == source]
            numbers = {line for centre in centres for line in range(centre - around, centre + around + 1)}
            texts = _texts(self._streams[source], numbers)
            for centre in centres:
                excerpt = [(n, texts[n]) for n in range(centre - around, centre + around + 1) if n in texts]
                if centre in texts:
                    found[source, centre] = excerpt
        return found


def read(streams: Sequence[Stream], parsers: Sequence[type[Parser]], profile: object) -> Reading:
    """Read all streams. Nothing in them raises; what could not be read is in the sources' accounts."""
    spill, anchors, sources = Spill(), [_no_anchors()], list[SourceInfo]()
    gathered = {name: Gathering(name, spill) for name in TABLES}
    for index, stream in enumerate(streams):
        reader = _StreamReader(index, stream, parsers, profile, gathered)
        reader.run()
        anchors.extend(reader.anchors)
        sources.append(reader.info)
    tables = {name: rows.table() for name, rows in gathered.items()}
    if spill.refused:
        sources[-1].warnings.append(
            f"long tables are held in memory: the temporary folder does not take them ({spill.refused}); "
            "TMPDIR names another"
        )
    # Each chunk gives its own, in order of their lines.
    return Reading(tables, sources, pl.concat(anchors), list(streams))


def beginning(stream: Stream) -> pl.DataFrame:
    """Columns `line` and `text` of a stream's first MiB: what profiles are chosen by."""
    for chunk in stream.chunks(size=_BEGINNING_BYTES, hashed=False):
        return lines_of(chunk)
    return pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})


@dataclasses.dataclass(frozen=True)
class _Prepared:
    """A chunk after its sweep: all lines, and those that still go through the parsers."""

    chunk: Chunk
    lines: pl.DataFrame
    coloured: bool
    """The texts in `lines` still hold colour codes."""
    rest: pl.DataFrame
    swept: Swept | None

    def timed(self) -> np.ndarray:
        """Which lines begin with a UTC time."""
        mask = np.zeros(self.lines.height, dtype=bool)
        if self.swept is not None:
            mask[: len(self.swept.sure)] = self.swept.sure.to_numpy()
        mask[self.rest["line"].to_numpy() - self.chunk.first_line] |= has_utc_time(self.rest["text"]).to_numpy()
        return mask


class _StreamReader:
    """One stream through its own parsers."""

    def __init__(
        self,
        index: int,
        stream: Stream,
        parsers: Sequence[type[Parser]],
        profile: object,
        gathered: dict[str, Gathering],
    ) -> None:
        self.stream = stream
        self.info = SourceInfo(stream.path, binary=stream.binary)
        self._gathered = gathered
        self.anchors: list[pl.DataFrame] = []
        self._context = Context(source=index, name=stream.name, profile=profile)
        self._kinds = parsers
        self._parsers: list[Parser] = []
        self._whole: dict[str, list[pl.DataFrame]] = {}

    def run(self) -> None:
        """Read it to its end and fill `info`."""
        chunks = self.stream.chunks()
        if self.info.binary:
            for _ in chunks:  # Only its size and hash are wanted.
                pass
        else:
            self._read_all(chunks)
        self._finish_whole()
        self._close_account()

    def _read_all(self, chunks: Iterator[Chunk]) -> None:
        """Sweep several chunks at once (polars lets go of the interpreter's lock), finish them in their order."""
        first = next(chunks, None)
        if first is None:
            return
        self._parsers = self._offered(_head_of(lines_of(Chunk(first.data[: 2 * _HEAD_BYTES], 1)), self.stream.name))
        self._finish(self._sweep(first))
        with ThreadPoolExecutor(_THREADS) as pool:
            waiting: deque[Future[_Prepared]] = deque()
            for chunk in chunks:
                waiting.append(pool.submit(self._sweep, chunk))
                if len(waiting) >= _MOST_IN_FLIGHT:
                    self._finish(waiting.popleft().result())
            while waiting:
                self._finish(waiting.popleft().result())

    def _sweep(self, chunk: Chunk) -> _Prepared:
        """What can be done of a chunk without knowing the ones before it."""
        lines, coloured = raw_lines(chunk)
        first = self._parsers[0] if self._parsers else None
        if isinstance(first, Sweeping) and not first.whole:
            open_end = lines.tail(chunk.cut)
            try:
                swept = first.sweep(lines.head(lines.height - chunk.cut), self._context, clean if coloured else None)
            except Exception as error:  # noqa: BLE001 (a third party's parser must not end the analysis)
                self._failed(first, error)
                swept = None
            if swept is not None:
                rest = pl.concat([swept.rest, open_end.with_columns(clean(open_end["text"]))])
                return _Prepared(chunk, lines, coloured, rest, swept)
        lines = lines.with_columns(clean(lines["text"])) if coloured else lines
        return _Prepared(chunk, lines, False, lines, None)

    def _offered(self, head: Head) -> list[Parser]:
        offered: list[Parser] = []
        for kind in self._kinds:
            parser = kind()
            try:
                sure = parser.sniff(head)
            except Exception as error:  # noqa: BLE001 (a third party's parser must not end the analysis)
                self._failed(parser, error)
                continue
            if sure > 0:
                offered.append(parser)
        return sorted(offered, key=lambda parser: parser.priority)

    def _finish(self, prepared: _Prepared) -> None:
        """Bring the lines that are left through all parsers; keep rows and account."""
        chunk, rest, swept, found = prepared.chunk, prepared.rest, prepared.swept, Tables()
        self.info.lines += prepared.lines.height
        if chunk.cut:
            self.info.ends_cut = True
            self._context.cut_line = chunk.first_line + prepared.lines.height - 1
        if swept is not None:
            self._count(self._parsers[0], prepared.lines.height - rest.height)
            for table, frame in swept.frames:
                self._gathered[table].add([frame])
        for parser in self._parsers:
            if rest.is_empty():
                break
            claimed, rest = self._claim(parser, rest)
            if claimed.height and parser.whole:
                self._whole.setdefault(parser.name, []).append(claimed)
            elif claimed.height:
                self._parse(parser, claimed, found)
        self._gather(found)
        self._keep_anchors(prepared, _lines_without_time(found))
        self._account_unmatched(rest)

    def _count(self, parser: Parser, lines: int) -> None:
        if lines:
            self.info.parsers[parser.name] = self.info.parsers.get(parser.name, 0) + lines

    def _claim(self, parser: Parser, lines: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        try:
            mask = parser.claim(lines, self._context).fill_null(value=False)
            claimed, rest = lines.filter(mask), lines.filter(~mask)
        except Exception as error:  # noqa: BLE001 (as above)
            self._failed(parser, error)
            return lines.clear(), lines
        self._count(parser, claimed.height)
        return claimed, rest

    def _parse(self, parser: Parser, claimed: pl.DataFrame, found: Tables) -> None:
        try:
            found.update(parser.parse(claimed, self._context))
        except Exception as error:  # noqa: BLE001 (as above)
            self._failed(parser, error)
            self.info.parsers[parser.name] -= claimed.height
            self._account_unmatched(claimed)

    def _failed(self, parser: Parser, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:_EXAMPLE_WIDTH]
        message = f"parser {parser.name} failed ({reason}); its lines count as unmatched"
        if message not in self._context.warnings:
            self._context.warnings.append(message)

    def _finish_whole(self) -> None:
        for parser in self._parsers:
            frames = self._whole.pop(parser.name, None)
            if frames is None:
                continue
            found = Tables()
            self._parse(parser, pl.concat(frames), found)
            self._gather(found)

    def _gather(self, found: Tables) -> None:
        for table in found.names():
            self._gathered[table].add(found.frames(table))
        for rows in self._gathered.values():
            rows.settle()

    def _keep_anchors(self, prepared: _Prepared, untimed: np.ndarray) -> None:
        """Times of one line in 50, of the chunk's first and last timed line, and beside rows without time.

        Rows of whole-stream parsers are known only at the end: until then, the timed neighbours of every
        line that such a parser claimed are kept as well.
        """
        lines = prepared.lines
        timed = np.flatnonzero(prepared.timed())
        if not len(timed):
            return
        first = prepared.chunk.first_line
        claimed = [frame["line"].to_numpy() for frames in self._whole.values() for frame in frames[-1:]]
        at = np.unique(np.concatenate([untimed, *claimed]))
        at = at[(at >= first) & (at < first + lines.height)]
        numbers = timed + first
        after = np.searchsorted(numbers, at)
        keep = np.zeros(len(numbers), dtype=bool)
        keep[np.minimum(after, len(numbers) - 1)] = True
        keep[np.maximum(after - 1, 0)] = True
        keep[np.flatnonzero(np.diff(numbers // _ANCHOR_EVERY, prepend=-1))] = True
        keep[[0, -1]] = True
        kept = lines[timed[keep]]
        text = clean(kept["text"]) if prepared.coloured else kept["text"]
        self.anchors.append(_anchor_frame(kept.with_columns(utc_time(text)), self._context.source))

    def _account_unmatched(self, rest: pl.DataFrame) -> None:
        self.info.unmatched += rest.height
        examples = self.info.unmatched_examples
        if len(examples) >= _EXAMPLES or rest.is_empty():
            return
        kinds = {_shape(text) for text in examples}
        for text in rest["text"].head(_LOOK_FOR_EXAMPLES).str.head(_EXAMPLE_WIDTH).unique(maintain_order=True):
            if text.strip() and _shape(text) not in kinds and len(examples) < _EXAMPLES:
                kinds.add(_shape(text))
                examples.append(text)

    def _close_account(self) -> None:
        info, context = self.info, self._context
        skipped = {skip.line: skip for skip in context.skipped}
        info.skipped = len(skipped)
        info.skipped_examples = [
            (skip.line, skip.reason, skip.text[:_EXAMPLE_WIDTH]) for _, skip in sorted(skipped.items())[:_EXAMPLES]
        ]
        info.parsers = {name: count for name, count in info.parsers.items() if count}
        info.sha256, info.bytes = self.stream.sha256, self.stream.bytes
        info.columns = list(dict.fromkeys(context.columns))
        if info.binary:
            self.stream.warnings.append("looks like binary data, not a log: not read")
        info.warnings = list(dict.fromkeys(self.stream.warnings + context.warnings))


def _head_of(lines: pl.DataFrame, name: str) -> Head:
    size = lines["text"].str.len_bytes() + 1
    within = lines.filter(size.cum_sum() <= _HEAD_BYTES)
    return Head((within if within.height else lines.head(1))["text"].to_list(), name)


def _lines_without_time(found: Tables) -> np.ndarray:
    """Lines whose neighbours' times will be needed: of rows that count from a start, some are enough."""
    numbers = [np.empty(0, dtype=np.int64)]
    for name in found.names():
        rows = found.get(name)
        assert rows is not None
        rows = rows.filter(pl.col("time").is_null())
        if "offset_ms" in rows.columns:
            counted = pl.col("offset_ms").is_not_null()
            numbers.append(rows.filter(counted)["line"].gather_every(_ANCHOR_EVERY).to_numpy())
            rows = rows.filter(~counted)
        numbers.append(rows["line"].to_numpy())
    return np.concatenate(numbers)


def _anchor_frame(lines: pl.DataFrame, source: int) -> pl.DataFrame:
    frame = lines.filter(pl.col("time").is_not_null()).with_columns(source=pl.lit(source))
    return frame.select(pl.col(name).cast(dtype) for name, dtype in _ANCHORS.items())


_ANCHORS = {name: KEYS[name] for name in ("source", "line", "time")}


def _no_anchors() -> pl.DataFrame:
    return pl.DataFrame(schema=_ANCHORS)


def _shape(text: str) -> str:
    return _NUMBER.sub("#", text)


def _texts(stream: Stream, numbers: set[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for chunk in stream.chunks_with(numbers):
        here = sorted(n for n in numbers if chunk.first_line <= n < chunk.first_line + chunk.lines)
        frame = lines_of(chunk)
        wanted = frame[[n - chunk.first_line for n in here]]
        found.update(zip(here, wanted["text"].to_list(), strict=True))
    return found
