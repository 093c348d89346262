"""TIMELINE, status snapshots, the benchmark client's and wrappers' lines."""

import datetime as dt
import json

import pytest

GIB = 1 << 30


def test_timeline_lines_carry_offsets_and_no_time(rows_of):
    text = (
        "TIMELINE,109250,SYNTH_END,ps-8364,partition=1,synth_ms=59698\n"
        "TIMELINE,414917,GPU_END,f16e,worker=2,partition=3,gpu_ms=4312\n"
        "TIMELINE,330653,SYNTH_START,f16e,kind=window-post\n"
        "TIMELINE,410399,GPU_QUEUE,f16e,monolithic\n"
    )
    assert rows_of(text, "work") == [
        {"line": 1, "op": "synth_end", "job": "ps-8364", "partition": 1, "ms": 59698, "offset_ms": 109250},
        {"line": 2, "op": "gpu_end", "job": "f16e", "worker": 2, "partition": 3, "ms": 4312, "offset_ms": 414917},
        {"line": 3, "op": "synth_start", "job": "f16e", "proof_kind": "window-post", "offset_ms": 330653},
        {"line": 4, "op": "gpu_queue", "job": "f16e", "offset_ms": 410399},
    ]


@pytest.mark.parametrize("broken", ["TIMELINE,\n", "TIMELINE,12x,GPU_END,j\n", "TIMELINE,5,\n", "TIMELINE,5,GPU_END\n"])
def test_a_broken_timeline_line_is_skipped(broken, read_text):
    info = read_text(broken).sources[0]
    assert (info.skipped, info.unmatched) == (1, 0)


def test_a_timeline_line_that_the_file_ends_in_is_not_taken(read_text):
    assert read_text("TIMELINE,109250,SYNTH_END,ps-8364,partition=1").tables["work"].is_empty()


def test_cuda_timing_lines_are_known_and_give_no_rows(read_text):
    reading = read_text("CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=812\nCUZK_TIMING: d_a_cache allocated 4096 MiB on gpu 0\n")
    assert reading.sources[0].parsers == {"timeline": 2}
    assert all(frame.is_empty() for frame in reading.tables.values())


STATUS = {
    "uptime_secs": 18.37,
    "memory": {"total_bytes": 214748364800, "used_bytes": 47395823628, "available_bytes": 167352541172},
    "pipelines": [{"job_id": "a", "partitions": []}],
    "allocations": {"srs": [{"circuit_id": "porep-32g", "bytes": 47395823628, "evictable": False}], "pce": []},
}


def test_a_status_snapshot_gives_the_ledger_and_the_tables_in_exact_bytes(rows_of):
    text = json.dumps(STATUS) + "\n"
    budget = rows_of(text, "budget")[0]
    assert (budget["op"], budget["used"], budget["used_ulp"], budget["uptime_s"]) == (
        "checkpoint",
        47395823628,
        0,
        18.37,
    )
    resident = rows_of(text, "resident")[0]
    assert (resident["op"], resident["kind"], resident["circuit"], resident["size"]) == (
        "snapshot",
        "srs",
        "porep-32g",
        47395823628,
    )


def test_a_cut_status_snapshot_is_skipped(read_text):
    info = read_text(json.dumps(STATUS)[:-30]).sources[0]
    assert (info.skipped, info.parsers) == (1, {"status": 1})


WRAPPER = """\
[2026-02-22 00:21:35] cgroup memory limit: 200 GiB (memory.max), host MemTotal 503 GiB
[2026-02-22 00:21:40] memprobe: limit=200 GiB usable=191 GiB overhead=7 GiB
[2026-02-22 00:21:50] starting cuzk-daemon (attempt 1/4) budget=187GiB
[2026-02-22 00:21:51] daemon pid 5183
[2026-02-22 00:21:52] === one: 5 proofs, concurrency 1 ===
=== Batch Benchmark ===
proof type:  porep
count:       5
concurrency: 1

  [1/5] COMPLETED — 183.5s (prove=44824 ms, queue=293 ms)
=== Batch Summary ===
total time:    553.5s
completed:     4
failed:        1
throughput:    0.542 proofs/min (110.7s/proof)
[2026-02-22 00:31:06] one finished in 553s, peak 199 GiB
"""


def test_phases_of_any_name_begin_and_end(rows_of):
    start, batch_start, batch_end, end = rows_of(WRAPPER, "phases")
    assert (start["op"], start["name"], start["count"], start["concurrency"]) == ("start", "one", 5, 1)
    assert start["time"] == dt.datetime(2026, 2, 22, 0, 21, 52, tzinfo=dt.UTC)
    assert start["local_time"] is True
    assert batch_start == {
        "line": 6, "op": "start", "name": "batch", "count": 5, "concurrency": 1, "proof_kind": "porep",
    }  # fmt: skip
    assert batch_end == {"line": 12, "op": "end", "name": "batch", "completed": 4, "failed": 1, "seconds": 553.5}
    assert (end["op"], end["name"], end["seconds"]) == ("end", "one", 553.0)


def test_what_the_wrapper_states_becomes_marks(rows_of):
    marks = [(row["what"], row.get("value"), row.get("value_ulp")) for row in rows_of(WRAPPER, "marks")]
    # Limits, probes and the host's memory are read by samples/inline.py, whatever the profile.
    assert marks == [
        ("budget_stated", 187 * GIB, 0),
        ("restart", 1, None),
        ("daemon_pid", 5183, None),
        ("proof_done", 1, None),
        ("phase_peak", 199 * GIB, GIB),
    ]


@pytest.mark.parametrize(
    "line",
    ["[benchmark] daemon exited with code 137 (OOM). Reducing budget 331 -> 297 GiB, retry 1/3",
     "[2026-01-10 22:05:42] daemon is gone: reducing budget by 10%: 331 -> 297 GiB, retry 1/3"],
)  # fmt: skip
def test_a_lowered_budget_is_a_change_and_a_restart(line, rows_of):
    marks = [(row["what"], row["value"]) for row in rows_of(line + "\n", "marks")]
    assert marks == [("budget_changed", 297 * GIB), ("restart", 1)]


def test_a_number_at_the_end_of_a_cut_wrapper_line_is_not_taken(read_text):
    assert read_text("[2026-02-22 00:21:51] daemon pid 51").tables["marks"]["value"].to_list() == [None]


def test_phase_lines_of_the_benchmark_script_keep_their_name(rows_of):
    row = rows_of("[benchmark] Phase 1 (warmup): 5 proofs, concurrency 4\n", "phases")[0]
    assert row == {"line": 1, "op": "start", "name": "Phase 1 (warmup)", "count": 5, "concurrency": 4}
