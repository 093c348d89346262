"""tracing-subscriber's JSON format (also flattened), one object a line.

    {"timestamp":"2026-03-13T14:02:11.123456Z","level":"INFO","fields":{"message":"pinned pool: checkin","size_gib":3.88},
     "target":"cuzk_core::pinned_pool","span":{"job_id":"ps-1","partition":3,"name":"synthesize_partition"},"spans":[…]}

Fields are taken by their names from the text: an event's own stand before those of its spans, innermost first. That
holds for what tracing writes and for the same objects with sorted keys. 128-bit numbers are strings there.
"""

from __future__ import annotations

import json

import polars as pl

from postmortem_parsers.profiles import Event
from postmortem_parsers.record_format import QUOTED, literal

__all__ = ["JsonFormat"]

_VALUE = rf"({QUOTED}|[^,}}\]]*)"
_WORD = r'"?([^\s",}\]]+)'
_MESSAGE_KEYS = ("message", "msg")  # tracing's and python-json-logger's; zap's, slog's and pino's


class JsonFormat:
    """JSON."""

    head = r'\s*\{.*"level"\s*:\s*"(?i:trace|debug|info|warn|warning|error)"|\{"timestamp"\s*:\s*"'
    stamp = r'"(?:timestamp|time|ts)"\s*:\s*"([^"]+)"'
    alarm = r'"level"\s*:\s*"(?i)(warn|error)'
    message = r'"(?:message|msg)"\s*:\s*"((?:[^"\\]|\\.)*)"'
    error = rf'"(?:error|err|reason)"\s*:\s*({QUOTED})'

    def records(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Lines that hold an object."""
        return lines.filter(lines["text"].str.contains(r"^\s*\{"))

    def patterns(self, event: Event) -> list[str]:
        """The message with either spacing, and with either way to write what is not ASCII; or a key."""
        if event.field:
            return [f'"{event.field}":']
        forms = dict.fromkeys(json.dumps(event.message, ensure_ascii=ascii_only)[:-1] for ascii_only in (False, True))
        return [f'"{key}":{space}{form}' for key in _MESSAGE_KEYS for space in ("", " ") for form in forms]

    def rest(self, pattern: str) -> str:
        """Up to the message's end."""
        return rf'{literal(pattern)}((?:[^"\\]|\\.)*)"'

    def field(self, pattern: str, name: str, *, text: bool) -> list[str]:
        """The first member of that name."""
        del pattern
        return [rf'"{name}"\s*:\s*{_VALUE}' if text else rf'"{name}"\s*:\s*{_WORD}']

    def broken(self, records: pl.DataFrame) -> pl.Series | None:
        """An object that is not closed was cut."""
        return ~records["text"].str.contains(r"\}\s*$")
