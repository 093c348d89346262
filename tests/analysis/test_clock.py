"""Every clock that a run's evidence can have, on one UTC axis: the truth is known, the table holds what was printed."""

import datetime as dt

import polars as pl
import pytest
from analysis.making import lines_time, run, table
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.analysis.clock import place

UTC = dt.UTC
SAMPLES, KERNEL = 1, 2  # which source a table comes from
# What a parser gives for a clock without a day, and for a date without a year.
NO_DAY = dt.date(2000, 1, 1)


def utc(*parts):
    return dt.datetime(*parts, tzinfo=UTC)


def log(start, minutes):
    """The daemon's log: one dated line a minute."""
    return lines_time(*(start + dt.timedelta(minutes=n) for n in range(minutes + 1)))


def clock_samples(times, east_minutes=0):
    """Samples that print only the time of day, by a clock that many minutes east of UTC."""
    local = [time + dt.timedelta(minutes=east_minutes) for time in times]
    rows = [
        {"time": dt.datetime.combine(NO_DAY, t.timetz()), "metric": "current", "value": 1, "scope": "cgroup"}
        | {"local_time": True, "clock_only": True}
        for t in local
    ]
    return table("samples", rows, source=SAMPLES)


def local_kills(times, east_minutes=0, *, year=True):
    local = [time + dt.timedelta(minutes=east_minutes) for time in times]
    stamps = local if year else [t.replace(year=2000) for t in local]
    return table("kills", [{"time": t, "local_time": True, "no_year": not year} for t in stamps], source=KERNEL)


def placed_times(name, dated, frame, **options):
    return place(run({name: frame}, dated, **options)).run.table(name)["time"].to_list()


minutes_of_a_year = st.integers(0, 366 * 24 * 60 - 1)
quarters = st.integers(-4 * 12, 4 * 14).map(lambda n: 15 * n)


@given(minutes_of_a_year, st.integers(10, 50), st.sampled_from([0, 60, 330, -480, 765]))
@settings(max_examples=60, deadline=None)
def test_a_clock_without_day_gets_the_logs_day_in_any_zone_and_across_midnight(minute, length, east):
    start = utc(2026, 1, 1) + dt.timedelta(minutes=minute)
    times = [start + dt.timedelta(minutes=length * n / 20) for n in range(21)]
    assert placed_times("samples", log(start, length), clock_samples(times, east)) == times


@given(minutes_of_a_year, st.integers(30, 50), quarters.filter(lambda east: abs(east) >= 60))
@settings(max_examples=60, deadline=None)
def test_a_dated_clock_without_zone_is_shifted_to_where_it_overlaps_the_log(minute, length, east):
    # A zone between two whole hours is taken only where no whole hour fits as well: the overlap must tell them apart.
    start = utc(2026, 1, 1) + dt.timedelta(minutes=minute)
    times = [start + dt.timedelta(minutes=length * n / 20) for n in range(21)]
    local = [t + dt.timedelta(minutes=east) for t in times]
    rows = [{"time": t, "metric": "current", "value": 1, "scope": "cgroup", "local_time": True} for t in local]
    assert placed_times("samples", log(start, length), table("samples", rows, source=SAMPLES)) == times


def test_a_clock_that_runs_over_several_midnights_counts_the_days():
    start = utc(2026, 3, 1, 22, 0)
    times = [start + dt.timedelta(hours=n) for n in range(60)]
    assert placed_times("samples", log(start, 60 * 60), clock_samples(times)) == times


def test_a_sampler_that_was_started_before_midnight_of_a_log_that_starts_after_it():
    start = utc(2026, 3, 2, 0, 5)
    times = [start + dt.timedelta(minutes=n) for n in range(-10, 60)]
    assert placed_times("samples", log(start, 60), clock_samples(times)) == times


@pytest.mark.parametrize("east", [0, 60, -300])
def test_syslog_stamps_without_a_year_across_new_year(east):
    times = [utc(2025, 12, 31, 23, 50), utc(2025, 12, 31, 23, 59, 59), utc(2026, 1, 1, 0, 0, 1), utc(2026, 1, 1, 0, 20)]
    dated = log(utc(2025, 12, 31, 23, 45), 40)
    assert placed_times("kills", dated, local_kills(times, east, year=False)) == times


def test_a_year_old_syslog_line_before_this_runs_is_not_taken_for_a_later_one():
    times = [utc(2025, 11, 3, 4, 0), utc(2026, 1, 12, 9, 30)]
    assert placed_times("kills", log(utc(2026, 1, 12, 9, 0), 30), local_kills(times, year=False)) == times


def test_the_leap_day_without_a_year():
    times = [utc(2028, 2, 29, 9, 30)]
    assert placed_times("kills", log(utc(2028, 2, 29, 9, 0), 30), local_kills(times, year=False)) == times


def test_a_leap_day_beside_a_log_of_another_year_does_not_raise():
    placed = placed_times("kills", log(utc(2026, 3, 1, 9, 0), 30), local_kills([utc(2028, 2, 29, 9, 30)], year=False))
    assert len(placed) == 1


