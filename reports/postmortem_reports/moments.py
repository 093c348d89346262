"""The arithmetic of single moments: the rows of the timeline's readout and of its data table."""

from dataclasses import dataclass

import polars as pl

from postmortem_reports.labels import STACK
from postmortem_reports.overlays import Overlays

__all__ = ["COUNTS", "TABLE", "MomentRow", "moment_rows", "notable_moments"]

_EVENLY_SPACED = 12

TABLE = {
    "unreclaimable": "Not reclaimable",
    "charged": "Charged",
    **STACK,
    "reserved": "Reserved",
    "pool_total": "Pool",
    "free_remaining": "Free buffers",
    "live_partitions": "Live partitions",
    "jobs_done": "Proofs done",
}
"""Columns of the data table beside the timeline."""

COUNTS = ("buffers_alive", "free_remaining", "live_partitions", "jobs_done")


@dataclass(frozen=True)
class MomentRow:
    """One line of the readout; `key` is what the page's script fills it by."""

    key: str
    label: str
    value: int | None
    kind: str
    """part, sum, line or count."""


def moment_rows(frame: pl.DataFrame) -> list[MomentRow]:
    """The readout at the timeline's last row; a column without a value there shows its last known one."""
    last = frame.with_columns(pl.all().forward_fill()).row(-1, named=True)
    parts = [MomentRow(name, label, last[name], "part") for name, label in STACK.items() if frame[name].max()]
    below = [row for row in parts if row.key != "reclaimable"]
    above = [row for row in parts if row.key == "reclaimable"]
    lines = {
        "limit": "Limit",
        "budget": "Budget",
        "reserved": "Reserved: the budget's own view",
        "slack": "Slack: budget less reserved",
        "headroom": "Left below the limit",
        "charged": "Charged, last sample",
        "pool_total": "Pool, all buffers",
        "pool_in_use": "Pool, in use",
    }
    last["slack"] = _difference(last["budget"], last["reserved"])
    last["headroom"] = _difference(last["limit"], last["unreclaimable"])
    counts = {
        "buffers_alive": "Buffers alive",
        "free_remaining": "Buffers idle (free_remaining)",
        "live_partitions": "Live partitions",
        "jobs_done": "Proofs done",
    }
    return [
        *below,
        MomentRow("unreclaimable", "Cannot be reclaimed", last["unreclaimable"], "sum"),
        *above,
        *(MomentRow(key, label, last[key], "line") for key, label in lines.items() if last[key] is not None),
        *(MomentRow(key, label, last[key], "count") for key, label in counts.items() if last[key] is not None),
    ]


def _difference(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one - other


def notable_moments(frame: pl.DataFrame, over: Overlays) -> pl.DataFrame:
    """A few rows for the data table: evenly spaced ones, each phase's start, the peaks, the last."""
    filled = frame.with_columns(pl.col("charged", "limit", "budget", "reserved").forward_fill())
    rows = {round(number * (frame.height - 1) / _EVENLY_SPACED) for number in range(_EVENLY_SPACED + 1)}
    starts = [band.start for band in (*over.phases[:8], *over.attempts[:4])]
    rows |= {min(frame.height - 1, int(frame["time"].search_sorted(start))) for start in starts}
    rows |= {int(row) for name in ("unreclaimable", "pool_total") if (row := frame[name].arg_max()) is not None}
    shown = [name for name in TABLE if name in COUNTS or frame[name].max()]
    shown = [name for name in shown if frame[name].null_count() < frame.height]
    return filled[sorted(rows)].select("time", *shown)
