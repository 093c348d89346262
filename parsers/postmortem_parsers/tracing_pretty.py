"""tracing-subscriber's pretty format: several lines a record, fields as `name: value`.

      2026-03-19T02:16:10.519528Z  INFO cuzk_core::pinned_pool: pinned pool: checkin, size_gib: 3.88
        at cuzk-core/src/pinned_pool.rs:158
        in cuzk_core::pipeline::gpu_prove with circuit_id: porep-32g, partition: Some(3)

An empty line follows each record. Spans stand innermost first. Not read: source positions, thread names.
"""

from __future__ import annotations

import polars as pl

from postmortem_parsers.profiles import Event
from postmortem_parsers.record_format import LEVELS, NAME, QUOTED, literal
from postmortem_parsers.timestamps import STAMP

__all__ = ["PrettyFormat", "continuations"]

_BARE = rf".*?)(?:, {NAME}: |$"
_WORD = r'"?([^\s",}\]]+)'
_MORE = r"^    (?:at \S.*:[0-9]+(?: on .*)?|in [\w:]+(?: with .*)?|in \S.*::.*)$"


class PrettyFormat:
    """Pretty."""

    head = rf"  {STAMP}\s+{LEVELS} "
    stamp = rf"^  ({STAMP})"
    alarm = r"^  \S+ +(WARN|ERROR) "
    message = rf"(?m)^  \S+ +{LEVELS} (?:[\w:]+: )?(.*?)(?:, {NAME}: |$)"
    error = rf"(?m), (?:error|err|reason): ({QUOTED}|{_BARE})"

    def records(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Heads with the lines that belong to them, joined by newlines."""
        heads = lines["text"].str.contains(rf"^{self.head}")
        more = lines["text"].str.contains(_MORE)
        if not heads.any():
            return lines.clear()
        owned = lines.with_columns(record=heads.cum_sum(), head=heads).filter(heads | more)
        joined = owned.filter(pl.col("record") > 0).group_by("record", maintain_order=True)
        return joined.agg(pl.col("line").first(), pl.col("text").str.join("\n")).select("line", "text")

    def patterns(self, event: Event) -> list[str]:
        """`target: message`, or `, field: `."""
        return [f", {event.field}: "] if event.field else [f"{event.target or ''}: {event.message}"]

    def rest(self, pattern: str) -> str:
        """Up to the first field."""
        return rf"(?m){literal(pattern)}(.*?)(?:, {NAME}: |$)"

    def field(self, pattern: str, name: str, *, text: bool) -> list[str]:
        """On the head's line behind the message, else on the lines of the spans, innermost first."""
        own, spans = rf"(?m){literal(pattern)}.*?, {name}: ", rf"(?: with |, ){name}: "
        if text:
            return [rf"{own}({QUOTED}|{_BARE})", rf"{spans}({QUOTED}|[^,\n]*)"]
        return [own + _WORD, spans + _WORD]

    def broken(self, records: pl.DataFrame) -> pl.Series | None:
        """The lines do not show whether they are whole."""
        del records
        return None


def continuations(text: pl.Series, heads: pl.Series) -> pl.Series:
    """Which lines carry on a pretty record: source position, spans, and the empty line behind them."""
    more = text.str.contains(_MORE)
    before = (heads | more).shift(1, fill_value=False)
    return more | ((text == "") & before)
