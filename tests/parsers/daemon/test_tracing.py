"""tracing's formats: the same records give the same tables, whatever their dress."""

import datetime as dt
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tracing_formatter import FORMATS, Record, Span, as_json, compact, full, pretty

from postmortem_parsers.profiles import load

GIB = 1 << 30

GPU = [
    Span("gpu_worker", {"worker_id": 1, "gpu": 0, "job_id": "ps-1", "partition": "Some(3)"}, "cuzk_core::engine"),
    Span("gpu_prove", {"circuit_id": "porep-32g", "partition": "Some(3)"}),
]
SYNTH = [Span("synthesize_partition", {"job_id": '"ps-2"', "partition": 8})]
LOG = [
    Record("cuzk-daemon starting", target="cuzk_daemon"),
    Record("memory budget initialized", {"total_budget_gib": 331}, "cuzk_core::engine"),
    Record("pinned pool: allocated new buffer", {"size_gib": 3.5, "total_buffers": 1, "total_gib": 3.5}, spans=SYNTH),
    Record("pinned pool: checkout (reuse)", {"size_gib": 3.882612854242325, "free_remaining": 0}, spans=SYNTH),
    Record("pinned pool: checkin", {"size_gib": 4.0}),
    Record("budget acquired", {"amount_gib": 14, "used_gib": 84, "total_gib": 331}, "cuzk_core::memory", "DEBUG"),
    Record("GPU_TIMING prove_start returned", {"worker_id": 1, "partition": "Some(3)", "total_pre_prove_ms": 2409},
           "cuzk_core::engine", spans=GPU[:1]),
    Record("GPU prove complete (split)", {"proof_count": 1, "gpu_ms": 4312}, "cuzk_core::pipeline", spans=GPU),
    Record("SRS loaded successfully", {"circuit_id": "porep-32g", "elapsed_ms": 24424, "budget_used_gib": 44,
           "budget_available_gib": 287}, "cuzk_core::srs_manager"),
    Record("no capacity hint cached — first synthesis will grow organically", {"circuit_id": "porep-32g"},
           "cuzk_core::pipeline", spans=SYNTH),
    Record("partition GPU proving failed", {"error": "CUDA error 700: an illegal memory access", "job_id": "ps-1",
           "partition": 2}, "cuzk_core::engine", "ERROR"),
    Record("received frame=Data { stream_id: StreamId(1) }", target="h2::codec::framed_read", level="DEBUG"),
    Record("cudaHostAlloc failed", {"size_gib": 3.5, "cuda_err": 2}, level="WARN"),
]  # fmt: skip


def tables_of(reading):
    return {name: frame.drop("line").to_dicts() for name, frame in reading.tables.items()}


@pytest.fixture(scope="module")
def plain(read_text):
    return tables_of(read_text("".join(full(record) for record in LOG)))


DRESSES = list(itertools.product(FORMATS, (False, True), ("\n", "\r\n")))


@pytest.mark.parametrize(("name", "colour", "newline"), DRESSES)
def test_every_dress_gives_the_same_tables_and_leaves_nothing_unmatched(name, colour, newline, read_text, plain):
    text = "".join(FORMATS[name](record, colour) for record in LOG).replace("\n", newline)
    reading = read_text(text)
    assert tables_of(reading) == plain
    assert (reading.sources[0].unmatched, reading.sources[0].skipped) == (0, 0)


@pytest.mark.parametrize("escape", ["^[", "←"])
def test_colour_codes_that_were_pasted_as_text_are_removed(escape, read_text, plain):
    text = "".join(full(record, colour=True) for record in LOG).replace("\x1b", escape)
    assert tables_of(read_text(text)) == plain


