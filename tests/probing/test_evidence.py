"""`postmortem probe --json`, kept in a file, as evidence: marks with their lines, and what is broken is skipped."""

import datetime as dt
import json

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.probe import ProbeParser

GIB = 1 << 30
PROBE = {
    "schema": "postmortem-probe/1",
    "time": "2026-03-19T02:10:00Z",
    "limit": 342 * GIB,
    "limited_by": "/sys/fs/cgroup/app",
    "used": 2 * GIB,
    "measured": [{"kind": "anon", "overhead": 6 * GIB}, {"kind": "shared", "overhead": 5 * GIB}],
    "usable": 334 * GIB,
    "budget": 317 * GIB,
}


def _read(text: str) -> tuple[Tables, Context, float]:
    lines = text.split("\n")
    frame = pl.DataFrame(
        {"line": range(1, len(lines) + 1), "text": lines}, schema={"line": pl.Int64, "text": pl.String}
    )
    parser, context = ProbeParser(), Context(source=3, name="probe.json", profile=None)
    sure = parser.sniff(Head(lines, "probe.json"))
    assert parser.claim(frame, context).all()
    return parser.parse(frame, context), context, sure


def _marks(tables: Tables) -> list[tuple[str, int, int]]:
    marks = tables.get("marks")
    return [] if marks is None else marks.select("what", "value", "line").rows()


def test_each_figure_is_a_mark_at_its_line():
    tables, context, sure = _read(json.dumps(PROBE, indent=1))
    assert sure == 1.0
    assert _marks(tables) == [
        ("probe_limit", 342 * GIB, 4),
        ("probe_used", 2 * GIB, 6),
        ("probe_overhead", 6 * GIB, 10),
        ("probe_usable", 334 * GIB, 17),
        ("probe_budget", 317 * GIB, 18),
    ]
    assert set(tables.get("marks")["time"]) == {dt.datetime(2026, 3, 19, 2, 10, tzinfo=dt.UTC)}
    assert context.skipped == []


def test_objects_that_were_appended_are_read_one_by_one():
    tables, context, _ = _read("\n".join([json.dumps(PROBE), "", json.dumps(PROBE, indent=1), ""]))
    assert [line for what, _, line in _marks(tables) if what == "probe_limit"] == [1, 6]
    assert context.skipped == []


def test_a_limit_that_is_the_hosts_memory_is_no_cgroups_limit():
    tables, _, _ = _read(json.dumps({**PROBE, "limited_by": "host"}))
    assert "probe_limit" not in dict.fromkeys(what for what, _, _ in _marks(tables))
    assert ("host_total_stated", 342 * GIB, 1) in _marks(tables)


@given(cut=st.integers(0, 300), junk=st.sampled_from(["", "\x00", "\n}", "[[[", '"']))
def test_what_is_cut_is_skipped_with_its_lines_and_nothing_raises(cut, junk):
    text = json.dumps(PROBE, indent=1)[:cut] + junk
    tables, context, _ = _read(text)
    first = next((n for n, line in enumerate(text.split("\n"), 1) if line.strip()), None)
    assert _marks(tables) or first is None or context.skipped[0].line == first


def test_an_object_that_tells_nothing_is_skipped():
    tables, context, _ = _read("{\n\n}\n" + json.dumps(PROBE))
    assert [(one.line, one.text) for one in context.skipped] == [(1, "{"), (2, ""), (3, "}")]
    assert ("probe_limit", 342 * GIB, 4) in _marks(tables)


def test_values_that_are_no_sizes_are_left_out():
    hostile = {
        **PROBE,
        "limit": -1,
        "used": True,
        "usable": 1 << 70,
        "budget": "12",
        "measured": [7, {"overhead": None}],
    }
    assert _marks(_read(json.dumps(hostile))[0]) == []
