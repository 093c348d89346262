import json
from collections import defaultdict

import msgspec
import polars as pl
import pytest
from reports.hostile import RAW, everywhere, texts

from postmortem.units import GIB
from postmortem_reports import perfetto
from reports import factory


@pytest.fixture(scope="module")
def trace():
    return json.loads(perfetto.render(factory.incident(), factory.incident_timeline()))


def events(trace, phase):
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def micros(time):
    return round(time.timestamp() * 1_000_000)


def test_every_event_has_what_the_trace_format_asks_for(trace):
    for event in trace["traceEvents"]:
        assert {"ph", "pid", "tid", "name"} <= set(event)
        assert event["ph"] == "M" or isinstance(event["ts"], int)
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X", "C", "i"}
    assert all(event["dur"] >= 0 for event in events(trace, "X"))


def test_memory_is_a_counter_a_part_in_gib_and_counts_stay_counts(trace):
    timeline = factory.incident_timeline()
    last = {event["name"]: event["args"]["value"] for event in events(trace, "C")}
    assert last["limit [GiB]"] == 342
    assert last["resident [GiB]"] == 70
    assert last["charged [GiB]"] == pytest.approx(timeline["charged"].drop_nulls()[-1] / GIB, abs=0.001)
    assert last["buffers alive"] == timeline["buffers_alive"].drop_nulls()[-1]


def test_a_counter_speaks_only_when_it_changes(trace):
    assert len([event for event in events(trace, "C") if event["name"] == "limit [GiB]"]) == 1
    by_name = defaultdict(list)
    for event in events(trace, "C"):
        by_name[event["name"]].append(event)
    for found in by_name.values():
        assert [event["ts"] for event in found] == sorted(event["ts"] for event in found)


def test_phases_and_attempts_are_spans_at_their_times(trace):
    result = factory.incident()
    spans = {event["name"]: event for event in events(trace, "X")}
    first = result.phases[0]
    assert spans[first.name]["ts"] == micros(first.start)
    assert spans[first.name]["dur"] == micros(first.end) - micros(first.start)
    assert "attempt 1" in spans


def test_the_ending_is_a_mark_at_its_time(trace):
    (mark,) = events(trace, "i")
    assert mark["name"] == "probably killed by the cgroup memory limit"
    assert mark["ts"] == micros(factory.KILLED)


def test_every_partition_is_there_and_spans_of_a_lane_nest(trace):
    spans = [event for event in events(trace, "X") if event["pid"] == 3]
    steps = {"queued", "synthesis", "waits for the GPU", "GPU"}
    assert len([event for event in spans if event["name"] not in steps]) == len(factory.incident().partitions)
    lanes = defaultdict(list)
    for event in spans:
        lanes[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for found in lanes.values():
        for start, end in found:
            for other, stop in found:
                assert (
                    end <= other
                    or stop <= start
                    or (start <= other and stop <= end)
                    or (other <= start and end <= stop)
                )


def test_a_million_moments_stay_bounded():
    timeline = factory.incident_timeline()
    many = pl.concat([timeline] * (1_000_000 // timeline.height)).with_columns(
        time=pl.lit(factory.START) + pl.duration(milliseconds=pl.int_range(pl.len()))
    )
    assert len(perfetto.render(factory.incident(), many)) < 40_000_000


@pytest.mark.parametrize("make", [factory.inconclusive, factory.finished])
def test_a_run_without_a_timeline_still_gives_a_trace(make):
    assert json.loads(perfetto.render(make(), factory.no_timeline()))["otherData"]["run"] == make().name
    assert json.loads(perfetto.render(make(), None))["traceEvents"]


def test_hostile_names_are_shown_and_cut():
    trace = json.loads(perfetto.render(everywhere(factory.incident(), "\u202e\x1b[2J" + "x" * 10_000), None))
    found = texts(trace)
    assert not set("".join(found)) & RAW
    assert max(map(len, found)) < 1_100


def test_the_same_result_gives_the_same_bytes():
    made = [perfetto.render(factory.incident(), factory.incident_timeline()) for _ in range(2)]
    assert made[0] == made[1]
    assert perfetto.MARK.encode() in made[0]
    assert msgspec.json.decode(made[0])["displayTimeUnit"] == "ms"
