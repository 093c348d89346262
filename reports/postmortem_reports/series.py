"""Long timelines made short for the page: fewer rows with the peaks kept, and columns packed as base64.

The rows that stay are the union of what MinMaxLTTB chooses for each column that people read peaks from, the
extremes of every column, the ends, and the moments that the caller names. So all columns keep one time axis,
and the packed data is bounded whatever the run's length.
"""

import base64
import datetime as dt
from typing import Any, cast

import numpy as np
import polars as pl
from tsdownsample import MinMaxLTTBDownsampler

from postmortem.schema import TIMELINE

__all__ = ["MOST_ROWS", "PAGE", "SIZES", "in_order", "pack", "thin"]

MOST_ROWS = 560
"""Rows that the page carries at most (about 70 kB of base64 for all columns)."""

PAGE = 4096
"""Sizes are packed as whole pages in 32 bits: exact to what the kernel charges, up to 8 TiB."""

_NULL = -(1 << 31)
_COUNTS = ("buffers_alive", "free_remaining", "live_partitions", "jobs_done")
SIZES = tuple(name for name in TIMELINE if name not in ("time", "attempt", *_COUNTS))
_PEAKS = ("unreclaimable", "charged", "reserved", "pool_total", "pool_in_use", "free_remaining", "live_partitions")


def in_order(timeline: pl.DataFrame) -> pl.DataFrame:
    """The timeline's rows that have a time, in order of time."""
    return timeline.filter(pl.col("time").is_not_null()).sort("time", maintain_order=True)


def thin(timeline: pl.DataFrame, most: int = MOST_ROWS, keep: tuple[dt.datetime, ...] = ()) -> pl.DataFrame:
    """About `most` rows of a timeline in order, peaks kept; the last row before each moment in `keep` stays.

    Never more than `most` beside the extremes (two a column) and the kept moments.
    """
    if timeline.height <= most:
        return timeline
    columns = [name for name in _PEAKS if timeline[name].null_count() < timeline.height]
    chosen = {0, timeline.height - 1, *_last_before(timeline, keep), *_extremes(timeline)}
    quota = max(8, (most - len(chosen)) // max(1, len(columns)))
    for name in columns:
        chosen.update(_chosen(timeline, name, quota))
    # Columns that change together choose the same rows: what is left over is spread evenly, for slopes between peaks.
    spare = max(0, most - len(chosen))
    chosen.update(int(row) for row in np.linspace(0, timeline.height - 1, spare))
    return timeline[np.fromiter(sorted(chosen), dtype=np.int64)]


def _chosen(timeline: pl.DataFrame, name: str, count: int) -> list[int]:
    """Row numbers that MinMaxLTTB keeps of one column; nulls hold the value before them."""
    values = timeline[name].fill_null(strategy="forward").fill_null(strategy="backward").cast(pl.Float64).to_numpy()
    times = timeline["time"].to_physical().to_numpy()
    sampler = cast("Any", MinMaxLTTBDownsampler())  # tsdownsample ships no complete types
    chosen = sampler.downsample(np.ascontiguousarray(times), np.ascontiguousarray(values), n_out=count)
    return [int(row) for row in chosen]


def _extremes(timeline: pl.DataFrame) -> set[int]:
    found = timeline.select(
        row
        for name in timeline.columns
        if name != "time"
        for row in (pl.col(name).arg_max().alias(f"{name}:max"), pl.col(name).arg_min().alias(f"{name}:min"))
    ).row(0)
    return {int(row) for row in found if row is not None}


def _last_before(timeline: pl.DataFrame, moments: tuple[dt.datetime, ...]) -> set[int]:
    positions = (timeline["time"].search_sorted(moment, side="right") for moment in moments)
    return {max(0, int(position) - 1) for position in positions}


def pack(frame: pl.DataFrame) -> dict[str, Any]:
    """Columns as base64 of little-endian arrays.

    `time` is in milliseconds since `start_ms` (float64), sizes in pages and counts are int32, null is the smallest
    number. A column of one value is that value; a column of nulls is left out.
    """
    times = frame["time"].dt.epoch("us").to_numpy() / 1000
    start = float(times[0]) if len(times) else 0.0
    columns = {name: packed for name in (*SIZES, *_COUNTS) if (packed := _packed(frame[name], name)) is not None}
    return {
        "start_ms": start,
        "rows": frame.height,
        "page": PAGE,
        "null": _NULL,
        "time": _base64(times - start, "<f8"),
        "columns": columns,
    }


def _packed(column: pl.Series, name: str) -> int | str | None:
    if column.null_count() == len(column):
        return None
    scaled = (column.cast(pl.Float64) / PAGE).round() if name in SIZES else column.cast(pl.Float64)
    values = scaled.clip(1 - (1 << 31), (1 << 31) - 1).fill_null(_NULL).to_numpy()
    return int(values[0]) if (values == values[0]).all() else _base64(values, "<i4")


def _base64(values: np.ndarray, dtype: str) -> str:
    return base64.b64encode(values.astype(dtype).tobytes()).decode("ascii")
