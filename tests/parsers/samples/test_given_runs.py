"""The runs that the project was given: every sample file is read whole; counts and values by plain means (csv, regex)."""

import csv
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from parsers.samples.reading import Read, read_file
from parsers.samples.test_shapes import HOMES, parser_of

GIVEN = Path(__file__).parents[4] / "shared" / "samples"
pytestmark = pytest.mark.skipif(not GIVEN.is_dir(), reason="the given runs are not beside this checkout")
GIB = 2**30


def given(*patterns):
    return sorted(str(path.relative_to(GIVEN)) for pattern in patterns for path in GIVEN.glob(pattern))


CSV = given("**/*.csv")
DUMPS = given("**/cgroup-v2.txt", "**/cgroup-dump.log")
LOOPS = [p for p in given("**/mem.txt", "**/memwatch.log") if "/ " not in (GIVEN / p).read_text()[:200]]
CLOCKS = [p for p in given("**/mem.txt") if p not in LOOPS]
DOCKER = given("**/docker-stats.txt")
PS = given("**/ps.log")


def read_with(home, path):
    read = Read(parser_of(home)(), read_file(GIVEN / path), name=Path(path).name, chunk=1000)
    assert read.sure >= 0.9
    assert read.context.skipped == []
    assert read.unmatched <= 0
    return read


@pytest.mark.parametrize("path", CSV)
def test_csv_files_keep_every_cell(path):
    read = read_with("delimited:DelimitedParser", path)
    rows = list(csv.DictReader((GIVEN / path).open()))
    names = {
        "current": ("usage_bytes", "memory_current", "usage_in_bytes"),
        "limit": ("limit_bytes", "memory_max", "limit_in_bytes"),
        **{name: (name,) for name in ("anon", "file", "shmem", "inactive_file", "failcnt", "rss", "cache")},
        "kernel": ("kernel", "kmem_usage_in_bytes"),
        "file_mapped": ("mapped_file",),
    }
    for metric, columns in names.items():
        column = next((c for c in columns if c in rows[0]), None)
        assert read.values(metric) == ([int(row[column]) for row in rows] if column else [])
    assert read.samples.height == len(rows) * (len(rows[0]) - 1)
    first = next(iter(rows[0].values()))
    start = datetime.fromisoformat(first) if "-" in first else datetime.fromtimestamp(float(first), UTC)
    assert read.samples["time"][0] == start
    assert not read.samples["local_time"].any()


@pytest.mark.parametrize("path", DUMPS)
def test_dumps_keep_every_counter(path):
    read = read_with("dumps:CgroupDumpParser", path)
    text = (GIVEN / path).read_text()
    currents = re.findall(r"memory\.current(?: <==\n|: )(\d+)", text)
    assert read.values("current") == [int(v) for v in currents]
    for name in ("anon", "file", "kernel", "shmem", "pagetables", "inactive_file", "oom_kill", "oom"):
        assert read.values(name) == [int(v) for v in re.findall(rf"^{name} (\d+)$", text, re.MULTILINE)]
    assert read.values("failcnt") == [int(v) for v in re.findall(r"^max (\d+)$", text, re.MULTILINE)]
    stamps = [
        datetime.fromisoformat(s) for s in re.findall(r"^(?:=== )?(\d{4}-\S+T\S+?)(?: ===)?$", text, re.MULTILINE)
    ]
    assert read.samples.filter(metric="current")["time"].to_list() == stamps


@pytest.mark.parametrize("path", LOOPS)
def test_loops_pair_each_value_with_the_time_above(path):
    read = read_with("loops:LoopParser", path)
    lines = [line for line in (GIVEN / path).read_text().splitlines() if not line.startswith(("#", "+"))]
    assert read.values("current") == [int(line) for line in lines[1::2]]
    if lines[0].isdigit():
        assert [t.timestamp() for t in read.samples["time"]] == [float(line) for line in lines[::2]]