def test_values_are_those_that_the_line_states(plain):
    assert [row["op"] for row in plain["pool"]] == ["alloc", "checkout", "checkin"]
    alloc, checkout, checkin = plain["pool"]
    assert (alloc["size"], alloc["buffers"], alloc["total"]) == (7 * GIB // 2, 1, 7 * GIB // 2)
    assert checkout["size"] == 130278869 * 32  # constraints × bytes of a scalar
    assert (checkout["free_remaining"], checkin["size"]) == (0, 4 * GIB)
    assert alloc["time"] == dt.datetime(2026, 3, 19, 2, 16, 7, 519502, tzinfo=dt.UTC)


def test_fields_in_whole_gib_carry_the_size_of_their_step(plain):
    init, acquire, checkpoint = plain["budget"]
    assert (init["op"], init["total"], init["total_ulp"]) == ("init", 331 * GIB, GIB)
    assert (acquire["amount"], acquire["used"], acquire["used_ulp"]) == (14 * GIB, 84 * GIB, GIB)
    assert (checkpoint["used"], checkpoint["available"]) == (44 * GIB, 287 * GIB)


def test_job_partition_and_worker_come_from_the_spans_where_the_event_has_none(plain):
    work = {row["op"]: row for row in plain["work"]}
    returned, end = work["prove_start_returned"], work["gpu_end"]
    assert (returned["job"], returned["partition"], returned["worker"], returned["ms"]) == ("ps-1", 3, 1, 2409)
    assert (end["job"], end["partition"], end["circuit"], end["ms"]) == ("ps-1", 3, "porep-32g", 4312)
    assert (work["synth_unpinned"]["job"], work["synth_unpinned"]["partition"]) == ("ps-2", 8)


def test_warnings_and_errors_of_any_target_become_marks_with_their_reason(plain):
    assert [(row["what"], row["text"]) for row in plain["marks"]] == [
        ("error", "partition GPU proving failed: CUDA error 700: an illegal memory access"),
        ("warning", "cudaHostAlloc failed"),
    ]


@pytest.mark.parametrize("write", [full, compact, pretty, as_json])
def test_an_events_own_field_wins_over_its_spans(write, rows_of):
    span = Span("gpu_worker", {"job_id": "ps-1", "partition": "Some(3)"})
    record = Record("GPU_TIMING prove_start returned", {"partition": "Some(7)"}, "cuzk_core::engine", spans=[span])
    assert rows_of(write(record), "work")[0]["partition"] == 7


@pytest.mark.parametrize("write", [full, compact, pretty, as_json])
def test_the_order_of_fields_is_free(write, rows_of):
    record = Record("pinned pool: checkout (reuse)", {"free_remaining": 5, "size_gib": 2.0})
    row = rows_of(write(record), "pool")[0]
    assert (row["size"], row["free_remaining"]) == (2 * GIB, 5)


def test_a_bare_value_with_blanks_ends_where_the_next_name_begins(rows_of):
    line = (
        "2026-03-19T02:22:07.270340Z ERROR cuzk_core::engine: partition synthesis failed "
        "error=failed to load SRS from /data/a b job_id=ps-1 partition=2\n"
    )
    assert rows_of(line, "marks")[0]["text"] == "partition synthesis failed: failed to load SRS from /data/a b"
    assert rows_of(line, "work")[0]["job"] == "ps-1"


@pytest.mark.parametrize("none", ["None", '"None"', "null"])
def test_no_partition_is_a_value_not_a_fault(none, read_text):
    line = (
        f"2026-03-19T02:17:59.269571Z  INFO cuzk_core::engine: GPU_TIMING prove_start returned worker_id=0 "
        f"partition={none} total_pre_prove_ms=2409\n"
    )
    reading = read_text(line)
    assert reading.tables["work"]["partition"].to_list() == [None]
    assert reading.sources[0].skipped == 0


def test_a_garbled_number_is_skipped_with_its_reason(read_text):
    line = "2026-03-19T02:17:59.269571Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.8x8\n"
    reading = read_text(line)
    assert reading.tables["pool"].is_empty()
    assert reading.sources[0].skipped_examples == [(1, "size_gib cannot be read", line.strip())]


def test_a_time_that_is_no_date_is_skipped_with_its_reason(read_text):
    reading = read_text("2026-13-41T02:17:59.269571Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3\n")
    assert reading.sources[0].skipped_examples[0][:2] == (1, "its time is no date")


@pytest.mark.parametrize("form", ["2026-03-19T04:16:07+02:00", "2026-03-18T21:16:07-05:00", "2026-03-19T02:16:07Z"])
def test_times_with_an_offset_are_the_same_moment(form, rows_of):
    row = rows_of(f"{form}  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.5\n", "pool")[0]
    assert row["time"] == dt.datetime(2026, 3, 19, 2, 16, 7, tzinfo=dt.UTC)


def test_records_without_a_time_are_read_when_a_module_path_tells_them(rows_of):
    row = rows_of("  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.5\n", "pool")[0]
    assert row == {"line": 1, "op": "checkin", "size": 7 * GIB // 2}


def test_json_with_blanks_sorted_keys_and_escapes_is_the_same(rows_of):
    line = (
        '{"fields": {"message": "pinned pool checkout FAILED \\u2014 falling back to unpinned", "pool_free": 0, '
        '"pool_total_gib": 93.0}, "level": "WARN", "target": "cuzk_core::pipeline", '
        '"timestamp": "2026-03-19T02:16:07Z"}\n'
    )
    row = rows_of(line, "pool")[0]
    assert (row["op"], row["free_remaining"], row["total"]) == ("checkout_failed", 0, 93 * GIB)


def test_the_same_message_of_another_target_is_another_event(read_text):
    text = "".join(
        write(Record("pinned pool: checkin", {"size_gib": 3.5}, "other::module")) for write in (full, as_json)
    )
    reading = read_text(text)
    assert reading.tables["pool"].is_empty()
    assert reading.sources[0].unmatched == 0


def test_lines_between_pretty_records_stay_with_their_own_parsers(read_text):
    text = (
        pretty(LOG[0]) + "TIMELINE,5,SYNTH_START,ps-1,partition=1\n" + pretty(LOG[4]) + "[benchmark] x\n\n    at home\n"
    )
    reading = read_text(text)
    assert reading.tables["work"]["op"].to_list() == ["start", "synth_start"]
    assert reading.sources[0].parsers == {"tracing": 6, "timeline": 1}
    assert reading.sources[0].unmatched == 3


def test_logfmt_records_are_read_by_a_profile_that_knows_them(read_text, tmp_path):
    file = tmp_path / "mem.toml"
    file.write_text(
        'name = "mem"\n[[event]]\nmessage = "mem.init"\nsample = ["level=info msg=mem.init budget_mb=1921"]\n'
        'rows = [{ table = "budget", op = "init", fields = { total = "budget_mb:mib" } }]\n'
    )
    text = 'time=2026-03-19T02:16:07Z level=info msg="mem.init" budget_mb=1921 total_ram_mb=7685\n'
    row = read_text(text, load(str(file))).tables["budget"].to_dicts()[0]
    assert (row["total"], row["total_ulp"], row["time"].hour) == (1921 << 20, 0, 2)


@pytest.mark.parametrize("ending", ["", "6", "65.", "3.88"])
def test_a_number_at_the_very_end_of_a_cut_file_is_not_taken(ending, read_text):
    line = f"2026-03-19T02:17:59.269571Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3{ending}"
    reading = read_text(line)
    assert reading.tables["pool"].is_empty()
    assert reading.sources[0].skipped == 1
    assert reading.sources[0].ends_cut


def test_a_cut_line_keeps_the_values_that_are_provably_whole(rows_of):
    line = (
        "2026-03-19T02:17:59.269571Z  INFO cuzk_core::pinned_pool: pinned pool: checkout (reuse) size_gib=3.5 free_rem"
    )
    assert rows_of(line, "pool")[0]["size"] == 7 * GIB // 2


def test_a_whole_json_object_without_newline_is_taken_and_a_cut_one_is_not(read_text):
    line = as_json(LOG[4]).strip()
    assert read_text(line).tables["pool"].height == 1
    cut = read_text(line[:-1])
    assert cut.tables["pool"].is_empty()
    assert cut.sources[0].skipped_examples[0][1] == "cut: the record is not closed"


def test_a_message_that_may_go_on_is_not_taken_for_the_shorter_one(read_text):
    line = "2026-04-07T07:40:00.235680Z  INFO cuzk_core::engine: "
    assert read_text(line + "dispatching per-partition synthesis").tables["work"].is_empty()
    assert read_text(line.replace("engine", "x") + "cuzk-daemon stop").tables["ends"].is_empty()


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_cutting_a_log_anywhere_never_raises_and_never_invents_a_value(data, read_text):
    write = data.draw(st.sampled_from([full, compact, pretty, as_json]))
    colour = data.draw(st.booleans())
    text = "".join(write(record, colour) for record in LOG).encode()
    reading = read_text(text[: data.draw(st.integers(0, len(text)))])
    known = {name: tables_of(read_text(text))[name] for name in ("pool", "budget", "resident")}
    info = reading.sources[0]
    assert sum(info.parsers.values()) + info.unmatched == info.lines
    for name, rows in known.items():
        for row in reading.tables[name].drop("line").to_dicts():
            wholes = [other for other in rows if other["op"] == row["op"]]
            # A column may be missing, never different.
            assert any(all(row[key] in (None, other[key]) for key in row if key != "time") for other in wholes), row
