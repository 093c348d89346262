"""Structured log records of any dress to rows, by the events of a profile.

One pass finds which event each record is (all events' texts at once); then the fields are taken out kind by kind.
"""

from __future__ import annotations

import polars as pl

from postmortem_parsers.interface import Context, Skipped, Tables
from postmortem_parsers.profiles import Event, Profile, Row
from postmortem_parsers.record_format import RecordFormat
from postmortem_parsers.timestamps import parse_utc
from postmortem_parsers.values import ABSENT

__all__ = ["RecordReader", "RowMaker", "skip"]

_MARK_WIDTH = 500
_SKIPPED_WIDTH = 300


class RecordReader:
    """All records of one dress with one profile."""

    def __init__(self, dress: RecordFormat, profile: Profile) -> None:
        self._dress = dress
        self._profile = profile
        self._events: dict[str, Event] = {}
        for event in profile.event:
            for pattern in dress.patterns(event):
                self._events.setdefault(pattern, event)
        # Where one message begins like another, the longer one is meant.
        self._patterns = sorted(self._events, key=len, reverse=True)

    def read(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of the records among `lines`; those of unknown messages give none."""
        tables = Tables()
        records = self._dress.records(lines)
        if records.is_empty():
            return tables
        found = _first_of(records["text"], self._patterns).alias("event")
        alarm = records["text"].str.extract(self._dress.alarm).str.to_uppercase().alias("alarm")
        hits = records.with_columns(found, alarm).filter(found.is_not_null() | alarm.is_not_null())
        if hits.is_empty():
            return tables
        hits = self._whole(self._timed(hits, context), context)
        self._add_alarms(hits.filter(pl.col("alarm").is_not_null()), context, tables)
        known = hits.filter(pl.col("event").is_not_null())
        for (pattern,), kind in known.partition_by("event", as_dict=True).items():
            self._add_rows(str(pattern), kind, context, tables)
        return tables

    def _timed(self, hits: pl.DataFrame, context: Context) -> pl.DataFrame:
        stamp = hits["text"].str.extract(self._dress.stamp)
        hits = hits.with_columns(parse_utc(stamp))
        wrong = stamp.is_not_null() & hits["time"].is_null()
        return skip(hits, wrong, "its time is no date", context)

    def _whole(self, hits: pl.DataFrame, context: Context) -> pl.DataFrame:
        broken = self._dress.broken(hits)
        if broken is not None:
            hits = skip(hits, broken, "cut: the record is not closed", context)
        if context.cut_line is None:
            return hits
        # `… synthesis complete` at the very end may be the beginning of `… synthesis complete, pushing to …`.
        longer = [
            pattern
            for pattern in self._patterns
            if any(other != pattern and other.startswith(pattern) for other in self._patterns)
        ]
        open_end = (hits["line"] == context.cut_line) & hits["event"].is_in(longer)
        ends = hits.select(pl.col("text").str.ends_with(pl.col("event")).fill_null(value=False)).to_series()
        return skip(hits, open_end & ends, "cut within its message", context)

    def _add_rows(self, pattern: str, kind: pl.DataFrame, context: Context, tables: Tables) -> None:
        event = self._events[pattern]
        if event.target and event.target + ":" not in pattern:
            # JSON keeps the target apart from the message.
            kind = kind.filter(kind["text"].str.contains(f'"{event.target}"', literal=True))
        if kind.is_empty():
            return
        rows = RowMaker(kind, self._profile, context)
        for field, text in rows.wanted(event.rows):
            rest = field == "*"
            expressions = [self._dress.rest(pattern)] if rest else self._dress.field(pattern, field, text=text)
            rows.offer(field, text, expressions)
        tables.update(rows.make(event.rows))

    def _add_alarms(self, alarms: pl.DataFrame, context: Context, tables: Tables) -> None:
        if alarms.is_empty():
            return
        text = alarms["text"]
        message = text.str.extract(self._dress.message).fill_null("")
        error = text.str.extract(self._dress.error).str.strip_chars('"')
        shown = pl.select(pl.when(error.is_null()).then(message).otherwise(message + ": " + error)).to_series()
        what = pl.select(pl.when(alarms["alarm"] == "WARN").then(pl.lit("warning")).otherwise(pl.lit("error")))
        frame = alarms.select("line", "time", source=pl.lit(context.source)).with_columns(
            what.to_series().alias("what"), shown.str.head(_MARK_WIDTH).alias("text")
        )
        tables.add("marks", frame)


class RowMaker:
    """Rows of one kind of line: raw fields in, typed columns out, unreadable lines skipped with their reason."""

    def __init__(self, lines: pl.DataFrame, profile: Profile, context: Context) -> None:
        self._lines = lines
        self._profile = profile
        self._context = context
        self._raw: dict[tuple[str, bool], pl.Series] = {}

    def wanted(self, rows: list[Row]) -> list[tuple[str, bool]]:
        """The fields that `rows` take, and whether each is a text."""
        sources = (source.rpartition(":") for row in rows for source in row.fields.values())
        return list(dict.fromkeys((field, self._profile.unit(unit).text) for field, _, unit in sources))

    def offer(self, field: str, text: bool, expressions: list[str]) -> None:
        """Take a field's raw values: the first expression that finds one in a line counts."""
        raw = self._lines["text"].str.extract(expressions[0])
        for expression in expressions[1:]:
            if raw.null_count():
                raw = raw.zip_with(raw.is_not_null(), self._lines["text"].str.extract(expression))
        self.put(field, text, raw)

    def put(self, field: str, text: bool, raw: pl.Series) -> None:
        """Give a field's raw values. One that touches the end of a cut stream may not be whole: it is dropped."""
        cut = self._lines["line"] == (self._context.cut_line or 0)
        if cut.any():
            frame = pl.DataFrame({"text": self._lines["text"], "raw": raw})
            closed = pl.col("raw").str.contains(r'[")]$')
            touches = frame.select(pl.col("text").str.ends_with(pl.col("raw")) & ~closed).to_series()
            raw = raw.zip_with(~(cut & touches.fill_null(value=False)), pl.Series([None] * len(raw), dtype=pl.String))
        self._raw[field, text] = raw

    def make(self, rows: list[Row]) -> Tables:
        """All rows. A line with an unreadable field, or with none of the fields that its rows need, is skipped."""
        tables, made, bad = Tables(), list[tuple[Row, pl.DataFrame]](), pl.Series([False] * self._lines.height)
        for row in rows:
            frame, unreadable = self._columns(row)
            bad = bad | unreadable
            made.append((row, frame))
        says_nothing = pl.Series([bool(rows)] * self._lines.height)
        for row, frame in made:
            complete = self._complete(row, frame)
            says_nothing = says_nothing & ~complete
            tables.add(row.table, frame.filter(complete & ~bad))
        needed = ", ".join(dict.fromkeys(row.fields[column].rpartition(":")[0] for row in rows for column in row.needs))
        skip(self._lines, says_nothing & ~bad, f"cut or incomplete: it lacks {needed}", self._context)
        return tables

    def _columns(self, row: Row) -> tuple[pl.DataFrame, pl.Series]:
        frame = self._lines.select("line", "time", source=pl.lit(self._context.source))
        bad = pl.Series([False] * frame.height)
        for column, source in row.fields.items():
            field, _, unit_name = source.rpartition(":")
            unit = self._profile.unit(unit_name)
            raw = self._raw[field, unit.text]
            value = pl.select(unit.convert(pl.lit(raw))).to_series().alias(column)
            frame = frame.with_columns(value)
            if unit.ulp is not None:
                frame = frame.with_columns(pl.lit(unit.ulp).alias(f"{column}_ulp"))
            bad = bad | self._garbled(field, raw, value)
        constants = [pl.lit(value).alias(name) for name, value in row.constants().items()]
        return frame.with_columns(constants), bad

    def _garbled(self, field: str, raw: pl.Series, value: pl.Series) -> pl.Series:
        garbled = raw.is_not_null() & value.is_null()
        if not garbled.any():  # The usual case; the texts for an absent value are looked for in none of them.
            return garbled
        garbled = garbled & ~raw.str.strip_chars('"').is_in(ABSENT).fill_null(value=False)
        skip(self._lines, garbled, f"{field} cannot be read", self._context)
        return garbled

    def _complete(self, row: Row, frame: pl.DataFrame) -> pl.Series:
        complete = pl.Series([True] * frame.height)
        for column in row.needs:
            complete = complete & frame[column].is_not_null()
        return complete


def _first_of(text: pl.Series, patterns: list[str]) -> pl.Series:
    """The leftmost of the patterns in each text; of those that begin alike, the one that stands first in the list."""
    if not patterns:  # A profile without events; polars then gives lists of no type.
        return pl.repeat(None, len(text), dtype=pl.String, eager=True)
    return text.str.extract_many(patterns, leftmost=True).list.first()


def skip(lines: pl.DataFrame, bad: pl.Series, reason: str, context: Context) -> pl.DataFrame:
    """`lines` without the bad ones, which are reported with their reason."""
    if not bad.any():
        return lines
    for line, text in lines.filter(bad).select("line", pl.col("text").str.head(_SKIPPED_WIDTH)).iter_rows():
        context.skipped.append(Skipped(line, reason, text))
    return lines.filter(~bad)
