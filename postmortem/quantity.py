"""A size with its interval and its kind of knowledge, and the arithmetic of such sizes."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Basis", "Quantity", "Value", "merge_lines", "weakest"]

Basis = Literal["measured", "derived", "modelled", "assumed"]
"""How a figure is known: a log field or counter; exact from such; from the profile's rules; a profile constant."""

_BASIS_ORDER: dict[Basis, int] = {"measured": 0, "derived": 1, "modelled": 2, "assumed": 3}


def weakest(*bases: Basis) -> Basis:
    """The basis of a figure computed from figures of these bases: never better than `derived`."""
    return max((*bases, "derived"), key=lambda basis: _BASIS_ORDER[basis])


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all result types."""


class Quantity(Value, frozen=True, kw_only=True):
    """A size in bytes with its interval, what kind of knowledge it is, and the lines that it comes from."""

    low: int
    best: int
    high: int
    basis: Basis
    lines: tuple[str, ...] = msgspec.field(name="from", default=())

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(
            low=self.low + other.low,
            best=self.best + other.best,
            high=self.high + other.high,
            basis=weakest(self.basis, other.basis),
            lines=merge_lines(self.lines, other.lines),
        )

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(
            low=self.low - other.high,
            best=self.best - other.best,
            high=self.high - other.low,
            basis=weakest(self.basis, other.basis),
            lines=merge_lines(self.lines, other.lines),
        )


def merge_lines(*groups: tuple[str, ...], most: int = 8) -> tuple[str, ...]:
    """The citations of several figures without repetition, at most `most` of them."""
    return tuple(dict.fromkeys(line for group in groups for line in group))[:most]
