"""What a fleet of runs has in common: endings over time, margins that would have covered, budgets, like deaths."""

from __future__ import annotations

import math
from pathlib import Path
from typing import BinaryIO

import msgspec
import polars as pl

from postmortem.units import GIB

__all__ = ["Cluster", "Fleet", "LadderStep", "Machines", "Margin", "Month", "Outlier", "figures"]

MEMORY_DEATHS = ("cgroup_limit", "cgroup_limit_probable", "host_oom", "userland_oom")
_NO_MARGIN_HELPS = ("leak", "neighbour")
"""Causes that eat any margin: runs that died of them do not tell how much to leave."""
_COVERED = (0.95, 0.99, 1.0)
_STEPS = 12
_MOST_CLUSTERS = 30
_MOST_OUTLIERS = 12
_MOST_MACHINES = 40


class Month(msgspec.Struct, frozen=True, kw_only=True):
    """How the runs of one period ended, by cause."""

    period: str
    runs: int
    causes: dict[str, int]


class Margin(msgspec.Struct, frozen=True, kw_only=True):
    """The margins (bytes) that would have covered a share of the runs."""

    covered: float
    as_it_ran: int | None
    """With the budget as the daemon counts it: from the limit down to the run's safe budget."""
    pool_counted: int | None
    """If the budget counted the pinned pool: overhead and transient loads alone."""


class LadderStep(msgspec.Struct, frozen=True, kw_only=True):
    """One budget (bytes) over all runs of one machine size that say which budget is safe for them."""

    budget: int
    survive: int
    of: int
    per_hour: float | None
    """Median proofs per hour of the runs that ran with about this budget and finished some."""


class Machines(msgspec.Struct, frozen=True, kw_only=True):
    """All runs under one memory limit (bytes, rounded to whole GiB)."""

    limit: int
    runs: int
    deaths: int
    margins: list[Margin]
    measured: int
    """Runs whose memory was seen well enough for the margins."""
    ladder: list[LadderStep]
    points: list[tuple[int, int, bool]]
    """(overhead and transients, margin needed, died of memory) of at most some hundred runs."""


class Outlier(msgspec.Struct, frozen=True, kw_only=True):
    """A run whose figure stands apart from those of its machine size."""

    run: str
    name: str
    what: str
    value: int
    usual: int
    """The median of its machine size."""
    report: str | None


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Deaths that are alike: same ending, cause, machine size, daemon and largest part."""

    runs: int
    ending: str
    cause: str
    largest_excess: str | None
    limit: int | None
    profile: str | None
    excess: int | None
    """Median, bytes."""
    example: str
    example_name: str
    example_report: str | None
    summary: str


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of the fleet, as `batch --format json` prints them."""

    schema: str = "postmortem-fleet/1"
    postmortem_version: str
    """The newest that made a row."""
    runs: int
    analysed: int
    memory_deaths: int
    first: str | None
    last: str | None
    statuses: dict[str, int]
    endings: dict[str, int]
    causes: dict[str, int]
    """Of the deaths by memory."""
    versions: dict[str, dict[str, int]]
    """Causes by daemon: the profile, and the tag `version` where a run.toml has it."""
    over_time: list[Month]
    machines: list[Machines]
    outliers: list[Outlier]
    clusters: list[Cluster]


def figures(runs: Path | BinaryIO) -> tuple[Fleet, pl.DataFrame]:
    """The fleet's figures and the table of runs, from `runs.parquet`."""
    frame = pl.read_parquet(runs).with_columns(
        machine=(pl.col("limit") / GIB).round().cast(pl.Int64) * GIB,
        beside=pl.min_horizontal(pl.col("overhead") + pl.col("transient").fill_null(0), "margin_needed"),
        died=pl.col("ending").is_in(MEMORY_DEATHS).fill_null(value=False),
        daemon=pl.col("profile").fill_null("unknown")
        + pl.coalesce(pl.lit(" ") + pl.col("tags").list.join("\n").str.extract(r"(?m)^version=(.{1,40})$"), pl.lit("")),
    )
    done = frame.filter(pl.col("status") == "done")
    times = done["start"].drop_nulls()
    return Fleet(
        postmortem_version=str(frame["analysis"].max() or "").partition("+")[0],
        runs=frame.height,
        analysed=done.height,
        memory_deaths=int(done["died"].sum()),
        first=_iso(times.min()),
        last=_iso(times.max()),
        statuses=_counts(frame, "status"),
        endings=_counts(done, "ending"),
        causes=_counts(done.filter("died"), "cause"),
        versions={
            str(daemon): _counts(group, "kind")
            for (daemon,), group in _kinds(done).group_by("daemon", maintain_order=True)
        },
        over_time=_over_time(done),
        machines=_machines(done),
        outliers=_outliers(done),
        clusters=_clusters(done.filter("died")),
    ), frame


def _iso(value: object) -> str | None:
    return None if value is None else str(value)[:10]


def _counts(frame: pl.DataFrame, column: str) -> dict[str, int]:
    counted = frame.drop_nulls(column).group_by(column).len().sort(["len", column], descending=[True, False])
    return dict(counted.iter_rows())


def _kinds(done: pl.DataFrame) -> pl.DataFrame:
    """The word by which a run is counted: the cause of a death by memory, else its ending."""
    return done.with_columns(kind=pl.when("died").then("cause").otherwise("ending")).sort("daemon")


