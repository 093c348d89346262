"""Records of one event that differ in their values only, read by splitting at `=` instead of by expressions.

A shape is learned from one line: the texts between its values. A line that has it gives the same raw values as the
expressions of `tracing_text` do; every other line, and every value that needs a second look, is left to them.
"""

from __future__ import annotations

import dataclasses
import re

import polars as pl

from postmortem.schema import TABLES
from postmortem_parsers.profiles import Event, Profile, Row
from postmortem_parsers.record_format import NAME

__all__ = ["FIRST_WORD", "EventReader"]

FIRST_WORD = 34
"""Characters before spans and target: `2026-03-13T14:02:11.123456Z  INFO `."""

_OWN = re.compile(rf"(.*)( {NAME})")
_IN_SPAN = re.compile(r'("[^"]*"|[^ }]*)(.*)')
_LAST_NAME = re.compile(rf"(?:^|([{{ ]))({NAME})$")
# Of these a number's own parsing shows that nothing else stood in the field.
_NUMBERS = ("int", "ms", "option_int", "float", "gib", "gib_floor", "mib", "mib_floor", "bytes", "kb")
_MOST_VALUES = 30
_MOST_SHAPES = 4


@dataclasses.dataclass(frozen=True)
class _Value:
    """One value of a line: its name, where it stands, and the constant text behind it."""

    name: str
    part: int
    suffix: str
    quoted: bool
    own: bool
    """Behind the message, not in a span."""


@dataclasses.dataclass(frozen=True)
class _Shape:
    """What all lines of a shape have in common, as expressions over their parts."""

    values: int
    raw: tuple[pl.Expr, ...]
    fits: pl.Expr
    typed: tuple[pl.Expr, ...]
    readable: pl.Expr


class EventReader:
    """Lines of one event of a profile. May be used in several threads at once."""

    def __init__(self, event: Event, pattern: str, profile: Profile, source: int) -> None:
        self._pattern = pattern
        self._profile = profile
        self._rows = event.rows
        self._fields = list(dict.fromkeys(field for row in event.rows for field in row.fields.values()))
        names = [field.rpartition(":")[0] for field in self._fields]
        self._hopeless = not event.message or "*" in names
        self._outputs = tuple((row.table, self._output(row, source)) for row in event.rows)
        self._shapes: tuple[_Shape, ...] = ()

    def read(self, lines: pl.DataFrame) -> tuple[list[tuple[str, pl.DataFrame]], pl.Series]:
        """Rows by table of the lines (`line`, `text`, `time`) of a known shape, and which lines these are."""
        found: list[tuple[str, pl.DataFrame]] = []
        done = pl.repeat(False, lines.height, dtype=pl.Boolean, eager=True)
        left, number = lines.with_row_index("at"), 0
        while left.height and (shape := self._shape(number, left["text"][0])) is not None:
            number += 1
            typed = _typed(left, shape)
            whole = typed.height == left.height
            if typed.height:
                found += [(table, typed.select_seq(output)) for table, output in self._outputs]
                done = done.scatter(typed["at"], True)
            left = left.clear() if whole else left.filter(~left["at"].is_in(typed["at"].implode()))
        return found, done

    def _shape(self, number: int, text: str) -> _Shape | None:
        """A known shape, or a new one from the first line that no known one fits."""
        shapes = self._shapes  # Another thread may learn one meanwhile: each works with the tuple that it took.
        if number < len(shapes):
            return shapes[number]
        if self._hopeless or number >= _MOST_SHAPES:
            return None
        shape = self._learned(text)
        if shape is not None:
            self._shapes = (*shapes, shape)
        return shape

    def _learned(self, text: str) -> _Shape | None:
        first, *parts = text[FIRST_WORD:].split("=")
        if len(parts) > _MOST_VALUES:
            return None
        values, behind = _values(first, parts, self._pattern)
        if not behind:
            return None
        chosen = {field: _find(values, field.rpartition(":")[0]) for field in self._fields}
        if any(not self._clear(field, value) for field, value in chosen.items() if value is not None):
            return None
        missing = {field for field, value in chosen.items() if value is None}
        if any(row.fields[column] in missing for row in self._rows for column in row.needs):
            return None
        return self._compiled(first, values, chosen)

    def _clear(self, field: str, value: _Value) -> bool:
        """Whether the value's end is where the expressions would see it."""
        text = self._profile.unit(field.rpartition(":")[2]).text
        return text or not value.quoted

    def _compiled(self, first: str, values: list[_Value], chosen: dict[str, _Value | None]) -> _Shape:
        fits = [pl.col("field_0") == first, pl.col(f"field_{len(values)}").is_not_null()]
        fits.append(pl.col(f"field_{len(values) + 1}").is_null())
        wanted = {value.part: value for value in chosen.values() if value is not None}
        for value in values:
            part, quote = pl.col(f"field_{value.part}"), '"' if value.quoted and value.part in wanted else ""
            if value.suffix or quote:
                fits.append(part.str.ends_with(quote + value.suffix))
            if quote:
                fits.append(part.str.starts_with(quote) & (part.str.len_bytes() > len(value.suffix.encode()) + 1))
        raw = tuple(_raw(value).alias(f"raw_{value.part}") for value in wanted.values())
        typed, readable = list[pl.Expr](), list[pl.Expr]()
        for field, value in chosen.items():
            if value is None:
                typed.append(pl.lit(None).alias(field))
                continue
            source = pl.col(f"raw_{value.part}")
            unit = field.rpartition(":")[2]
            typed.append(self._profile.unit(unit).convert(source).alias(field))
            readable += self._readable(field, value, source)
        everything = pl.all_horizontal(readable) if readable else pl.lit(True)
        return _Shape(len(values), raw, pl.all_horizontal(fits), tuple(typed), everything)

    def _readable(self, field: str, value: _Value, raw: pl.Expr) -> list[pl.Expr]:
        """What must hold of a typed column for the line to be done with."""
        name = field.rpartition(":")[2]
        conditions = list[pl.Expr]()
        if self._profile.unit(name).text:
            odd = r'["\\]' if value.own or value.quoted else r'[ }"\\]'
            conditions.append(~raw.str.contains(odd))
        elif name not in _NUMBERS:
            conditions.append(~raw.str.contains(r'[\s",}\]]'))
        needed = any(row.fields.get(column) == field for row in self._rows for column in row.needs)
        known = pl.col(field).is_not_null()
        conditions.append(known if needed else known | (raw == "None"))
        return conditions

    def _output(self, row: Row, source: int) -> list[pl.Expr]:
        """All columns of a row's table."""
        constants = row.constants()
        made: list[pl.Expr] = []
        for column, dtype in TABLES[row.table].items():
            made.append(self._column(row, column, constants, source).cast(dtype).alias(column))
        return made

    def _column(self, row: Row, column: str, constants: dict[str, str | int | float | bool], source: int) -> pl.Expr:
        if column in ("time", "line"):
            return pl.col(column)
        if column == "source":
            return pl.lit(source)
        if column in constants:
            return pl.lit(constants[column])
        if column in row.fields:
            return pl.col(row.fields[column])
        if column.removesuffix("_ulp") in row.fields and column.endswith("_ulp"):
            unit = self._profile.unit(row.fields[column.removesuffix("_ulp")].rpartition(":")[2])
            return pl.lit(unit.ulp)
        return pl.lit(None)


