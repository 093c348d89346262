"""The identity of arithmetic.md, section 2, on random runs: what the parts have more than was set aside for them is the slack.

The runs are made here from scratch; what they are made of is not compared (other tests do that), only that the table
adds up, as a reader with a pocket calculator would find it.
"""

import datetime as dt

import msgspec
import pytest
from analysis.making import at, lines_time, result_of, run, table
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from postmortem.analysis import analyse
from postmortem.result import Quantity
from postmortem.units import GIB

BUFFER = 4_168_921_808
ROUNDING = 64  # bytes: every figure is rounded by itself

fast = settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)

partitions = st.lists(
    st.tuples(st.integers(40, 160), st.integers(5, 60), st.integers(1, 40), st.booleans()), min_size=0, max_size=10
)


def worlds(*, limit, budget):
    """Runs with this limit and budget in GiB, and any work, evidence and ending."""
    return st.fixed_dictionaries(
        {
            "limit": limit,
            "budget": budget,
            "partitions": partitions,
            "tables": st.booleans(),
            "samples": st.sampled_from(["none", "current", "counters"]),
            "evidence": st.sampled_from(["report", "exit", "silence", "finished", "host"]),
            "end": st.integers(60, 220),
            "heap": st.floats(0.05, 1.0),
            "overhead": st.integers(0, 80),
        }
    )


# Tables (70 GiB) and ten partitions fit into the budget, and they and their buffers below the limit.
possible = worlds(limit=st.integers(350, 450), budget=st.integers(212, 460))
contradictory = worlds(limit=st.integers(20, 200), budget=st.integers(1, 200))


def work_and_pool(made):
    """Rows of `work` and `pool`: each partition's stages, three buffers each for the pinned ones, until the end."""
    events, jobs = [], []
    for number, (start, synthesis, gpu, pinned) in enumerate(made["partitions"]):
        stages = {"synth_start": start, "synth_end": start + synthesis, "gpu_end": start + synthesis + gpu}
        mode = "synth_pinned" if pinned else "synth_unpinned"
        jobs += [{"op": op, "time": s, "job": "j", "partition": number, "circuit": "porep"} for op, s in stages.items()]
        jobs.append({"op": mode, "time": start + 0.01, "job": "j", "partition": number})
        back = start + synthesis + gpu * 0.9
        jobs.append({"op": "prove_start_returned", "time": back, "job": "j", "partition": number})
        if pinned:
            events += [(start + 0.02, "take")] * 3 + [(back, "give")] * 3
    rows, alive, idle = [], 0, 0
    for time, what in sorted(events):
        if what == "give":
            idle += 1
            rows.append({"op": "checkin", "time": time, "size": BUFFER})
        elif idle:
            idle -= 1
            rows.append({"op": "checkout", "time": time, "size": BUFFER, "free_remaining": idle})
        else:
            alive += 1
            rows.append({"op": "alloc", "time": time, "size": BUFFER, "total": alive * BUFFER, "buffers": alive})
    keep = [row for row in jobs if row["time"] <= made["end"]]
    return sorted(keep, key=lambda row: row["time"]), [row for row in rows if row["time"] <= made["end"]]