def test_a_stated_zone_is_believed_whatever_overlaps():
    times = [utc(2026, 3, 19, 2, n) for n in range(10)]
    frame = clock_samples(times)
    found = placed_times("samples", log(utc(2026, 3, 19, 2, 0), 10), frame, tz_minutes=120)
    assert found == [t - dt.timedelta(hours=2) for t in times]


def test_without_any_dated_log_a_clock_keeps_its_order_and_says_that_it_could_not_be_placed():
    times = [utc(2026, 3, 19, 23, 59), utc(2026, 3, 20, 0, 1)]
    placed = place(run({"samples": clock_samples(times)}))
    found = placed.run.table("samples")["time"].to_list()
    assert found[1] - found[0] == dt.timedelta(minutes=2)
    assert "no dated log" in placed.notes[SAMPLES]


def test_seconds_since_boot_are_placed_by_the_boot_time():
    kills = table("kills", [{"uptime_s": 7200.25}, {"uptime_s": 7201.0}], source=KERNEL)
    marks = table("marks", [{"what": "boot_time", "time": utc(2026, 3, 19, 0, 15)}], source=3)
    placed = place(run({"kills": kills, "marks": marks}, log(utc(2026, 3, 19, 2, 0), 30)))
    assert placed.run.table("kills")["time"].to_list() == [
        utc(2026, 3, 19, 2, 15, 0, 250_000),
        utc(2026, 3, 19, 2, 15, 1),
    ]
    assert placed.warnings == []
    assert "boot time" in placed.notes[KERNEL]


def test_seconds_since_boot_without_a_boot_time_stay_off_the_axis_and_it_is_said_how_to_place_them():
    kills = table("kills", [{"uptime_s": 7200.25}], source=KERNEL)
    placed = place(run({"kills": kills}, log(utc(2026, 3, 19, 2, 0), 30)))
    assert placed.run.table("kills")["time"].to_list() == [None]
    assert any("dmesg.txt" in warning and "uptime" in warning for warning in placed.warnings)


def test_offsets_count_from_the_engines_start_line_before_them():
    first, second = utc(2026, 3, 19, 2, 0), utc(2026, 3, 19, 3, 0)
    work = table(
        "work",
        [
            {"op": "engine_start", "time": first},
            {"op": "synth_start", "offset_ms": 1500},
            {"op": "engine_start", "time": second},
            {"op": "synth_start", "offset_ms": 250},
        ],
    )
    found = place(run({"work": work}, log(first, 90))).run.table("work")["time"].to_list()
    assert found[1] == first + dt.timedelta(milliseconds=1500)
    assert found[3] == second + dt.timedelta(milliseconds=250)


def test_offsets_without_a_start_line_are_aligned_with_the_dated_lines_beside_them():
    start = utc(2026, 3, 19, 2, 0)
    offsets = [1000 * n for n in range(5, 60, 5)]
    dated = lines_time(*(start + dt.timedelta(milliseconds=ms + 1) for ms in offsets))
    rows = [{"op": "synth_start", "offset_ms": ms, "line": n} for n, ms in enumerate(offsets, 1)]
    found = place(run({"work": table("work", rows)}, dated)).run.table("work")["time"].to_list()
    for ms, time in zip(offsets, found, strict=True):
        assert abs(time - (start + dt.timedelta(milliseconds=ms))) <= dt.timedelta(milliseconds=2)


def test_snapshots_count_from_the_daemons_start_and_a_falling_uptime_from_the_next_one():
    starts = [utc(2026, 3, 19, 2, 0), utc(2026, 3, 19, 3, 0)]
    work = table("work", [{"op": "start", "time": time} for time in starts])
    budget = table("budget", [{"op": "checkpoint", "uptime_s": s, "used": 1} for s in (10.0, 500.5, 3.0)], source=3)
    found = place(run({"work": work, "budget": budget}, log(starts[0], 90))).run.table("budget")["time"].to_list()
    assert found == [
        starts[0] + dt.timedelta(seconds=10),
        starts[0] + dt.timedelta(seconds=500.5),
        starts[1] + dt.timedelta(seconds=3),
    ]


def test_a_line_without_any_clock_takes_the_time_of_the_dated_line_before_it_else_of_the_next():
    dated = pl.DataFrame(
        {"source": [0, 0], "line": [5, 9], "time": [utc(2026, 3, 19, 2, 0), utc(2026, 3, 19, 2, 1)]},
        schema={"source": pl.Int32, "line": pl.Int64, "time": pl.Datetime("us", "UTC")},
    )
    ends = table("ends", [{"what": "client_error", "line": n} for n in (2, 7, 30)])
    found = place(run({"ends": ends}, dated)).run.table("ends")["time"].to_list()
    assert found == [utc(2026, 3, 19, 2, 0), utc(2026, 3, 19, 2, 0), utc(2026, 3, 19, 2, 1)]


def test_times_with_a_zone_are_left_as_they_are():
    times = [utc(2026, 3, 19, 2, n) for n in range(3)]
    rows = [{"time": t, "metric": "current", "value": 1, "scope": "cgroup"} for t in times]
    dated = log(utc(2026, 3, 20, 2, 0), 10)
    assert placed_times("samples", dated, table("samples", rows, source=SAMPLES)) == times
