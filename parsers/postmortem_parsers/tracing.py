"""Records of Rust programs that log through `tracing` (tracing-subscriber 0.2 and 0.3), in all its formats.

cuzk-daemon, cuzk-bench and every other program that uses it. Each record is claimed, also those whose message no
profile knows; what a known one means stands in the profile. Warnings and errors of any target become marks.
Samples are in `tracing_text`, `tracing_pretty`, `tracing_json` and, for other daemons, `logfmt`.
Not read: env_logger's and slog's own dresses, texts over several lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Swept, Tables
from postmortem_parsers.logfmt import LogfmtFormat
from postmortem_parsers.profiles import Profile
from postmortem_parsers.record_format import RecordFormat
from postmortem_parsers.records import RecordReader, skip
from postmortem_parsers.tracing_json import JsonFormat
from postmortem_parsers.tracing_pretty import PrettyFormat, continuations
from postmortem_parsers.tracing_sweep import Sweeper
from postmortem_parsers.tracing_text import TextFormat

__all__ = ["DRESSES", "TracingParser"]

DRESSES: tuple[RecordFormat, ...] = (TextFormat(), PrettyFormat(), JsonFormat(), LogfmtFormat())
_HEAD = "^(?:" + "|".join(dress.head for dress in DRESSES) + ")"
_PRETTY_HEAD = f"^{PrettyFormat.head}"
# A last line that ends within the part that every record begins with.
_CUT_HEAD = (
    r" {0,2}[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]*(?:Z? *[A-Z]{0,5}|Z +[A-Z]{4,5} \S*)$"
    r'|\{"time[^}]*$|(?:time|ts)=\S*(?: level=\w*)?$'
)


class TracingParser:
    """Every record that `tracing` wrote."""

    name: ClassVar[str] = "tracing"
    reads: ClassVar[str] = "log records of Rust's tracing (full, compact, pretty, JSON) and logfmt, with spans"
    example: ClassVar[str] = (
        "2026-03-13T14:02:11.123456Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.88"
    )
    priority: ClassVar[int] = 10
    whole: ClassVar[bool] = False

    def __init__(self) -> None:
        self._readers: dict[int, list[RecordReader]] = {}
        self._sweepers: dict[tuple[int, int], Sweeper] = {}

    def sniff(self, head: Head) -> float:
        """Records may begin anywhere in a captured file, so every stream is offered."""
        return 0.9 if any("Z " in line or line.startswith("{") for line in head.lines) else 0.1

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Record heads, and the further lines of the pretty format."""
        text = lines["text"]
        heads = text.str.contains(_HEAD)
        if context.cut_line is not None and lines["line"][-1] == context.cut_line:
            heads = heads | ((lines["line"] == context.cut_line) & text.str.contains(f"^(?:{_CUT_HEAD})"))
        pretty = text.str.contains(_PRETTY_HEAD) if heads.any() else heads
        return heads | continuations(text, pretty) if pretty.any() else heads

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of the records that the profile knows, and marks of warnings and errors."""
        tables = Tables()
        if context.cut_line is not None:
            cut = (lines["line"] == context.cut_line) & ~lines["text"].str.contains(_HEAD)
            cut = cut & lines["text"].str.contains(f"^(?:{_CUT_HEAD})")
            lines = skip(lines, cut, "cut before its message", context)
        for reader in self._readers_of(context.profile):
            tables.update(reader.read(lines, context))
        return tables

    def sweep(
        self, lines: pl.DataFrame, context: Context, clean: Callable[[pl.Series], pl.Series] | None
    ) -> Swept | None:
        """Settle the lines in the full format that hold nothing of interest, or what others of their kind hold."""
        assert isinstance(context.profile, Profile)
        key = id(context.profile), context.source
        if key not in self._sweepers:
            self._sweepers[key] = Sweeper(context.profile, context.source)
        return self._sweepers[key].sweep(lines, clean)

    def _readers_of(self, profile: object) -> list[RecordReader]:
        assert isinstance(profile, Profile)
        if id(profile) not in self._readers:
            self._readers[id(profile)] = [RecordReader(dress, profile) for dress in DRESSES]
        return self._readers[id(profile)]
