"""What was charged to the cgroup, over time, and what of it could have been given back.

Counters of both cgroup versions are one here (names: schema.py). Unreclaimable W = charged X - reclaimable page
cache C, where C = file - shmem (shmem is inside `file`/`cache` and cannot be reclaimed without swap). Source: the
kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

import dataclasses
import datetime as dt

import polars as pl

__all__ = ["Memory", "memory"]

_METRICS = (
    "current",
    "limit",
    "peak",
    "anon",
    "file",
    "shmem",
    "inactive_file",
    "active_file",
    "file_mapped",
    "kernel",
    "pagetables",
    "slab",
    "oom_kill",
    "failcnt",
)


@dataclasses.dataclass(frozen=True)
class Memory:
    """Samples of one attempt on the axis, oldest first."""

    samples: pl.DataFrame
    """time, source, line, one column a metric (null where not sampled), and
    `reclaimable` (null = not known), `unreclaimable` (= current where reclaimable is not known)."""
    scope: str | None
    """cgroup | process; None = no samples."""
    step: int
    """Bytes between two values that the samples can tell apart."""
    stamp_s: float
    """Resolution of the samples' time stamps, seconds."""
    interval_s: float | None
    """Median seconds between samples."""

    @property
    def empty(self) -> bool:
        """No samples at all."""
        return self.samples.is_empty()

    @property
    def has_counters(self) -> bool:
        """Whether reclaimable cache was measured."""
        return not self.empty and self.samples["reclaimable"].null_count() < self.samples.height

    def ends_at(self, limit: int | None) -> bool:
        """Whether the last sample stands at a limit, or memory fell from there at once, as a dead process's does."""
        last = None if self.empty else self.samples["current"][-1]
        return limit is not None and last is not None and (last >= 0.995 * limit or last < 0.9 * limit)

    def upto(self, moment: dt.datetime | None) -> pl.DataFrame:
        """Samples at or before a moment."""
        return self.samples if moment is None else self.samples.filter(pl.col("time") <= moment)


def memory(samples: pl.DataFrame) -> Memory:
    """The series of the cgroup with the most samples; without any, the sum over sampled processes."""
    rows = samples.filter(pl.col("time").is_not_null())
    cgroup = rows.filter(pl.col("scope") == "cgroup")
    if cgroup.filter(pl.col("metric") == "current").height:
        return _series(_one_subject(cgroup), "cgroup")
    processes = rows.filter((pl.col("scope") == "process") & (pl.col("metric") == "rss_process"))
    if processes.height:
        total = processes.group_by("time", "source", maintain_order=True).agg(
            pl.col("line").first(), pl.col("value").sum(), pl.col("value_ulp").first()
        )
        return _series(total.with_columns(metric=pl.lit("current")), "process")
    return Memory(_empty(), None, 0, 0.0, None)


def _one_subject(rows: pl.DataFrame) -> pl.DataFrame:
    """Several cgroups in one capture: the one that was sampled most."""
    counts = (
        rows.filter(pl.col("metric") == "current")
        .group_by("subject")
        .len()
        .sort(["len", "subject"], descending=[True, False])
    )
    return rows.filter(pl.col("subject").eq_missing(counts["subject"][0]))


def _empty() -> pl.DataFrame:
    columns = {"time": pl.Datetime("us", "UTC"), "source": pl.Int32(), "line": pl.Int64()}
    sizes = {name: pl.Int64() for name in (*_METRICS, "reclaimable", "unreclaimable")}
    return pl.DataFrame(schema=columns | sizes)


def _series(rows: pl.DataFrame, scope: str) -> Memory:
    """One row a moment and source; metrics become columns."""
    wanted = rows.with_columns(
        # v1 names the same things otherwise: rss is its anon, cache its file.
        metric=pl.col("metric").replace({"rss": "anon", "cache": "file"})
    ).filter(pl.col("metric").is_in(_METRICS))
    current = wanted.filter(pl.col("metric") == "current")
    table = (
        wanted.group_by("time", "source", "metric", maintain_order=True)
        .agg(pl.col("value").first())
        .pivot("metric", index=["time", "source"], values="value", aggregate_function="first")
        .join(current.group_by("time", "source").agg(pl.col("line").first()), on=["time", "source"], how="left")
    )
    absent = [pl.lit(None, dtype=pl.Int64).alias(name) for name in _METRICS if name not in table.columns]
    table = table.with_columns(absent).filter(pl.col("current").is_not_null())
    reclaimable = pl.col("file") - pl.col("shmem")
    by_lists = pl.col("inactive_file") + pl.col("active_file").fill_null(0)
    table = (
        table.with_columns(reclaimable=pl.coalesce(reclaimable, by_lists).clip(0, pl.col("current")))
        .with_columns(unreclaimable=pl.col("current") - pl.col("reclaimable").fill_null(0))
        .sort("time", "source")
        .unique("time", keep="first", maintain_order=True)
    )
    steps = current["value_ulp"].drop_nulls()
    gaps = table["time"].diff().dt.total_microseconds().drop_nulls() / 1e6
    whole = bool((table["time"].dt.microsecond() == 0).all())
    interval = gaps.median()
    return Memory(
        samples=table.select(_empty().columns),
        scope=scope,
        step=int(steps.max() or 0) if len(steps) else 0,  # pyright: ignore[reportArgumentType] (an integer column)
        stamp_s=1.0 if whole else 0.0,
        interval_s=float(interval) if isinstance(interval, (int, float)) else None,
    )