def test_a_loop_s_zone_name_that_is_not_utc_leaves_the_time_local():
    unknown = read_with("loops:LoopParser", "simulated-2/case-005/memwatch.log")
    assert unknown.samples["local_time"].all()
    assert unknown.samples["time"][0] == datetime(2026, 5, 7, 18, 11, 23, tzinfo=UTC)
    assert unknown.marks.select("what", "value").rows() == [("limit_stated", 248034361344)]
    known = read_with("loops:LoopParser", "simulated-2/case-009/memwatch.log")
    assert not known.samples["local_time"].any()
    assert known.samples["time"][0] == datetime(2026, 7, 15, 3, 29, 46, tzinfo=UTC)


@pytest.mark.parametrize("path", CLOCKS)
def test_clock_lines_keep_use_and_limit(path):
    read = read_with("inline:InlineParser", path)
    found = re.findall(r"^\d\d:\d\d:\d\d ([\d.]+) GiB / (\d+) GiB$", (GIVEN / path).read_text(), re.MULTILINE)
    assert read.values("current") == [round(float(use) * GIB) for use, _ in found]
    assert read.values("limit") == [int(limit) * GIB for _, limit in found]
    assert read.samples["clock_only"].all()


@pytest.mark.parametrize("path", DOCKER)
def test_docker_rows_keep_use_and_limit_and_no_input_or_output(path):
    read = read_with("inline:InlineParser", path)
    found = re.findall(r"% ([\d.]+)GiB / (\d+)GiB", (GIVEN / path).read_text())
    assert read.values("current") == [round(float(use) * GIB) for use, _ in found]
    assert read.values("limit") == [int(limit) * GIB for _, limit in found]
    assert read.samples["subject"].unique().to_list() == ["cuzk"]


@pytest.mark.parametrize("path", PS)
def test_ps_loops_keep_every_process(path):
    read = read_with("processes:ProcessesParser", path)
    rows = [line.split() for line in (GIVEN / path).read_text().splitlines() if not line.startswith("---")]
    assert read.values("rss_process") == [int(kb) * 1024 for _, kb, _ in rows]
    assert read.samples["subject"].to_list() == [f"{pid}:{name}" for pid, _, name in rows]


@pytest.mark.parametrize(
    "path",
    given(
        "**/run.log",
        "**/run.log.gz",
        "**/daemon.log",
        "**/dmesg.txt",
        "**/kern.log",
        "**/host.txt",
        "**/exit.txt",
        "**/status.jsonl",
    ),
)
def test_files_of_other_kinds_are_left_to_their_parsers(path):
    lines = read_file(GIVEN / path)
    for home in HOMES:
        if home != "inline:InlineParser":
            assert Read(parser_of(home)(), lines, name=Path(path).name).claimed == 0
    inline = Read(parser_of("inline:InlineParser")(), lines)
    mine = r"^\[mem\] \d|^(?:\[[\d: -]+\] )?(?:cgroup memory limit:|memprobe: )|^\s*\[RSS\]|^peak RSS"
    assert inline.claimed == lines["text"].str.contains(mine).sum()


def test_the_wrapper_s_probe_is_kept_as_marks():
    read = Read(parser_of("inline:InlineParser")(), read_file(GIVEN / "simulated-2/case-002/bench.log"))
    stated = {what: value // GIB for what, value in read.marks.select("what", "value").rows() if value is not None}
    assert stated == {
        "limit_stated": 200,
        "host_total_stated": 503,
        "probe_limit": 200,
        "probe_usable": 191,
        "probe_overhead": 7,
    }
    assert read.marks["value_ulp"].drop_nulls().unique().to_list() == [GIB]
    assert read.marks["time"][0] == datetime(2026, 2, 22, 0, 21, 35, tzinfo=UTC)


@pytest.mark.parametrize(
    ("path", "count"), [("simulated-2/case-007/bench.log", 64), ("simulated-2/case-008/run.log", 73)]
)
def test_mem_lines_between_other_lines_are_found(path, count):
    read = Read(parser_of("inline:InlineParser")(), read_file(GIVEN / path), chunk=100)
    assert len(read.values("current")) == count
