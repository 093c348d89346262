"""tracing-subscriber's full and compact formats: one line a record, fields as `name=value`.

    2026-03-13T14:02:11.123456Z  INFO cuzk_core::pinned_pool: pinned pool: checkout (reuse) size_gib=3.88 free_remaining=0
    2026-03-13T14:02:11.123456Z  INFO gpu_worker{worker_id=0 job_id=ps-1}: cuzk_core::engine: GPU_TIMING … worker_id=0
    2026-03-13T14:02:11.123456Z  INFO gpu_worker: cuzk_core::engine: GPU_TIMING … worker_id=0 job_id=ps-1   (compact)

The full format puts spans with their fields before the target, the compact one puts their fields behind the event's.
Also read: no time, or one with an offset. Not read: texts that a field or message continues on further lines.
"""

from __future__ import annotations

import polars as pl

from postmortem_parsers.profiles import Event
from postmortem_parsers.record_format import LEVELS, NAME, QUOTED, literal
from postmortem_parsers.timestamps import STAMP

__all__ = ["TextFormat"]

# A display value is bare and may hold blanks: it ends where the next ` name=` begins.
_BARE = rf".*?)(?: {NAME}=|$"
_WORD = r'"?([^\s",}\]]+)'
_SPANS = r"(?:[\w-]+(?:\{.*?\})?:)+ "


class TextFormat:
    """Full and compact."""

    # Without a time only a module path tells the line from any other program's.
    head = rf"{STAMP}\s+{LEVELS} | {{0,2}}{LEVELS} (?:[\w:]+\{{.*\}}: )?\w+(?:::\w+)+: "
    stamp = rf"^({STAMP})"
    alarm = r"^(?:\S+ +| *)(WARN|ERROR) "
    message = rf"^(?:\S+ +| *){LEVELS} (?:{_SPANS})??(?:\w+(?:::\w+)*: )+?(.*?)(?: {NAME}=|$)"
    error = rf" (?:error|err|reason)=({QUOTED}|{_BARE})"

    def records(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Every line that neither JSON nor the pretty format claims."""
        return lines.filter(lines["text"].str.contains(rf"^(?:{self.head})"))

    def patterns(self, event: Event) -> list[str]:
        """`target: message`, or ` field=`."""
        return [f" {event.field}="] if event.field else [f"{event.target or ''}: {event.message}"]

    def rest(self, pattern: str) -> str:
        """Up to the first field."""
        return rf"{literal(pattern)}(.*?)(?: {NAME}=|$)"

    def field(self, pattern: str, name: str, *, text: bool) -> list[str]:
        """Behind the message, else anywhere (the full format's spans stand before it)."""
        own = rf"{literal(pattern)}(?:.*? | ){name}="
        if text:
            return [rf"{own}({QUOTED}|{_BARE})", rf"[{{ ]{name}=({QUOTED}|[^ }}]*)"]
        return [own + _WORD, rf"[{{ ]{name}={_WORD}"]

    def broken(self, records: pl.DataFrame) -> pl.Series | None:
        """A plain line does not show whether it is whole."""
        del records
        return None
