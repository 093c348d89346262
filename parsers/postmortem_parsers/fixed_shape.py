"""Records of one event that differ in their values only, read by splitting at `=` instead of by expressions.

A shape is learned from one line: the texts between its values. A line that has it gives the same raw values as the
expressions of `tracing_text` do; every other line, and every value that needs a second look, is left to them.
"""

from __future__ import annotations

import dataclasses
import re

import polars as pl

from postmortem.schema import TABLES
from postmortem_parsers.full_format import Dress
from postmortem_parsers.profiles import Event, Profile, Row
from postmortem_parsers.record_format import NAME

__all__ = ["EventReader"]

_OWN = re.compile(rf"(.*)( {NAME})")
_IN_SPAN = re.compile(r'("[^"]*"|[^ }]*)(.*)')
_LAST_NAME = re.compile(rf"(?:^|([{{ ]))({NAME})$")
_SOME = re.compile(r"Some\(-?[0-9]+\)")
# Of these a number's own parsing shows that nothing else stood in the field.
_NUMBERS = ("int", "ms", "option_int", "float", "gib", "gib_floor", "mib", "mib_floor", "bytes", "kb")
_MOST_VALUES = 30
_MOST_SHAPES = 4


@dataclasses.dataclass(frozen=True)
class _Value:
    """One value of a line: its name, where it stands, and the constant texts around it."""

    name: str
    part: int
    text: str
    prefix: str
    suffix: str
    own: bool
    """Behind the message, not in a span."""

    @property
    def quoted(self) -> bool:
        """Printed as Debug prints strings."""
        return self.prefix.endswith('"')

    def within(self, before: str, behind: str) -> _Value:
        """The same value without the texts around it that are constant too."""
        inner = self.text.removeprefix(before).removesuffix(behind)
        return dataclasses.replace(self, text=inner, prefix=self.prefix + before, suffix=behind + self.suffix)


@dataclasses.dataclass(frozen=True)
class _Shape:
    """What all lines of a shape have in common, as expressions over their parts."""

    from_message: bool
    """Spans do not matter: the line is split from its target on."""
    values: int
    raw: tuple[pl.Expr, ...]
    fits: pl.Expr
    typed: tuple[pl.Expr, ...]
    readable: pl.Expr


