"""Field values of log lines as numbers, sizes and texts.

Rust prints floats in full (`3.8811187744140625`, `4.0`), options as debug text (`Some(3)`, `None`), strings bare
(Display) or quoted (Debug); 128-bit integers become strings in JSON (`"24424"`). All these forms are read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import polars as pl

from postmortem.units import GIB, KIB, MIB

__all__ = ["ABSENT", "UNITS", "Unit", "circuit_unit"]

ABSENT = ("None", "null", "")
"""What says that there is no value, as against a value that cannot be read."""

_LARGEST = 1 << 62


@dataclasses.dataclass(frozen=True)
class Unit:
    """How a value's text becomes a column's value; null where it cannot."""

    convert: Callable[[pl.Expr], pl.Expr]
    text: bool = False
    """Text may hold blanks; other values end at the next one."""
    ulp: int | None = None
    """Size of one step where the field is rounded down, 0 where it is exact, None where it is no size."""


def _bare(value: pl.Expr) -> pl.Expr:
    return value.str.strip_chars('"')


def _integer(value: pl.Expr) -> pl.Expr:
    return _bare(value).cast(pl.Int64, strict=False)


def _option(value: pl.Expr) -> pl.Expr:
    return _bare(value).str.extract(r"^(?:Some\()?(-?[0-9]+)\)?$").cast(pl.Int64, strict=False)


def _float(value: pl.Expr) -> pl.Expr:
    return _bare(value).cast(pl.Float64, strict=False)


def _size(step: int, *, floor: bool = False) -> Callable[[pl.Expr], pl.Expr]:
    def convert(value: pl.Expr) -> pl.Expr:
        number = _float(value)
        steps = number.floor() if floor else number
        size = (steps * step).round()
        # A size below zero or past any machine's is a garbled number, not a size.
        return pl.when((size >= 0) & (size < _LARGEST)).then(size).otherwise(None).cast(pl.Int64)

    return convert


def _own_unit(value: pl.Expr) -> pl.Expr:
    """`512M`, `1.5 GiB`, `4g`, `1024` (bytes); one letter means a power of 1024, as JVMs and Go print it."""
    parts = (
        _bare(value).str.strip_chars().str.to_uppercase().str.extract_groups(r"^([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)I?B?$")
    )
    factor = parts.struct[1].replace_strict({"": 1, "K": KIB, "M": MIB, "G": GIB, "T": GIB << 10}, default=None)
    size = (parts.struct[0].cast(pl.Float64, strict=False) * factor).round()
    return pl.when(size < _LARGEST).then(size).otherwise(None).cast(pl.Int64)


def _text(value: pl.Expr) -> pl.Expr:
    quoted = value.str.starts_with('"')
    inner = value.str.slice(1).str.strip_suffix('"').str.replace_all(r'\\(["\\])', "$1")
    return pl.when(quoted).then(inner).otherwise(value)


def circuit_unit(aliases: Mapping[str, str]) -> Unit:
    """A circuit's name from whatever a line calls it, by the profile's aliases (lower case)."""
    known = {name.lower(): circuit for name, circuit in aliases.items()}

    def convert(value: pl.Expr) -> pl.Expr:
        name = _text(value).str.strip_chars().str.to_lowercase()
        return name.replace(list(known), list(known.values()))

    return Unit(convert, text=True)


UNITS: dict[str, Unit] = {
    "int": Unit(_integer),
    "ms": Unit(_integer),
    "option_int": Unit(_option),
    "float": Unit(_float),
    "text": Unit(_text, text=True),
    "word": Unit(_text),
    "bytes": Unit(_size(1), ulp=0),
    "kb": Unit(_size(KIB), ulp=0),
    "mib": Unit(_size(MIB), ulp=0),
    "mib_floor": Unit(_size(MIB, floor=True), ulp=MIB),
    "gib": Unit(_size(GIB), ulp=0),
    "gib_floor": Unit(_size(GIB, floor=True), ulp=GIB),
    "size": Unit(_own_unit, ulp=0),
}
"""Units that a profile may name: `column = "field:unit"`. `circuit` is added from the profile's own aliases."""