def samples(made):
    limit, rows = made["limit"] * GIB, []
    for second in range(0, made["end"], 2):
        busy = sum(start <= second < start + synthesis + gpu for start, synthesis, gpu, _ in made["partitions"])
        used = (made["overhead"] + 70 * made["tables"]) * GIB + round(busy * 12.7 * GIB * (1 + made["heap"]))
        used += sum(3 * BUFFER for start, _, _, pinned in made["partitions"] if pinned and start <= second)
        figures = {"current": min(used, limit), "limit": limit}
        if made["samples"] == "counters":
            shmem = min(used, limit) // 3
            figures |= {"file": shmem + GIB, "shmem": shmem, "anon": min(used, limit) // 2}
        rows += [{"time": second, "metric": m, "value": v, "scope": "cgroup"} for m, v in figures.items()]
    return [] if made["samples"] == "none" else rows


def built(made):
    limit, end = made["limit"] * GIB, made["end"]
    work, pool = work_and_pool(made)
    budget = {"op": "init", "time": 0, "total": made["budget"] * GIB, "total_ulp": GIB}
    loads = [
        {"op": "load_start", "kind": "srs", "circuit": "porep", "size": 44 * GIB, "size_ulp": GIB, "time": 2},
        {"op": "load_end", "kind": "srs", "circuit": "porep", "time": 30},
        {"op": "load_end", "kind": "pce", "circuit": "porep", "size": 26 * GIB, "size_ulp": GIB, "time": 35},
    ]
    kill = {
        "time": end,
        "victim": "cuzk-daemon",
        "pid": 7,
        "killer": "kernel",
        "limit": limit,
        "usage": limit,
        "report": 1,
    }
    how = made["evidence"]
    ends = {"exit": {"what": "exit_code", "code": 137, "by": "shell"}, "finished": {"what": "stopped", "by": "daemon"}}
    tables = {
        "work": table("work", work),
        "pool": table("pool", pool),
        "budget": table("budget", [budget]),
        "resident": table("resident", loads if made["tables"] else []),
        "samples": table("samples", samples(made), source=1),
        "kills": table("kills", [kill | {"constraint": "memcg" if how == "report" else "global"}], source=2)
        if how in ("report", "host")
        else table("kills", []),
        "ends": table("ends", [{"time": end, **ends[how]}] if how in ends else [], source=3),
    }
    return run(tables, lines_time(*range(0, end + 1, 10), end), limit=limit)


def quantities(value):
    """Every quantity of a result, wherever it stands."""
    if isinstance(value, Quantity):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from quantities(getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from quantities(item)
    elif isinstance(value, dict):
        yield from quantities(list(value.values()))


def best_sum(parts, field):
    return sum(getattr(part, field).best for part in parts)


def check_rows(table_of):
    """What any table must do, also one of evidence that contradicts itself: rows and columns add up by hand."""
    for part in table_of.parts:
        assert part.excess.best == pytest.approx(part.actual.best - part.provision.best, abs=ROUNDING)
    assert table_of.excess_sum.best == pytest.approx(best_sum(table_of.parts, "excess"), abs=ROUNDING)
    assert table_of.margin.best == table_of.limit.best - table_of.budget.best
    assert table_of.slack.best == table_of.budget.best - table_of.reserved.best
    if table_of.discrepancy is not None:
        stated = table_of.excess_sum.best - table_of.slack.best
        assert table_of.discrepancy.best == pytest.approx(stated, abs=ROUNDING)


@given(possible)
@fast
def test_the_excesses_are_the_slack_and_the_parts_are_what_could_not_be_given_back(made):
    result = result_of(built(made))
    table_of = result.arithmetic
    assert all(q.low <= q.best <= q.high for q in quantities(result))
    if not table_of.parts:
        return
    check_rows(table_of)
    provided = best_sum(table_of.parts, "provision") + table_of.slack.best
    assert provided == pytest.approx(table_of.limit.best, abs=ROUNDING)
    held = best_sum(table_of.parts, "actual")
    if table_of.discrepancy is None:
        assert result.ending.how not in ("cgroup_limit", "cgroup_limit_probable")
        assert held == pytest.approx(table_of.unreclaimable.best, abs=ROUNDING)
    else:
        assert held - table_of.limit.best == pytest.approx(table_of.discrepancy.best, abs=ROUNDING)
        assert abs(table_of.discrepancy.best) <= abs(table_of.unreclaimable.best - table_of.limit.best) + ROUNDING


@given(contradictory)
@fast
def test_evidence_that_contradicts_itself_still_gives_a_table_that_adds_up_and_says_by_how_much_it_does_not(made):
    result = result_of(built(made))
    assert all(q.low <= q.best <= q.high for q in quantities(result))
    if result.arithmetic.parts:
        check_rows(result.arithmetic)


@given(possible)
@fast
def test_the_timelines_stacked_parts_are_what_could_not_be_given_back(made):
    _, timeline = analyse(built(made), lambda _wanted, _around: {}, "0")
    assert timeline["time"].is_sorted()
    stacked = ("resident", "working_set", "pinned_uncovered_in_use", "pool_idle", "transient", "overhead", "neighbour")
    for row in timeline.iter_rows(named=True):
        assert all(row[name] is None or row[name] >= 0 for name in stacked)
        assert row["pool_in_use"] <= row["pool_total"]
        known = sum(row[name] or 0 for name in stacked)
        if row["unreclaimable"] is not None and row["overhead"]:
            assert known == pytest.approx(row["unreclaimable"], abs=ROUNDING)


def test_the_runs_above_reach_every_kind_of_ending_that_they_should():
    made = {"limit": 400, "budget": 380, "partitions": [(40, 30, 20, True)] * 4, "tables": True, "samples": "counters"}
    made |= {"end": 120, "heap": 0.8, "overhead": 5}
    expected = {"report": "cgroup_limit", "host": "host_oom", "finished": "finished", "exit": "sigkill_unexplained"}
    for evidence, how in expected.items():
        result = result_of(built(made | {"evidence": evidence}))
        assert result.ending.how == how
        assert result.arithmetic.at <= at(120) + dt.timedelta(seconds=1)