class EventReader:
    """Lines of one event of a profile. May be used in several threads at once."""

    def __init__(self, event: Event, pattern: str, dress: Dress, profile: Profile, source: int) -> None:
        self._pattern = pattern
        self._dress = dress
        self._before = dress.before(pattern)
        self._profile = profile
        self._rows = event.rows
        self._fields = list(dict.fromkeys(field for row in event.rows for field in row.fields.values()))
        names = [field.rpartition(":")[0] for field in self._fields]
        self._hopeless = not event.message or "*" in names
        self._outputs = tuple((row.table, self._output(row, source)) for row in event.rows)
        self._shapes: tuple[_Shape, ...] = ()

    def read(self, lines: pl.DataFrame) -> tuple[list[tuple[str, pl.DataFrame]], pl.Series]:
        """Rows by table of the lines (`line`, `text`, `place`, `time`) of a known shape, and which lines these are."""
        found: list[tuple[str, pl.DataFrame]] = []
        done = pl.repeat(False, lines.height, dtype=pl.Boolean, eager=True)
        left, number = lines.with_row_index("at"), 0
        while left.height and (shape := self._shape(number, left["text"][0], left["place"][0])) is not None:
            number += 1
            typed = self._typed(left, shape)
            whole = typed.height == left.height
            if typed.height:
                found += [(table, typed.select_seq(output)) for table, output in self._outputs]
                done = done.scatter(typed["at"], True)
            left = left.clear() if whole else left.filter(~left["at"].is_in(typed["at"].implode()))
        return found, done

    def _shape(self, number: int, text: str, place: int) -> _Shape | None:
        """A known shape, or a new one from the first line that no known one fits."""
        shapes = self._shapes  # Another thread may learn one meanwhile: each works with the tuple that it took.
        if number < len(shapes):
            return shapes[number]
        if self._hopeless or number >= _MOST_SHAPES:
            return None
        shape = self._learned(text, place)
        if shape is not None:
            self._shapes = (*shapes, shape)
        return shape

    def _learned(self, text: str, place: int) -> _Shape | None:
        found = self._values(text[self._dress.lead :])
        if found is None:
            return None
        first, values = found
        chosen = {field: _find(values, field.rpartition(":")[0]) for field in self._fields}
        missing = {field for field, value in chosen.items() if value is None}
        if any(row.fields[column] in missing for row in self._rows for column in row.needs):
            return None
        if all(value is not None and value.own for value in chosen.values()):
            found = self._values(text.encode()[max(0, place - self._before) :].decode("utf-8", "replace"))
            # A message that a span's value repeats: the line is none to learn from.
            if found is None or self._pattern not in self._dress.bare(found[0]):
                return None
            first, values = found
            return self._compiled(first, values, from_message=True)
        return self._compiled(first, values, from_message=False)

    def _values(self, text: str) -> tuple[str, list[_Value]] | None:
        """The text before the first value, and all values; None where the message is not found or it cannot be told."""
        first, *raw = text.split("=")
        if len(raw) > _MOST_VALUES:
            return None
        bare, prefix = self._dress.bare, self._dress.before_value
        values, behind = list[_Value](), self._pattern in bare(first)
        named = bare(first)
        for number, part in enumerate(raw, 1):
            parsed = _parsed(bare(part), named, own=behind, last=number == len(raw))
            if parsed is None or not part.startswith(prefix + parsed[1]):
                return None
            name, inner, named, own = parsed
            value = _Value(name, number, inner, prefix, part[len(prefix) + len(inner) :], own)
            if len(inner) > 1 and inner[0] == inner[-1] == '"':
                value = value.within('"', '"')
            values.append(value)
            behind = behind or self._pattern in named
        return (first, values) if behind else None

    def _compiled(self, first: str, values: list[_Value], *, from_message: bool) -> _Shape | None:
        fits = [pl.col("field_0") == first, pl.col(f"field_{len(values)}").is_not_null()]
        fits.append(pl.col(f"field_{len(values) + 1}").is_null())
        wanted: dict[int, _Value] = {}
        typed, readable = list[pl.Expr](), list[pl.Expr]()
        for field in self._fields:
            name, _, unit = field.rpartition(":")
            value = _find(values, name)
            if value is None:
                typed.append(pl.lit(None).alias(field))
                continue
            if value.quoted and not self._profile.unit(unit).text:
                return None  # Its end is not where the expressions would see it.
            if unit == "option_int" and _SOME.fullmatch(value.text):
                value, unit = value.within("Some(", ")"), "int"
            if wanted.setdefault(value.part, value) != value:
                return None
            source = pl.col(f"raw_{value.part}")
            typed.append(self._convert(unit, value, source).alias(field))
            readable += self._readable(field, unit, value, source)
        for value in values:
            part, around = pl.col(f"field_{value.part}"), wanted.get(value.part)
            prefix, suffix = (around.prefix, around.suffix) if around else ("", value.suffix)
            if suffix:
                fits.append(part.str.ends_with(suffix))
            if prefix:
                fits.append(part.str.starts_with(prefix))
            if prefix and suffix:
                fits.append(part.str.len_bytes() >= len((prefix + suffix).encode()))
        raw = tuple(_raw(value).alias(f"raw_{value.part}") for value in wanted.values())
        everything = pl.all_horizontal(readable) if readable else pl.lit(True)
        fit = pl.all_horizontal(fits).fill_null(value=False)
        return _Shape(from_message, len(values), raw, fit, tuple(typed), everything)

    def _convert(self, unit: str, value: _Value, raw: pl.Expr) -> pl.Expr:
        # `_readable` keeps away every text that would not stay as it is.
        return raw if unit == "text" and not value.quoted else self._profile.unit(unit).convert(raw)

    def _readable(self, field: str, unit: str, value: _Value, raw: pl.Expr) -> list[pl.Expr]:
        """What must hold of a typed column for the line to be done with."""
        conditions = list[pl.Expr]()
        if self._profile.unit(unit).text:
            odd = r'["\\\x1b]' if value.own or value.quoted else r'[ }"\\\x1b]'
            conditions.append(~raw.str.contains(odd))
        elif unit not in _NUMBERS:
            conditions.append(~raw.str.contains(r'[\s",}\]\x1b]'))
        needed = any(row.fields.get(column) == field for row in self._rows for column in row.needs)
        known = pl.col(field).is_not_null()
        conditions.append(known if needed else known | (raw == "None"))
        return conditions

    def _typed(self, lines: pl.DataFrame, shape: _Shape) -> pl.DataFrame:
        """Typed fields of the lines that have the shape and can be read whole, with `at`, `line` and `time`."""
        text = pl.col("text")
        if shape.from_message:
            begins = pl.col("place") - self._before
            text = text.cast(pl.Binary).bin.slice(begins).cast(pl.String, strict=False)
        else:
            text = text.str.slice(self._dress.lead)
        parts = lines.select_seq(text.str.split_exact("=", shape.values + 1).alias("parts")).to_series().struct.unnest()
        fits = parts.select_seq(shape.fits).to_series()
        lines = lines.select_seq("at", "line", "time")
        if not fits.all():
            parts, lines = parts.filter(fits), lines.filter(fits)
        typed = lines.hstack(parts.select_seq(shape.raw)).with_columns_seq(shape.typed)
        readable = typed.select_seq(shape.readable).to_series()
        return typed if len(readable) == typed.height and readable.all() else typed.filter(shape.readable)

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


def _parsed(part: str, before: str, *, own: bool, last: bool) -> tuple[str, str, str, bool] | None:
    """(name, value, text behind it, whether it is the event's own) of one part of a line that was split at `=`."""
    named = _LAST_NAME.search(before)
    match = (re.fullmatch(r"(.*)()", part) if last else _OWN.fullmatch(part)) if own else None
    match = match or _IN_SPAN.fullmatch(part)
    if match is None:
        return None
    # In the event's own part a name without a blank before it is part of a value.
    return named[2] if named else "", match[1], match[2], own and named is not None and named[1] == " "


def _find(values: list[_Value], name: str) -> _Value | None:
    """The event's own value of that name, else the first one of any span."""
    own = next((value for value in values if value.own and value.name == name), None)
    return own or next((value for value in values if value.name == name), None)


def _raw(value: _Value) -> pl.Expr:
    raw = pl.col(f"field_{value.part}")
    raw = raw.str.strip_suffix(value.suffix) if value.suffix else raw
    return raw.str.strip_prefix(value.prefix) if value.prefix else raw
