"""What the dresses of structured log records have in common: where time, level, message and fields stand in them.

A dress (full, compact, pretty, JSON, logfmt) gives regular expressions; `records` does the same with all of them.
"""

from __future__ import annotations

from typing import Protocol

import polars as pl

from postmortem_parsers.profiles import Event

__all__ = ["LEVELS", "NAME", "QUOTED", "RecordFormat", "literal"]

LEVELS = "(?:TRACE|DEBUG|INFO|WARN|ERROR)"
NAME = r"[A-Za-z_][A-Za-z0-9_.]*"
QUOTED = r'"(?:[^"\\]|\\.)*"'


class RecordFormat(Protocol):
    """One dress. All expressions are Rust regular expressions; group 1 is what they find."""

    head: str
    """What a record's (first) line begins with."""
    stamp: str
    alarm: str
    """The level, when it is WARN or ERROR (any case)."""
    message: str
    """The message of such a record."""
    error: str
    """The field that says why."""

    def records(self, lines: pl.DataFrame) -> pl.DataFrame:
        """This dress's records: `line` (of the head), `text` (all of a record's lines)."""
        ...

    def patterns(self, event: Event) -> list[str]:
        """Literal texts, one of which is in each record of this event."""
        ...

    def rest(self, pattern: str) -> str:
        """What follows the known beginning of a message."""
        ...

    def field(self, pattern: str, name: str, *, text: bool) -> list[str]:
        """A field's raw value: among the event's own fields first, then among those of its spans."""
        ...

    def broken(self, records: pl.DataFrame) -> pl.Series | None:
        """Which records show by their form that they are not whole; None where the form cannot show it."""
        ...


def literal(text: str) -> str:
    """`text` as a Rust regular expression (Python's `re.escape` escapes more than Rust allows)."""
    return "".join("\\" + char if char in r"\.+*?()|[]{}^$#&-~" else char for char in text)
