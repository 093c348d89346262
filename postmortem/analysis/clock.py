"""One UTC axis for all tables, and how sure each source's place on it is.

Order of trust: times with a zone; offsets from a dated line of the same source (TIMELINE, uptimes); the time of the
neighbouring line; clocks without day or zone, whose offset is found from their overlap with the dated log.
"""

import datetime as dt
from collections.abc import Callable

import polars as pl

from postmortem.analysis.arrivals import NOTE as ARRIVED
from postmortem.analysis.arrivals import dated_by_arrival
from postmortem.run import Run
from postmortem.schema import empty
from postmortem.spill import LongTable

__all__ = ["Placed", "place"]

_QUARTER = 15  # all time zones are whole quarters of an hour east of UTC
_MAX_SHIFT = 14 * 60
_SHIFTS = sorted(range(-_MAX_SHIFT, _MAX_SHIFT + 1, _QUARTER), key=lambda shift: (shift % 60 != 0, abs(shift)))


class Placed:
    """The run on one axis, with a note a source and its uncertainty in seconds."""

    def __init__(self, run: Run, notes: dict[int, str], uncertainty: dict[int, float], warnings: list[str]) -> None:
        self.run = run
        self.notes = notes
        self.uncertainty = uncertainty
        self.warnings = warnings


def place(run: Run) -> Placed:
    """Give every row that can have one its UTC time. Rows that cannot keep null, with a warning."""
    notes: dict[int, str] = {}
    uncertainty: dict[int, float] = {}
    warnings: list[str] = []
    run, arrived = dated_by_arrival(run)
    for index in arrived:
        notes[index], uncertainty[index] = ARRIVED, 0.1
    reference = _reference(run)
    tables = dict(run.tables)
    for name in ("samples", "kills", "ends", "phases", "marks"):
        tables[name] = _place_local(run, run.table(name), reference, notes, uncertainty)
    run = run.with_tables(tables)
    tables["kills"] = _place_uptimes(run.table("kills"), run.table("marks"), reference, notes, warnings, run)
    tables["work"] = _place_offsets(run, notes)
    run = run.with_tables(tables)
    for name in ("budget", "resident"):
        tables[name] = _place_daemon_uptimes(run, name)
    for name in ("ends", "phases", "marks", "work", "budget", "resident", "pool"):
        tables[name] = _changed(tables.get(name, empty(name)), lambda rows: _place_by_neighbour(rows, run.lines_time))
    for index in range(len(run.sources)):
        if run.lines_time.filter(pl.col("source") == index).height and index not in notes:
            notes[index] = "UTC, from its own time stamps"
            uncertainty.setdefault(index, 0.0)
    return Placed(run.with_tables(tables), notes, uncertainty, warnings)


def _reference(run: Run) -> tuple[dt.datetime, dt.datetime] | None:
    """First and last moment that carries a zone: the daemon's own lines, else dated samples."""
    if run.lines_time.height:
        times = run.lines_time["time"].drop_nulls()
        if len(times):
            return _span(times)
    sure = run.table("samples").filter(~pl.col("local_time").fill_null(value=False))["time"].drop_nulls()
    return _span(sure) if len(sure) else None


def _span(times: pl.Series) -> tuple[dt.datetime, dt.datetime]:
    first, last = times.min(), times.max()
    assert isinstance(first, dt.datetime)
    assert isinstance(last, dt.datetime)
    return first, last


