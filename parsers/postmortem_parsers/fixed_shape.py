"""Lines of one kind that differ in their values only, read by splitting at blanks instead of by expressions.

A shape is learned from one line: its words, and where its values stand in them. A line that has it gives the same raw
values as the expressions of `tracing_text` would; every other line is left to them.
"""

from __future__ import annotations

import dataclasses
import re

import polars as pl

from postmortem_parsers.profiles import Event, Profile, Row
from postmortem_parsers.record_format import NAME

__all__ = ["FIRST_WORD", "KindReader"]

FIRST_WORD = 34
"""Characters before spans and target: `2026-03-13T14:02:11.123456Z  INFO `."""

_VALUE = re.compile(rf'(?:^|(?<=\{{))({NAME})=("[^"\\{{}}=]*"|[^"{{}}=\s]*)')
_ODD_TEXT = r'["\\{}]'
_MOST_WORDS = 40
_MOST_SHAPES = 4


@dataclasses.dataclass(frozen=True)
class _Value:
    """Where a value stands: in which word, behind and before which texts."""

    name: str
    word: int
    part: int
    prefix: str
    suffix: str
    own: bool
    """Behind the message, not in a span."""


@dataclasses.dataclass(frozen=True)
class _Shape:
    """What all lines of a shape have in common, as expressions over `text`."""

    words: int
    equals: int
    splits: tuple[pl.Expr, ...]
    columns: tuple[pl.Expr, ...]
    fits: pl.Expr


class KindReader:
    """Lines of one event of a profile. Its methods may run in several threads at once."""

    def __init__(self, event: Event, pattern: str, profile: Profile) -> None:
        self._event = event
        self._pattern = pattern
        self._profile = profile
        self._shapes: tuple[_Shape, ...] = ()
        self._hopeless = not event.message or any("*:" in f"{s}:" for r in event.rows for s in _sources(r) if s[0] == "*")
        self._outputs = [(row.table, self._output(number, row)) for number, row in enumerate(event.rows)]

    def read(self, kind: pl.DataFrame, source: int) -> tuple[list[tuple[str, pl.DataFrame]], pl.Series]:
        """Rows of the lines of a known shape (columns `line`, `time`, `text` in), by table; and which lines they are."""
        done = pl.repeat(value=False, n=kind.height, dtype=pl.Boolean, eager=True)
        found: list[tuple[str, pl.DataFrame]] = []
        if self._hopeless:
            return found, done
        left, tried = kind.with_row_index("at"), 0
        while left.height and tried < _MOST_SHAPES:
            shape = self._shape(tried, left["text"][0])
            if shape is None:
                break
            tried += 1
            read = _split(left, shape)
            fits = read["fits"]
            if not fits.any():
                continue
            whole = bool(fits.all())
            rows = read if whole else read.filter(fits)
            found += [(table, rows.select_seq(output).with_columns(source=pl.lit(source, pl.Int32))) for table, output in self._outputs]
            if whole and left.height == kind.height:
                return found, fits
            done = done.scatter(rows["at"], values=True)
            left = left.filter(~fits)
        return found, done

    def _shape(self, number: int, text: str) -> _Shape | None:
        if number < len(self._shapes):
            return self._shapes[number]
        if number >= _MOST_SHAPES:
            return None
        shape = self._learn(text)
        if shape is None:
            return None
        self._shapes = (*self._shapes[:number], shape)
        return shape

    def _learn(self, text: str) -> _Shape | None:
        """The shape of one line; None where its words do not show where its values end."""
        tail = text[FIRST_WORD:]
        words = tail.split(" ")
        at = tail.find(self._pattern)
        if at < 0 or len(words) > _MOST_WORDS:
            return None
        first_own = tail[: at + len(self._pattern)].count(" ") + 1
        values = [value for number, word in enumerate(words) for value in _values(word, number, own=number >= first_own)]
        named = {value.word for value in values}
        if any(number not in named for number in range(first_own, len(words)) if number > min((w for w in named if w >= first_own), default=len(words))):
            return None  # A value of several words.
        return self._compiled(words, values, tail.count("="))

    def _compiled(self, words: list[str], values: list[_Value], equals: int) -> _Shape | None:
        if len({(v.word, v.part) for v in values}) != equals:
            return None
        splits, fits = list[pl.Expr](), [pl.col(f"field_{len(words) - 1}").is_not_null(), pl.col(f"field_{len(words)}").is_null()]
        named = {value.word for value in values}
        fits += [pl.col(f"field_{n}") == word for n, word in enumerate(words) if n not in named]
        for value in values:
            place = _place(value)
            parts = [v for v in values if v.word == value.word]
            if value.part == 0 and len(parts) > 1:
                return None if len(parts) > 2 else self._double(words, values, equals)
            fits += [place.str.starts_with(value.prefix), place.str.ends_with(value.suffix)]
            if value.suffix:
                fits.append(place.str.len_bytes() >= len((value.prefix + value.suffix).encode()))
        columns = self._columns(values, fits)
        if columns is None:
            return None
        return _Shape(len(words), equals, tuple(splits), columns, pl.all_horizontal(fits))
