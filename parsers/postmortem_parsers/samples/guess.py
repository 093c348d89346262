"""What a nameless column of numbers must be, from its values alone. Whatever is guessed here is said in the report."""

from __future__ import annotations

import polars as pl

from postmortem.units import GIB, KIB, MIB

__all__ = ["by_values", "unit_of", "unit_word"]

_STEADY = 0.9
"""A limit that somebody changed on the way still has one value in this share of the lines, or in all but one."""


def unit_of(values: pl.Series) -> int:
    """Bytes of one step of a column of use or limit without unit: the unit that makes its largest value a memory size.

    Machines have 10 MiB to 10 TiB. So up to 10^4 is GiB, up to 10^7 MiB, up to 10^9 KiB unless all are whole pages.
    """
    largest = float(values.cast(pl.Float64, strict=False).max() or 0)  # pyright: ignore[reportArgumentType] (max of floats is a float)
    if largest == 0 or largest >= 1e9:
        return 1
    if largest < 1e4:
        return GIB
    if largest < 1e7:
        return MIB
    whole_pages = values.cast(pl.Float64, strict=False).drop_nulls() % 4096 == 0
    return 1 if whole_pages.all() else KIB


def unit_word(unit: int) -> str:
    """How a unit is called in a sentence."""
    return {1: "bytes", KIB: "KiB", MIB: "MiB", GIB: "GiB"}.get(unit, f"units of {unit} bytes")


def by_values(columns: dict[str, pl.Series]) -> dict[str, str]:
    """The metric (`current`, `limit`) of each column whose values tell it; the others are left out.

    A column that hardly ever changes and is never below the others is the limit; of the rest the largest is the use.
    """
    numbers = {name: values.cast(pl.Float64, strict=False).drop_nulls() for name, values in columns.items()}
    largest = {name: float(v.max()) for name, v in numbers.items() if v.len()}  # pyright: ignore[reportArgumentType] (as above)
    if not largest:
        return {}
    ranked = sorted(largest, key=lambda name: largest[name], reverse=True)
    found: dict[str, str] = {}
    if len(ranked) > 1 and _steady(numbers[ranked[0]]):
        found[ranked.pop(0)] = "limit"
    found[ranked[0]] = "current"
    return found


def _steady(values: pl.Series) -> bool:
    if not values.len():
        return False
    commonest = int(values.value_counts(sort=True)["count"][0])
    return commonest >= min(_STEADY * values.len(), values.len() - 1)
