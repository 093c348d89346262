"""The fast way through a log and the careful one give the same tables, accounts and anchors."""

import io
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from benchmarks.generate import Field, Record, ansi, plain
from postmortem.reading import Reading, SourceInfo, read
from postmortem.sources import find
from postmortem_parsers.profiles import combined, load, names
from postmortem_parsers.registry import load_parsers
from postmortem_parsers.tracing import TracingParser

FIXTURES = Path(__file__).parents[2] / "fixtures"
PROFILE = combined([load(name) for name in names()])
SAMPLES = [sample for event in PROFILE.event for sample in event.sample]
FILES = sorted(path for path in FIXTURES.rglob("*") if path.is_file() and not path.name.endswith(".json"))


class CarefulTracingParser(TracingParser):
    """Reads every line by expressions."""

    sweep = None  # pyright: ignore[reportAssignmentType] (so it is no `Sweeping` parser)


def _read(data: bytes | Path, tracing: type[TracingParser]) -> Reading:
    parsers = [tracing if parser.name == "tracing" else parser for parser in load_parsers()[0]]
    source = str(data) if isinstance(data, Path) else io.BytesIO(data)
    return read(find([source]), parsers, PROFILE)


def _account(info: SourceInfo) -> dict[str, object]:
    return {name: getattr(info, name) for name in info.__dataclass_fields__}


def _assert_same(data: bytes | Path) -> Reading:
    fast, careful = _read(data, TracingParser), _read(data, CarefulTracingParser)
    for name, table in careful.tables.items():
        assert_frame_equal(fast.tables[name], table)
    assert_frame_equal(fast.lines_time, careful.lines_time)
    assert [_account(info) for info in fast.sources] == [_account(info) for info in careful.sources]
    return fast


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FIXTURES)))
def test_both_ways_give_the_same_of_every_fixture(path: Path) -> None:
    if path.stat().st_size:
        _assert_same(path)


def test_both_ways_give_the_same_of_every_sample_in_any_order() -> None:
    lines = SAMPLES * 3
    random.Random(1).shuffle(lines)
    reading = _assert_same("\n".join(lines).encode())
    assert sum(frame.height for frame in reading.tables.values()) > len(lines) / 2


word = st.sampled_from(
    ["3", "0.5", "Some(3)", "Some(3", "None", "null", "", "-1", "x", "porep-32g", "PoRep 32G", 'a"b', "3}", "{", "3,",
     "1e3", "inf", "NaN", "ps-1", "a b", "a=b", "x size_gib=1", "1 ", "é", "9" * 30, '"3"', '"a b"', "Foo { a: 1 }"]
)  # fmt: skip
name = st.sampled_from(
    ["size_gib", "free_remaining", "job_id", "partition", "worker_id", "circuit_id", "total_gib", "gpu_ms", "proof_kind",
     "amount_gib", "used_gib", "synth_ms", "other", "total_buffers", "available_gib"]
)  # fmt: skip
fields = st.lists(st.builds(Field, name, word, st.booleans()), max_size=5).map(tuple)
known = st.sampled_from([(e.target, e.message) for e in PROFILE.event if e.message and e.target])
text = known.map(lambda pair: pair[1]) | st.sampled_from(
    ["fft finished", "job enqueued twice", "pinned pool: checkin!"]
)
target = known.map(lambda pair: pair[0] or "") | st.sampled_from(["h2::codec", "my_core::pinned_pool"])
records = st.builds(
    Record,
    st.sampled_from(["TRACE", "DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR"]),
    target,
    text,
    fields,
    st.lists(st.tuples(st.sampled_from(["gpu_worker", "gpu_prove"]), fields), max_size=2).map(tuple),
) | known.flatmap(lambda pair: st.builds(Record, st.just("INFO"), st.just(pair[0] or ""), st.just(pair[1]), fields))
stamps = st.sampled_from(
    ["2026-03-13T14:02:11.123456Z"] * 5
    + ["2026-02-30T14:02:11.123456Z", "2026-03-13T14:02:60.123456Z", "2026-03-13T24:02:11.123456Z",
       "2026-03-13T14:02:11Z", "2026-03-13T14:02:11.123456+02:00"]
)  # fmt: skip
odd = st.sampled_from(["", "Killed", "  2026-03-13T14:02:11.123456Z  INFO a::b: c", "    at x/y.rs:3", "\x1b[0m", "\0"])
dress = st.sampled_from([plain, ansi])
lines = st.lists(st.tuples(dress, stamps, records).map(lambda t: t[0](t[1], t[2]).rstrip("\n")) | odd, max_size=12)


@settings(max_examples=150, deadline=None)
@given(lines, st.booleans(), st.integers(1, 3))
def test_both_ways_give_the_same_of_generated_lines(lines: list[str], closed: bool, times: int) -> None:
    data = "\n".join(lines * times) + ("\n" if closed else "")
    if data.strip():
        _assert_same(data.encode())


def test_the_sweep_settles_nearly_all_lines_of_an_ordinary_log() -> None:
    from postmortem_parsers.interface import Context  # noqa: PLC0415

    record = Record("INFO", "cuzk_core::pinned_pool", "pinned pool: checkin", (Field("size_gib", "3.88"),))
    noise = Record("DEBUG", "h2::codec", "sent frame")
    texts = [plain("2026-03-13T14:02:11.123456Z", kind).rstrip() for kind in (record, noise)] * 50
    frame = pl.DataFrame({"line": range(1, 101), "text": texts}, schema={"line": pl.Int64, "text": pl.String})
    swept = TracingParser().sweep(frame, Context(0, "run.log", PROFILE), None)
    assert swept is not None
    assert swept.rest.is_empty()
    assert sum(rows.height for _, rows in swept.frames) == 50