def _changed(
    table: pl.DataFrame | LongTable, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame | LongTable:
    """A table after `change`, which gives rows their times one by one. A long one is left where all have theirs."""
    if isinstance(table, LongTable):
        return table if table.dated else table.rewritten(change)
    return change(table)


def _place_offsets(run: Run, notes: dict[int, str]) -> pl.DataFrame | LongTable:
    """TIMELINE rows: milliseconds since the engine's start line before them in the same source."""
    work = run.tables.get("work", empty("work"))
    columns = ["source", "line", "offset_ms", "op", "time"]
    offsets = run.pick("work", pl.col("offset_ms").is_not_null(), columns)
    if offsets.is_empty():
        return work
    starts = (
        run.pick("work", (pl.col("op") == "engine_start") & pl.col("time").is_not_null(), columns)
        .select("source", "line", start="time")
        .sort("line")
    )
    for source in offsets["source"].unique():
        notes[source] = "UTC; TIMELINE offsets counted from `starting cuzk engine` (± 1 ms)"
    first = starts.group_by("source").agg(first=pl.col("line").min())
    early = offsets.join(first, on="source", how="left").filter(
        pl.col("line") < pl.col("first").fill_null(pl.col("line") + 1)
    )
    guessed = _starts_from_neighbours(offsets if early.height else offsets.clear(), run.lines_time)

    def place(rows: pl.DataFrame) -> pl.DataFrame:
        placed = rows.sort("line").join_asof(starts, on="line", by="source", check_sortedness=False)
        placed = placed.join(guessed, on="source", how="left")
        from_start = pl.coalesce("start", "guessed") + pl.duration(milliseconds=pl.col("offset_ms"))
        placed = placed.with_columns(time=pl.coalesce("time", from_start))
        return placed.drop("start", "guessed").sort("source", "line")

    return _changed(work, place)


def _starts_from_neighbours(offsets: pl.DataFrame, lines_time: pl.DataFrame) -> pl.DataFrame:
    """For rows without a start line before them: the median of (neighbouring line's time - offset) a source."""
    rows = offsets.select("source", "line", "offset_ms").sort("line")
    dated = lines_time.sort("line").with_columns(beside="line")
    near = rows.join_asof(dated, on="line", by="source", strategy="nearest", check_sortedness=False)
    # Only some rows have a dated line just beside them; the others would tell a time of many lines away.
    far = (pl.col("line") - pl.col("beside")).abs()
    near = near.filter(far <= far.min().over("source"))
    guessed = (pl.col("time") - pl.duration(milliseconds=pl.col("offset_ms"))).median()
    return near.group_by("source").agg(guessed=guessed.cast(pl.Datetime("us", "UTC")))


def _place_local(
    run: Run,
    frame: pl.DataFrame,
    reference: tuple[dt.datetime, dt.datetime] | None,
    notes: dict[int, str],
    uncertainty: dict[int, float],
) -> pl.DataFrame:
    """Clocks without a zone (and day or year): shifted to where they overlap the dated log."""
    local = frame.filter(pl.col("local_time").fill_null(value=False) & pl.col("time").is_not_null())
    if local.is_empty():
        return frame
    pieces = [frame.filter(~(pl.col("local_time").fill_null(value=False) & pl.col("time").is_not_null()))]
    for (source,), group in local.group_by("source", maintain_order=True):
        assert isinstance(source, int)
        rows = group
        if "clock_only" in group.columns and group["clock_only"].fill_null(value=False).any():
            rows = _give_day(group, reference)
        elif "no_year" in group.columns and group["no_year"].fill_null(value=False).any():
            rows = _give_year(group, reference)
        shift, how = _shift(rows["time"], reference, run.options.tz_minutes)
        pieces.append(rows.with_columns(time=pl.col("time") - pl.duration(minutes=shift)))
        offset = f"UTC{'+' if shift >= 0 else '-'}{abs(shift) // 60:02d}:{abs(shift) % 60:02d}"
        notes[source] = f"a clock without a zone, taken as {offset} ({how})"
        uncertainty[source] = 1.0
    return pl.concat(pieces).sort("source", "line", maintain_order=True)


def _give_day(group: pl.DataFrame, reference: tuple[dt.datetime, dt.datetime] | None) -> pl.DataFrame:
    """Times of day become dates: the log's day, one more at each midnight that the clock passes."""
    group = group.sort("line")
    wraps = (pl.col("time").diff() < pl.duration(hours=-1)).fill_null(value=False).cum_sum()
    rows = group.with_columns(time=pl.col("time") + pl.duration(days=wraps))
    if reference is None:
        return rows
    days = (reference[0].date() - group["time"][0].date()).days
    # A sampler may have started on the day before, and a clock east or west of UTC may show the one before or after:
    # the day on which it overlaps the log as it is, else in some zone.
    candidates = [rows.with_columns(time=pl.col("time") + pl.duration(days=days + more)) for more in (0, -1, 1)]

    def agreement(rows: pl.DataFrame) -> tuple[bool, float, float]:
        as_it_is = _overlap(rows["time"], reference, 0)
        best = as_it_is if as_it_is >= 0.5 else max(_overlap(rows["time"], reference, shift) for shift in _SHIFTS)
        return as_it_is >= 0.5, round(best, 3), as_it_is

    return max(candidates, key=agreement)


def _give_year(group: pl.DataFrame, reference: tuple[dt.datetime, dt.datetime] | None) -> pl.DataFrame:
    """Syslog stamps have no year: one more after each New Year that the file passes, the first so that a line is nearest to the log's end."""
    group = group.sort("line")
    passed = (pl.col("time").diff() < pl.duration(days=-180)).fill_null(value=False).cum_sum()
    if reference is None:
        return group.with_columns(time=_years_later(passed))
    first = reference[1].year - group["time"][0].year
    candidates = [group.with_columns(time=_years_later(passed + first - back)) for back in range(-1, 3)]
    return min(candidates, key=lambda rows: _distance(rows["time"], reference[1]))


def _years_later(years: pl.Expr) -> pl.Expr:
    """The same day of another year; Feb 29 becomes Feb 28 where there is none."""
    return pl.col("time").dt.offset_by(pl.format("{}y", years))


def _distance(times: pl.Series, moment: dt.datetime) -> float:
    """Seconds between a moment and the nearest of the times."""
    nearest = (times - moment).abs().min()
    return nearest.total_seconds() if isinstance(nearest, dt.timedelta) else float("inf")


def _shift(times: pl.Series, reference: tuple[dt.datetime, dt.datetime] | None, stated: int | None) -> tuple[int, str]:
    """Minutes east of UTC of a zoneless clock, and why."""
    if stated is not None:
        return stated, "as stated with --tz"
    if reference is None:
        return 0, "no dated log to compare with"
    if _overlap(times, reference, 0) >= 0.5:
        return 0, "it overlaps the log as it is"
    best = max(_SHIFTS, key=lambda shift: round(_overlap(times, reference, shift), 3))
    if _overlap(times, reference, best) > max(0.0, _overlap(times, reference, 0)):
        return best, "the offset at which it overlaps the log"
    return 0, "no offset makes it overlap the log"


def _overlap(times: pl.Series, reference: tuple[dt.datetime, dt.datetime], shift: int) -> float:
    """Share of the times that fall inside the log's span (a minute of grace), after the shift."""
    grace = dt.timedelta(minutes=1)
    low = reference[0] - grace + dt.timedelta(minutes=shift)
    high = reference[1] + grace + dt.timedelta(minutes=shift)
    return float(times.is_between(low, high).sum()) / max(1, len(times))


def _place_uptimes(
    kills: pl.DataFrame,
    marks: pl.DataFrame,
    reference: tuple[dt.datetime, dt.datetime] | None,
    notes: dict[int, str],
    warnings: list[str],
    run: Run,
) -> pl.DataFrame:
    """Kernel seconds since boot need the boot's time; without it they stay unplaced."""
    unplaced = kills.filter(pl.col("time").is_null() & pl.col("uptime_s").is_not_null())
    if unplaced.is_empty():
        return kills
    boots = marks.filter((pl.col("what") == "boot_time") & pl.col("time").is_not_null())["time"]
    if len(boots):
        boot = boots[0]
        for source in unplaced["source"].unique():
            notes[source] = f"seconds since boot, placed with the boot time {boot:%Y-%m-%d %H:%M:%S}Z (± 1 s)"
        placed = boot + pl.duration(microseconds=(pl.col("uptime_s") * 1e6).cast(pl.Int64))
        return kills.with_columns(time=pl.coalesce("time", placed))
    for source in unplaced["source"].unique():
        notes[source] = "seconds since boot; no boot time is known, so its place on the axis is not"
        if reference is not None:
            warnings.append(
                f"{run.sources[source].path}: kernel lines carry only seconds since boot; save `date -u; cat /proc/uptime` "
                "beside them to place them"
            )
    return kills


def _place_daemon_uptimes(run: Run, name: str) -> pl.DataFrame | LongTable:
    """Status snapshots: seconds since the daemon's start. A falling uptime belongs to the next start."""
    table = run.tables.get(name, empty(name))
    if (isinstance(table, LongTable) and table.dated) or run.first(name, pl.col("uptime_s").is_not_null()) is None:
        return table
    started = (pl.col("op") == "start") & pl.col("time").is_not_null()
    starts = run.pick("work", started, ["time", "op"])["time"].sort()
    if starts.is_empty():
        return table
    rows = run.table(name).sort("source", "line")
    falls = (pl.col("uptime_s") < pl.col("uptime_s").forward_fill().shift(1)).fill_null(value=False).cast(pl.Int64)
    number = falls.cum_sum().over("source")
    numbered = pl.DataFrame({"number": range(len(starts)), "start": starts}, schema_overrides={"number": pl.Int64})
    return (
        rows.with_columns(number=number.clip(0, len(starts) - 1))
        .join(numbered, on="number", how="left", maintain_order="left")
        .with_columns(
            time=pl.coalesce(
                "time", pl.col("start") + pl.duration(microseconds=(pl.col("uptime_s") * 1e6).cast(pl.Int64))
            )
        )
        .drop("number", "start")
    )


def _place_by_neighbour(frame: pl.DataFrame, lines_time: pl.DataFrame) -> pl.DataFrame:
    """Lines without any clock: the time of the last dated line before them, else of the next one."""
    if frame["time"].null_count() == 0 or lines_time.is_empty():
        return frame
    dated = lines_time.drop_nulls("time").rename({"time": "near"}).sort("line")
    rows = frame.sort("line")
    before = rows.join_asof(dated, on="line", by="source", check_sortedness=False)
    after = rows.join_asof(dated, on="line", by="source", strategy="forward", check_sortedness=False)
    return (
        before.with_columns(time=pl.coalesce("time", "near", after["near"]))
        .drop("near")
        .sort("source", "line", maintain_order=True)
    )