def _values(first: str, parts: list[str], pattern: str) -> tuple[list[_Value], bool]:
    """The values of a line that was split at `=`, and whether the message was found before or between them."""
    values, own, before = list[_Value](), pattern in first, first
    for number, part in enumerate(parts, 1):
        named = _LAST_NAME.search(before)
        last = number == len(parts)
        match = (re.fullmatch(r"(.*)()", part) if last else _OWN.fullmatch(part)) if own else None
        match = match or _IN_SPAN.fullmatch(part)
        if match is None:
            return [], False
        text, suffix = match[1], match[2]
        quoted = len(text) > 1 and text[0] == text[-1] == '"'
        # In the event's own part a name without a blank before it is part of a value.
        values.append(
            _Value(
                name=named[2] if named else "",
                part=number,
                suffix=suffix,
                quoted=quoted,
                own=own and named is not None and named[1] == " ",
            )
        )
        own, before = own or pattern in suffix, suffix
    return values, own


def _find(values: list[_Value], name: str) -> _Value | None:
    """The event's own value of that name, else the first one of any span."""
    own = next((value for value in values if value.own and value.name == name), None)
    return own or next((value for value in values if value.name == name), None)


def _raw(value: _Value) -> pl.Expr:
    raw = pl.col(f"field_{value.part}")
    if value.suffix:
        raw = raw.str.strip_suffix(value.suffix)
    return raw.str.strip_prefix('"').str.strip_suffix('"') if value.quoted else raw


def _typed(lines: pl.DataFrame, shape: _Shape) -> pl.DataFrame:
    """Typed fields of the lines that have the shape and can be read whole, with `at`, `line` and `time`."""
    parts = lines["text"].str.slice(FIRST_WORD).str.split_exact("=", shape.values + 1).struct.unnest()
    fits = parts.select_seq(shape.fits).to_series()
    lines = lines.select_seq("at", "line", "time")
    if not fits.all():
        parts, lines = parts.filter(fits), lines.filter(fits)
    typed = lines.hstack(parts.select_seq(shape.raw)).with_columns_seq(shape.typed)
    readable = typed.select_seq(shape.readable).to_series()
    return typed if len(readable) == typed.height and readable.all() else typed.filter(shape.readable)
