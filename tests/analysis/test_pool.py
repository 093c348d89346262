"""The pool's replay against the simplest model of a pool: a list of buffers, each idle or in use."""

import dataclasses
from collections import Counter
from unittest import mock

from analysis.making import table
from hypothesis import given
from hypothesis import strategies as st

from postmortem.analysis import pool
from postmortem.analysis.pool import replay

SMALL, MIDDLE, LARGE = 300 << 20, 2_588_000_000, 4_168_000_000


@dataclasses.dataclass
class Buffer:
    size: int
    idle: bool


class SimplePool:
    """Does what the daemon does, and writes the line that the daemon would write."""

    def __init__(self):
        self.buffers: list[Buffer] = []
        self.ever = 0
        self.rows: list[dict] = []
        self.states: list[tuple] = []

    def take(self, size):
        fitting = [b for b in self.buffers if b.idle and b.size >= size]
        if fitting:
            taken = min(fitting, key=lambda b: b.size)
            taken.idle = False
            idle = sum(b.idle for b in self.buffers)
            self.write(op="checkout", size=taken.size, free_remaining=idle)
            return
        self.buffers.append(Buffer(size, idle=False))
        self.ever += 1
        total = sum(b.size for b in self.buffers)
        self.write(op="alloc", size=size, buffers=self.ever, total=total)

    def give(self, which):
        used = [b for b in self.buffers if not b.idle]
        if used:
            buffer = used[which % len(used)]
            buffer.idle = True
            self.write(op="checkin", size=buffer.size)

    def evict(self, which):
        idle = [b for b in self.buffers if b.idle]
        if idle:
            buffer = idle[which % len(idle)]
            self.buffers = [b for b in self.buffers if b is not buffer]
            self.write(op="free", size=buffer.size)

    def write(self, **row):
        self.rows.append({"time": len(self.rows) * 0.25, **row})
        self.states.append(self.state())

    def state(self):
        used = sum(b.size for b in self.buffers if not b.idle)
        idle = sum(b.idle for b in self.buffers)
        return sum(b.size for b in self.buffers), used, len(self.buffers), len(self.buffers) - idle, idle

    def count(self, *, idle):
        return Counter(b.size for b in self.buffers if b.idle == idle)


def orders(*sizes):
    which = st.integers(0, 30)
    takes = st.tuples(st.just("take"), st.sampled_from(sizes))
    return st.lists(st.one_of(takes, takes, *(st.tuples(st.just(op), which) for op in ("give", "evict"))), max_size=80)


def played(commands):
    pool = SimplePool()
    for name, argument in commands:
        getattr(pool, name)(argument)
    return pool


def states_of(found):
    return found.steps.select("total", "in_use", "alive", "used_buffers", "free").rows()


@given(orders(SMALL, MIDDLE, LARGE))
def test_any_sequence_of_operations_replays_to_the_state_of_the_simple_model_at_every_line(commands):
    pool = played(commands)
    found = replay([table("pool", pool.rows)])
    assert states_of(found) == pool.states
    assert (+found.idle, +found.in_use) == (pool.count(idle=True), pool.count(idle=False))
    assert found.ever == pool.ever
    assert found.peak == max((total for total, *_ in pool.states), default=0)
    assert found.warnings == []


@given(orders(LARGE), st.integers(0, 60))
def test_a_log_that_begins_in_the_middle_is_exact_once_it_has_stated_its_idle_buffers_and_its_total(commands, lost):
    pool = played(commands)
    rows, states = pool.rows[lost:], pool.states[lost:]
    found = states_of(replay([table("pool", rows)]))
    stated_free = stated_total = False
    for row, mine, true in zip(rows, found, states, strict=True):
        stated_free = stated_free or row["op"] == "checkout"
        stated_total = stated_total or row["op"] == "alloc"
        if stated_free:
            assert mine[4] == true[4]
        if stated_free and stated_total:
            assert mine == true


@given(orders(SMALL, MIDDLE, LARGE), st.integers(0, 60))
def test_whatever_came_before_every_line_that_states_idle_buffers_or_a_total_is_believed(commands, lost):
    pool = played(commands)
    rows = pool.rows[lost:]
    found = replay([table("pool", rows)])
    for row, (total, _, _, _, free) in zip(rows, states_of(found), strict=True):
        if row["op"] == "checkout":
            assert free == row["free_remaining"]
        if row["op"] == "alloc":
            assert abs(total - row["total"]) < LARGE


@given(orders(LARGE), st.data())
def test_one_lost_checkin_or_checkout_is_put_right_by_the_next_stated_figures(commands, data):
    pool = played(commands)
    lost = [n for n, row in enumerate(pool.rows) if row["op"] in ("checkin", "checkout")]
    if not lost:
        return
    gone = data.draw(st.sampled_from(lost))
    rows, states = ([*part[:gone], *part[gone + 1 :]] for part in (pool.rows, pool.states))
    later = [n for n in range(gone, len(rows)) if rows[n]["op"] == "checkout"]
    if later:
        assert states_of(replay([table("pool", rows)]))[later[0] :] == states[later[0] :]


