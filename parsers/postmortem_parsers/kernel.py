"""Kernel logs: out-of-memory reports, NVIDIA's Xid errors and fatal faults, in any dress.

Written by Linux 2.6.36 to 6.1x, read through dmesg, syslog, the journal, Talos, container log shippers, or pasted
bare into another log. Sample: `[3797.799133] Memory cgroup out of memory: Killed process 7 (x) total-vm:…kB, …`.
Not read: call traces, per-zone figures, page allocation failures (they kill nobody).
"""

import re
from typing import ClassVar

import polars as pl

from postmortem.schema import TABLES, conform
from postmortem_parsers.interface import Context, Head, Skipped, Tables
from postmortem_parsers.kernel_log.claims import claimed_lines
from postmortem_parsers.kernel_log.dedupe import dedupe_kills
from postmortem_parsers.kernel_log.draft import Message
from postmortem_parsers.kernel_log.dress import undress
from postmortem_parsers.kernel_log.report import Reports, kind_of, read_reports
from postmortem_parsers.kernel_log.words import ANY_ANCHOR, ANY_SHAPE

__all__ = ["KernelParser", "dedupe_kills"]

_XID = re.compile(
    r"NVRM: (?:GPU at \S+ )?Xid \([^)]*\): (?P<code>\d+)"
    r"(?:,\s*pid=['\"]?(?P<pid>\d+)?[^,]*)?(?:,\s*name=(?P<name>[^,]*))?"
)
_FAULT = re.compile(r"(?:traps: )?(?P<name>.{1,64}?)\[(?P<pid>\d+)\]:? (?P<what>segfault|general protection|trap)")
_MOST_TEXT = 1000


def _messages(frame: pl.DataFrame) -> list[Message]:
    columns = ["line", "message", "time", "local_time", "no_year", "uptime_s", "hostname", "caller", "dress"]
    return [Message(**row) for row in frame.select(columns).iter_rows(named=True)]


def _once(frame: pl.DataFrame) -> pl.DataFrame:
    """A line that two log paths wrote counts once, with the better clock of the two.

    Printk's stamps have microseconds, so the same stamp and words are the same line; without one only neighbours are.
    """
    stamped = frame.filter(pl.col("uptime_s").is_not_null())
    rest = frame.filter(pl.col("uptime_s").is_null())
    timed = pl.col("time").is_not_null()
    names = ["time", "local_time", "no_year"]
    best = [pl.coalesce(pl.col(name).filter(timed).first(), pl.col(name).first()) for name in names]
    others = [pl.col(name).drop_nulls().first() for name in ("hostname", "caller", "dress")]
    stamped = stamped.group_by("uptime_s", "message", maintain_order=True).agg(pl.col("line").first(), *best, *others)
    twice = (
        (pl.col("message") == pl.col("message").shift(1))
        & (pl.col("time") == pl.col("time").shift(1))
        & pl.col("dress").is_not_null()
    )
    rest = rest.filter(~twice.fill_null(value=False))
    columns = [name for name in frame.columns if name != "tag"]
    return pl.concat([stamped.select(columns), rest.select(columns)]).sort("line", maintain_order=True)


