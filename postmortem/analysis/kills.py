"""Kernel and userland kill reports: which of them concern this run, each counted once."""

import datetime as dt

import polars as pl

from postmortem.analysis.attempts import Span
from postmortem.analysis.cite import Citations
from postmortem.result import Kill
from postmortem.run import Run

__all__ = ["concerns", "dedupe", "describe"]

_GRACE = dt.timedelta(seconds=180)  # clocks of host and container, and dmesg -T's drift
_SAME = dt.timedelta(seconds=5)


def dedupe(kills: pl.DataFrame) -> pl.DataFrame:
    """The same kill from two log paths counts once: same pid and name, sizes equal, times (if both known) near."""
    kept: list[int] = []
    rows = kills.with_row_index().to_dicts()
    for row in rows:
        twin = next((k for k in kept if _same(rows[k], row)), None)
        if twin is None:
            kept.append(row["index"])
        elif row["complete"] and not rows[twin]["complete"]:
            kept[kept.index(twin)] = row["index"]
    return kills[kept] if kept else kills.clear()


def _same(a: dict[str, object], b: dict[str, object]) -> bool:
    if a["pid"] != b["pid"] or a["victim"] != b["victim"] or a["source"] == b["source"]:
        return False
    sizes = ("anon_rss", "shmem_rss", "usage")
    if any(a[s] is not None and b[s] is not None and a[s] != b[s] for s in sizes):
        return False
    first, second = a["time"], b["time"]
    return not (isinstance(first, dt.datetime) and isinstance(second, dt.datetime)) or abs(first - second) <= _SAME


def concerns(kills: pl.DataFrame, run: Run, span: Span, log_end: dt.datetime | None) -> pl.DataFrame:
    """The kills that can have ended this attempt.

    By time where the kill has one; by the victim's name where the daemon's is known and seen in any report.
    Without a time: the last report in its file, if nothing says that it is another process's.
    """
    if kills.is_empty():
        return kills
    low = span.start - _GRACE if span.start else None
    high = span.end or (log_end + dt.timedelta(hours=1) if log_end else None)
    dated = pl.col("time").is_not_null()
    inside = pl.lit(value=True)
    if low is not None:
        inside &= pl.col("time") >= low
    if high is not None:
        inside &= pl.col("time") <= high + _GRACE
    timed = kills.filter(dated & inside)
    if log_end is not None:
        # A kill well before the daemon's last line did not end it.
        timed = timed.filter(pl.col("time") >= log_end - _GRACE)
    if timed.height or span.end is not None:
        return timed
    undated = kills.filter(~dated)
    if undated.is_empty():
        return timed
    own = undated.filter(pl.col("victim").map_elements(run.model.is_daemon, return_dtype=pl.Boolean))
    return own.tail(1) if own.height else undated.tail(1)


def describe(kills: pl.DataFrame, relevant: pl.DataFrame, cites: Citations) -> list[Kill]:
    """The result's rows, all kills of the capture, each marked as concerning the analysed attempt or not."""
    mine = set(zip(relevant["source"], relevant["line"], strict=True)) if relevant.height else set()
    found: list[Kill] = []
    for row in kills.iter_rows(named=True):
        key = (row["source"], row["line"])
        first = (row["source"], row["first_line"] or row["line"])
        lines = list(cites.all(first, key)) if key in mine else [cites.run.cite(*key)]
        found.append(
            Kill(
                time=row["time"],
                constraint=row["constraint"],
                killer=row["killer"] or "kernel",
                oom_memcg=row["oom_memcg"],
                task_memcg=row["task_memcg"],
                victim=row["victim"],
                pid=row["pid"],
                trigger=row["trigger"],
                usage=row["usage"],
                limit=row["limit"],
                failcnt=row["failcnt"],
                total_vm=row["total_vm"],
                anon_rss=row["anon_rss"],
                file_rss=row["file_rss"],
                shmem_rss=row["shmem_rss"],
                pgtables=row["pgtables"],
                oom_group=bool(row["oom_group"]),
                complete=bool(row["complete"]),
                lines=lines,
                relevant=key in mine,
            )
        )
    return found
