"""The budget's replay against an independent simulator of reservations, seen only through rounded check-points."""

import math

import polars as pl
import pytest
from analysis.making import MODEL, at, table
from hypothesis import given
from hypothesis import strategies as st

from postmortem.analysis.ledger import replay
from postmortem.analysis.lives import LIFE
from postmortem.analysis.resident import tables
from postmortem.units import GIB

BUDGET = 400 * GIB
TICK = 0.1
FULL, ABC = 14 * GIB, 13 * GIB


def partition_life(start, returned, end):
    """One partition as `lives` gives it: times in seconds, None where the log does not say."""
    moments = {"synth_start": start, "prove_returned": returned, "gpu_end": end}
    times = {name: None if s is None else at(s) for name, s in moments.items()}
    return {"job": "j", "partition": 0, "circuit": "porep", "full": FULL, "abc": ABC, **times}


def lives_of(rows):
    return pl.DataFrame([{name: row.get(name) for name in LIFE} for row in rows], schema=LIFE)


def checkpoint(seconds, used, style):
    """A line that states the ledger in whole GiB, rounded down, as the daemon does."""
    free = BUDGET - used
    if style == "used":
        figures = {"used": used // GIB * GIB, "used_ulp": GIB}
    else:
        figures = {"available": free // GIB * GIB, "available_ulp": GIB, "total": BUDGET, "total_ulp": GIB}
    return {"op": "checkpoint", "time": seconds, **figures}


class Simulator:
    """Reservations as plain sums: what the daemon does, and what its rules cannot tell us (`hidden`)."""

    def __init__(self):
        self.changes: list[tuple[float, int]] = []

    def used(self, seconds):
        return sum(size for time, size in self.changes if time <= seconds)

    def reserve(self, seconds, size):
        self.changes.append((seconds, size))


ticks = st.integers(1, 600)
spans = st.lists(st.tuples(ticks, st.integers(1, 200), st.integers(1, 50)), max_size=12)
hidden = st.lists(st.tuples(ticks, st.integers(-6, 20)), max_size=6)
stated = st.lists(st.tuples(ticks, st.sampled_from(["used", "available"])), min_size=1, max_size=12)


def simulated(partitions, unseen, statements, *, between=TICK / 2):
    """(simulator, lives, budget table): check-points fall between the ticks at which reservations change."""
    simulator, rows = Simulator(), []
    for start, synthesis, gpu in partitions:
        begin, back, end = (TICK * n for n in (start, start + synthesis, start + synthesis + gpu))
        for moment, size in ((begin, FULL), (back, -ABC), (end, ABC - FULL)):
            simulator.reserve(moment, size)
        rows.append(partition_life(begin, back, end))
    for moment, gib in unseen:
        if simulator.used(math.inf) + gib * GIB >= 0:
            simulator.reserve(TICK * moment, gib * GIB)
    lines = []
    for moment, style in sorted(statements):
        seconds = TICK * moment + between
        used = simulator.used(seconds)
        if 0 <= used <= BUDGET:
            lines.append(checkpoint(seconds, used, style))
    return simulator, lives_of(rows), table("budget", lines)


@given(spans, hidden, stated)
def test_the_replay_at_every_check_point_lies_inside_what_the_line_states(partitions, unseen, statements):
    _, lives, budget = simulated(partitions, unseen, statements)
    ledger = replay([budget], lives, [], [], MODEL, BUDGET)
    for row in budget.iter_rows(named=True):
        used, _ = ledger.at(row["time"])
        if row["used"] is not None:
            assert row["used"] <= used < row["used"] + GIB
        else:
            assert BUDGET - row["available"] - GIB <= used <= BUDGET - row["available"] + GIB
    assert len(ledger.stated) == budget.height


@given(spans, stated)
def test_a_daemon_that_keeps_to_the_rules_is_replayed_exactly_at_every_moment(partitions, statements):
    simulator, lives, budget = simulated(partitions, [], statements)
    ledger = replay([budget], lives, [], [], MODEL, BUDGET)
    for tick in range(0, 900, 7):
        seconds = TICK * (tick + 0.25)
        true = simulator.used(seconds)
        if true <= BUDGET:
            assert ledger.at(at(seconds)) == (true, 0)
    assert ledger.corrections == 0


@given(spans, st.integers(-3, 40), stated)
def test_what_the_rules_do_not_know_stays_until_the_next_statement(partitions, ahead, statements):
    # A dispatcher that has acquired ahead of its workers before the first line, and never gives it back.
    simulator, lives, budget = simulated(partitions, [(0, ahead)], [(0, "used"), *statements])
    ledger = replay([budget], lives, [], [], MODEL, BUDGET)
    for tick in range(1, 900, 7):
        seconds = TICK * (tick + 0.25)
        if simulator.used(seconds) <= BUDGET:
            assert abs(ledger.at(at(seconds))[0] - simulator.used(seconds)) < 2 * GIB


@given(spans, st.lists(st.tuples(ticks, st.just("used")), min_size=1, max_size=8), st.sampled_from([-0.01, 0.0, 0.01]))
def test_a_line_beside_a_change_may_be_from_before_or_after_it_and_moves_nothing(partitions, statements, beside):
    # Lines of several threads: written within milliseconds of a change, out of order with it.
    simulator, lives, _ = simulated(partitions, [], [])
    lines = [checkpoint(TICK * n + beside, simulator.used(TICK * n + 0.05), "used") for n, _ in sorted(statements)]
    ledger = replay([table("budget", lines)], lives, [], [], MODEL, None)
    assert ledger.corrections == 0
    assert ledger.largest_correction == 0


def test_tables_are_the_permanent_part():
    loads = table(
        "resident",
        [
            {"op": "load_start", "kind": "srs", "circuit": "porep", "size": 44 * GIB, "size_ulp": GIB, "time": 1},
            {"op": "load_end", "kind": "srs", "circuit": "porep", "time": 20},
            {"op": "load_end", "kind": "pce", "circuit": "porep", "size": 26 * GIB, "size_ulp": GIB, "time": 30},
            {"op": "evict", "kind": "pce", "circuit": "porep", "time": 60},
        ],
    )
    one = lives_of([partition_life(40, None, None)])
    ledger = replay([table("budget", [])], one, tables(loads, MODEL), [], MODEL, BUDGET)
    assert ledger.at(at(0.5)) == (0, 0)
    assert ledger.at(at(10)) == (44 * GIB, 44 * GIB)
    assert ledger.at(at(35)) == (70 * GIB, 70 * GIB)
    assert ledger.at(at(50)) == (84 * GIB, 70 * GIB)
    assert ledger.at(at(70)) == (58 * GIB, 44 * GIB)


def test_a_partition_whose_end_is_not_logged_gives_back_only_what_the_log_shows():
    rows = [partition_life(0, 10, None), partition_life(0, None, None), partition_life(0, None, 10)]
    ledger = replay([table("budget", [])], lives_of(rows), [], [], MODEL, BUDGET)
    assert ledger.at(at(20))[0] == GIB + FULL


def test_what_is_reserved_is_never_below_zero_and_never_far_above_the_budget():
    rows = lives_of([partition_life(0, None, None) for _ in range(60)])
    ledger = replay([table("budget", [])], rows, [], [], MODEL, BUDGET)
    assert ledger.at(at(1))[0] <= BUDGET + GIB
    emptied = replay([table("budget", [checkpoint(-5, 0, "used")])], lives_of([]), [], [], MODEL, BUDGET)
    assert emptied.at(at(0)) == (0, 0)


@pytest.mark.parametrize(("age", "basis"), [(10, "derived"), (59, "derived"), (61, "modelled")])
def test_a_figure_is_derived_for_a_minute_after_a_statement_and_modelled_after_that(age, basis):
    ledger = replay([table("budget", [checkpoint(0, 50 * GIB, "used")])], lives_of([]), [], [], MODEL, BUDGET)
    assert ledger.basis_at(at(age)) == basis
    assert ledger.basis_at(at(-1)) == "modelled"