def _over_time(done: pl.DataFrame) -> list[Month]:
    """By day, month or year, so that there are at most about forty periods."""
    timed = _kinds(done.drop_nulls("start")).sort("start")
    if not timed.height:
        return []
    for every, style in (("1d", "%Y-%m-%d"), ("1mo", "%Y-%m"), ("1y", "%Y")):
        cut = timed.with_columns(period=pl.col("start").dt.truncate(every).dt.strftime(style))
        if cut["period"].n_unique() <= 40 or every == "1y":
            groups = cut.group_by("period", maintain_order=True)
            return [
                Month(period=str(period), runs=group.height, causes=_counts(group, "kind"))
                for (period,), group in groups
            ]
    return []


def _machines(done: pl.DataFrame) -> list[Machines]:
    known = done.drop_nulls("machine")
    largest = known.group_by("machine").len().sort("len", descending=True).head(_MOST_MACHINES)["machine"].to_list()
    return [_one_size(known.filter(pl.col("machine") == size), size) for size in sorted(largest)]


def _one_size(runs: pl.DataFrame, limit: int) -> Machines:
    measured = runs.drop_nulls("margin_needed").filter(~pl.col("cause").is_in(_NO_MARGIN_HELPS))
    margins = [
        Margin(
            covered=share,
            as_it_ran=_covering(measured["margin_needed"], share),
            pool_counted=_covering(measured["beside"], share),
        )
        for share in _COVERED
    ]
    points = measured.drop_nulls("beside").sort("run")
    points = points.gather_every(max(1, points.height // 300)).select("beside", "margin_needed", "died")
    return Machines(
        limit=limit,
        runs=runs.height,
        deaths=int(runs["died"].sum()),
        margins=margins,
        measured=measured.height,
        ladder=_ladder(runs, limit),
        points=list(points.iter_rows()),
    )


def _covering(values: pl.Series, share: float) -> int | None:
    """The smallest whole number of GiB (in bytes) that at least this share of the runs stay within."""
    known = values.drop_nulls().sort()
    if not known.len():
        return None
    return math.ceil(int(known[max(0, math.ceil(share * known.len()) - 1)]) / GIB) * GIB


def _ladder(runs: pl.DataFrame, limit: int) -> list[LadderStep]:
    """From the limit down in steps of a few GiB; a run survives the budgets up to its safe one."""
    safe = runs.drop_nulls("safe_budget")["safe_budget"].sort()
    if not safe.len():
        return []
    lowest = min(int(safe[0]), limit)
    step = max(1, math.ceil((limit - lowest) / GIB / (_STEPS - 1)))
    budgets = [limit - number * step * GIB for number in range(_STEPS + 1)]
    budgets = [budget for budget in budgets if budget > 0 and budget > lowest - step * GIB]
    rate = pl.col("jobs_done") / pl.col("duration_s") * 3600
    worked = runs.filter((pl.col("jobs_done") > 0) & (pl.col("duration_s") > 0)).with_columns(rate=rate)
    half = step * GIB / 2
    return [
        LadderStep(
            budget=budget,
            survive=int((safe >= budget).sum()),
            of=safe.len(),
            per_hour=_median(worked.filter((pl.col("budget") - budget).abs() <= half)["rate"]),
        )
        for budget in budgets
    ]


def _median(values: pl.Series) -> float | None:
    value = values.median()
    return round(float(value), 2) if isinstance(value, int | float) else None


def _outliers(done: pl.DataFrame) -> list[Outlier]:
    """Runs further from their machine size's median than six times the median distance, in overhead or unseen memory."""
    found: list[pl.DataFrame] = []
    for column, what in (("overhead", "overhead"), ("peak_unseen", "memory that the budget does not see")):
        known = done.drop_nulls([column, "machine"]).with_columns(
            value=pl.col(column),
            usual=pl.col(column).median().over("machine"),
            count=pl.len().over("machine"),
            what=pl.lit(what),
        )
        distance = (pl.col("value") - pl.col("usual")).abs()
        known = known.with_columns(spread=distance.median().over("machine").clip(GIB / 2)).with_columns(
            score=(pl.col("value") - pl.col("usual")) / pl.col("spread")
        )
        found.append(known.filter((pl.col("count") >= 8) & (pl.col("score") > 6)))
    table = pl.concat(found).sort(["score", "run"], descending=[True, False]).head(_MOST_OUTLIERS)
    return [
        Outlier(
            run=row["run"],
            name=row["name"],
            what=row["what"],
            value=row["value"],
            usual=int(row["usual"]),
            report=row["report"],
        )
        for row in table.iter_rows(named=True)
    ]


def _clusters(deaths: pl.DataFrame) -> list[Cluster]:
    """The example of each is the run whose excess is nearest to the median, of equals the best proven one."""
    keys = ["cause", "ending", "largest_excess", "machine", "daemon"]
    ranked = deaths.with_columns(middle=pl.col("excess").median().over(keys), size=pl.len().over(keys)).sort(
        (pl.col("excess") - pl.col("middle")).abs().fill_null(2**62), -pl.col("confidence"), "run"
    )
    firsts = ranked.unique(keys, keep="first", maintain_order=True).sort(["size", "run"], descending=[True, False])
    return [
        Cluster(
            runs=row["size"],
            ending=row["ending"],
            cause=row["cause"],
            largest_excess=row["largest_excess"],
            limit=row["machine"],
            profile=row["daemon"],
            excess=None if row["middle"] is None else int(row["middle"]),
            example=row["run"],
            example_name=row["name"],
            example_report=row["report"],
            summary=row["summary"],
        )
        for row in firsts.head(_MOST_CLUSTERS).iter_rows(named=True)
    ]