class KernelParser:
    """Tables `kills`, `tasks`, and `ends` for what else the kernel ended."""

    name: ClassVar[str] = "kernel"
    reads: ClassVar[str] = (
        "kernel logs (dmesg, syslog, journal, Talos, shipped JSON): OOM reports, Xid errors, segfaults"
    )
    example: ClassVar[str] = (
        "[3797.799133] Memory cgroup out of memory: Killed process 19762 (python3) total-vm:2771592kB, "
        "anon-rss:1221408kB, file-rss:6908kB, shmem-rss:1540096kB, UID:0 pgtables:5472kB oom_score_adj:0"
    )
    priority: ClassVar[int] = 30
    whole: ClassVar[bool] = True

    def sniff(self, head: Head) -> float:
        """Sure of a stream that begins in a kernel's dress; any other may hold a report further down."""
        lines = pl.DataFrame({"line": range(1, len(head.lines) + 1), "text": head.lines}, schema=_LINES)
        share = claimed_lines(lines).mean() if lines.height else 0.0
        return max(0.2, share if isinstance(share, float) else 0.0)

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Lines in a kernel's dress, and bare lines of a report."""
        del context
        return claimed_lines(lines)

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Reads all reports of the stream."""
        tables = Tables()
        frame = undress(lines)
        frame = frame.filter(pl.col("message").str.contains(f"{ANY_ANCHOR}|{ANY_SHAPE}"))
        messages = _messages(_once(frame))
        reports = read_reports(messages)
        _add_reports(reports, context, tables)
        _add_ends(messages, reports, context, tables)
        _add_alarms(reports, context, tables)
        for message, reason in reports.broken:
            context.skipped.append(Skipped(message.line, reason, message.message[:_MOST_TEXT]))
        return tables


_LINES = {"line": pl.Int64, "text": pl.String}


def _add_reports(reports: Reports, context: Context, tables: Tables) -> None:
    kills: list[dict[str, object]] = []
    for number, draft in enumerate(reports.drafts, 1):
        # Reports of different sources must not share an id.
        report = (context.source << 32) + number
        rows, tasks = draft.rows(report)
        if not rows:
            rows = [draft.cut_row(report)]
        kills.extend({"source": context.source, **row} for row in rows)
        if tasks:
            columns = {name: TABLES["tasks"][name] for name in tasks[0]}
            time = rows[0]["time"]
            frame = pl.DataFrame(tasks, schema=columns, orient="row").with_columns(
                pl.lit(context.source).alias("source"), pl.lit(time, pl.Datetime("us", "UTC")).alias("time")
            )
            tables.add("tasks", frame)
    if kills:
        schema = {name: dtype for name, dtype in TABLES["kills"].items() if any(name in row for row in kills)}
        frame = dedupe_kills(conform("kills", pl.DataFrame(kills, schema=schema, orient="row")))
        tables.add("kills", frame)


def _add_ends(messages: list[Message], reports: Reports, context: Context, tables: Tables) -> None:
    rows: list[dict[str, object]] = []
    for message in messages:
        kind = kind_of(message.message)
        if kind == "xid" and (match := _XID.match(message.message)):
            pid, name = match["pid"], match["name"]
            rows.append(_end(message, "xid", code=int(match["code"]), name=name, pid=pid))
        elif kind == "xid":
            context.skipped.append(Skipped(message.line, "the Xid line is cut", message.message[:_MOST_TEXT]))
        elif kind == "fault" and (match := _FAULT.match(message.message)):
            signal = 11 if match["what"] != "trap" else None
            rows.append(_end(message, "segfault", signal=signal, name=match["name"], pid=match["pid"]))
    rows.extend(_end(message, "oom_group", name=path, signal=9) for path, message in reports.groups)
    if rows:
        schema = {name: dtype for name, dtype in TABLES["ends"].items() if name in rows[0]}
        tables.add("ends", pl.DataFrame(rows, schema=schema, orient="row").with_columns(source=context.source))


def _end(
    message: Message,
    what: str,
    *,
    code: int | None = None,
    signal: int | None = None,
    name: str | None = None,
    pid: str | None = None,
) -> dict[str, object]:
    return {
        "time": message.time,
        "line": message.line,
        "what": what,
        "by": "kernel",
        "code": code,
        "signal": signal,
        "name": name.strip() if name else None,
        "pid": int(pid) if pid else None,
        "text": message.message[:_MOST_TEXT],
        "local_time": message.local_time,
    }


def _add_alarms(reports: Reports, context: Context, tables: Tables) -> None:
    """`invoked oom-killer` without a victim is a mark: memory was short, and nobody died of it."""
    rows = [
        {
            "time": draft.first.time,
            "line": draft.first.line,
            "what": "oom_without_kill",
            "text": draft.first.message[:_MOST_TEXT],
            "local_time": draft.first.local_time,
        }
        for draft in reports.without_kill
    ]
    if rows:
        schema = {name: TABLES["marks"][name] for name in rows[0]}
        tables.add("marks", pl.DataFrame(rows, schema=schema, orient="row").with_columns(source=context.source))
