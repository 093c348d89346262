"""logfmt records, as many Go daemons (logrus, go-kit, slog's text handler) write them.

    time=2026-03-13T14:02:11Z level=info msg="mem.init" budget_mb=1921 total_ram_mb=7685

Read where a profile names their messages. Not read: times without a zone.
"""

from __future__ import annotations

import polars as pl

from postmortem_parsers.profiles import Event
from postmortem_parsers.record_format import QUOTED, literal
from postmortem_parsers.timestamps import STAMP

__all__ = ["LogfmtFormat"]

_WORD = r'"?([^\s"]+)'


class LogfmtFormat:
    """logfmt."""

    head = r'(?:(?:time|ts|t)=(?:"[^"]*"|\S+) )?level=[A-Za-z]+ .*?\bmsg='
    stamp = rf'^(?:time|ts|t)="?({STAMP})'
    alarm = r"\blevel=(?i)(warn|error|fatal)"
    message = r'\bmsg="?((?:[^"\\]|\\.)*?)(?:"|(?: [A-Za-z_]\w*=)|$)'
    error = rf" (?:error|err|reason)=({QUOTED}|\S+)"

    def records(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Lines that begin with logfmt's usual keys."""
        return lines.filter(lines["text"].str.contains(r"^(?:time|ts|t|level)="))

    def patterns(self, event: Event) -> list[str]:
        """The message, quoted or not, or a key."""
        if event.field:
            return [f" {event.field}="]
        return [f'msg="{event.message}', f"msg={event.message}"]

    def rest(self, pattern: str) -> str:
        """Up to the message's end."""
        return rf'{literal(pattern)}([^"]*?)(?:"|(?: [A-Za-z_]\w*=)|$)'

    def field(self, pattern: str, name: str, *, text: bool) -> list[str]:
        """The first key of that name."""
        del pattern
        return [rf"\b{name}=({QUOTED}|\S+)" if text else rf"\b{name}={_WORD}"]

    def broken(self, records: pl.DataFrame) -> pl.Series | None:
        """A plain line does not show whether it is whole."""
        del records
        return None