def test_a_disagreement_is_a_warning_with_both_figures_and_the_log_is_believed():
    rows = [
        {"op": "alloc", "size": LARGE, "total": LARGE, "buffers": 1},
        {"op": "checkin", "size": LARGE},
        {"op": "checkout", "size": LARGE, "free_remaining": 2},
    ]
    found = replay([table("pool", rows)])
    assert found.idle.total() == 2
    assert len(found.warnings) == 1
    assert "free_remaining=2" in found.warnings[0]
    assert "0 idle" in found.warnings[0]


def test_warnings_are_few_however_often_the_log_disagrees():
    rows = [{"op": "checkout", "size": LARGE, "free_remaining": n} for n in range(1000, 0, -7)]
    found = replay([table("pool", rows)])
    assert found.disagreements == len(rows)
    assert len(found.warnings) < 10


def test_failed_allocations_and_checkouts_move_nothing():
    rows = [
        {"op": "alloc", "size": LARGE, "total": LARGE, "buffers": 1},
        {"op": "alloc_failed", "size": LARGE},
        {"op": "checkout_failed", "total": LARGE, "free_remaining": 0},
    ]
    found = replay([table("pool", rows)])
    assert (found.total, found.in_use.total(), found.failed) == (LARGE, 1, 1)


def test_an_empty_pool_is_empty():
    found = replay([table("pool", [])])
    assert (found.total, found.alive, found.peak, found.last) == (0, 0, 0, None)


figures = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1))
operations = st.sampled_from(["alloc", "checkout", "checkin", "free", "alloc_failed", "checkout_failed", "nonsense"])


@given(
    st.lists(
        st.fixed_dictionaries(
            {"op": operations, "size": figures, "free_remaining": figures, "total": figures, "buffers": figures}
        ),
        max_size=12,
    )
)
def test_figures_that_cannot_be_neither_raise_nor_hang(rows):
    found = replay([table("pool", rows)])
    assert found.total >= found.in_use_bytes >= 0


OPS = ("alloc", "checkout", "checkin", "free", "alloc_failed", "checkout_failed", "other", None)
HOSTILE_ROWS = st.fixed_dictionaries(
    {
        "op": st.sampled_from(OPS),
        "size": st.sampled_from([None, 0, -5, SMALL, MIDDLE, LARGE, LARGE, LARGE, 1 << 60]),
        "free_remaining": st.one_of(st.none(), st.none(), st.integers(-1, 6)),
        "total": st.one_of(st.none(), st.none(), st.none(), st.integers(0, 5).map(lambda n: n * LARGE + 7)),
        "buffers": st.one_of(st.none(), st.integers(0, 4)),
    }
)


def line_by_line(rows):
    with mock.patch.object(pool, "MOST_SIZES", 0):
        return replay([rows])


def told(found):
    return (
        found.steps.to_dicts(),
        +found.idle,
        +found.in_use,
        (found.ever, found.failed, found.warnings, found.disagreements, found.last, found.last_free, found.sized),
    )


@given(st.lists(HOSTILE_ROWS, max_size=120), st.integers(1, 20))
def test_replaying_in_stretches_gives_what_replaying_line_by_line_gives(rows, repeat):
    frame = table("pool", [{"time": n * 0.25, **row} for n, row in enumerate(rows * repeat)])
    assert told(replay([frame])) == told(line_by_line(frame))


@given(st.lists(st.tuples(st.sampled_from("tgte"), st.integers(0, 3)), min_size=100, max_size=400), st.integers(0, 399))
def test_a_healthy_log_from_its_middle_on_is_replayed_in_stretches_as_line_by_line(moves, first):
    simple = SimplePool()
    for move, which in moves:
        if move == "t":
            simple.take((SMALL, MIDDLE, LARGE, LARGE)[which])
        elif move == "g":
            simple.give(which)
        else:
            simple.evict(which)
    frame = table("pool", simple.rows[first:])
    assert told(replay([frame])) == told(line_by_line(frame))


def test_which_buffers_a_correction_takes_does_not_depend_on_how_the_lines_before_were_replayed():
    # Sizes come into the replay in another order than that of size; then the log states that more are idle.
    rows = [{"op": "alloc", "size": size} for size in (LARGE, MIDDLE, SMALL, LARGE) * 20]
    rows += [{"op": "checkin", "size": LARGE, "total": 20 * (2 * LARGE + MIDDLE + SMALL), "free_remaining": 1}]
    rows += [{"op": "checkout", "size": LARGE, "free_remaining": 60}]
    frame = table("pool", [{"time": n * 0.25, **row} for n, row in enumerate(rows)])
    assert told(replay([frame])) == told(line_by_line(frame))
