"""No input raises, nothing is claimed that is no sample, and what is claimed is read or reported."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from parsers.samples.reading import Read, lines_of, read_file, read_text
from parsers.samples.test_shapes import FIXTURES, HOMES, SHAPES, expected_of, parser_of

INNOCENT = {
    "tracing": "2026-03-13T14:02:11.123456Z  INFO cuzk_core::pinned_pool: pinned pool: checkout (reuse) size_gib=3.8811 free_remaining=0\n2026-03-13T14:02:11.223456Z  INFO cuzk_core::engine: memory budget initialized total_budget_gib=331\n",
    "tracing_json": '{"timestamp":"2026-03-19T02:16:10.1Z","level":"INFO","fields":{"message":"memory budget initialized","total_budget_gib":331},"target":"cuzk_core::engine"}\n',
    "timeline": "TIMELINE,812,SYNTH_START,ps-1,worker=0,partition=3\nTIMELINE,1773886571,GPU_END,ps-1,worker=0,partition=3,gpu_ms=4312\n",
    "status": '{"uptime_secs":18.370466,"memory":{"total_bytes":214748364800,"used_bytes":47395823628,"available_bytes":167352541172},"pipelines":[]}\n',
    "kernel": "[12345.678901] memory: usage 204800kB, limit 204800kB, failcnt 3446\n[12345.678902] Memory cgroup stats for /a: cache:0KB rss:204032KB\n[12345.678903] [ 6320]  1000  6320    55365    51452   151552        0             0 python3\n",
    "nginx": '203.0.113.9 - - [19/Mar/2026:02:16:10 +0000] "GET /memory.current HTTP/1.1" 200 8352785044 "-" "curl/8.5 killed"\n',
    "source": "static int memory_current(struct cgroup *c)\n{\n    return c->usage; /* memory.max: 12 */\n}\n",
    "prose": "It was the best of times, it was the worst of times.\nMemory, said the old man, is all that we have: 342 GiB of it.\n",
    "makefile": "# memory\nall: build\n\t$(CC) -o memory.current memory.c\n",
    "latencies": "1773886571,42,17\n1773886572,44,18\n1773886573,41,17\n",
    "unknown_columns": "timestamp,latency_ms,status\n1773886571,42,200\n1773886572,43,200\n1773886573,41,500\n",
    "scores": "time,score\n12,4\n13,5\n",
    "progress": "02:16:12 downloaded 1.2 GB / 3.4 GB\n02:16:13 epoch 3 / 10\n12% 1.2GB / 3.4GB\n",
    "block_io": "02:16:12 net 1.2GB / 3.4GB eth0\n1.2GB / 3.4GB   0B / 0B\n",
}


@pytest.mark.parametrize("kind", INNOCENT)
@pytest.mark.parametrize("home", HOMES)
def test_a_stream_without_samples_gives_none(home, kind):
    read = read_text(parser_of(home)(), INNOCENT[kind] * 20)
    assert read.claimed == 0


def test_the_unnamed_docker_columns_are_no_memory():
    read = read_text(
        parser_of("inline:InlineParser")(), "cuzk 812% 341.2GiB / 342GiB 99.77% 1.2GB / 3.4GB 8GiB / 9GiB 240"
    )
    assert sorted(read.samples["metric"]) == ["current", "limit"]


@pytest.mark.parametrize("home", HOMES)
@given(
    text=st.text(
        alphabet=st.sampled_from('0123456789:.,;-+/ \t\n"{}[]%GiBkMTZ_#=memory.currentmax\x00\x1b�é'), max_size=300
    )
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_no_text_raises(home, text):
    read_all_of(home, text)


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_shape_cut_anywhere_and_soiled_never_raises_and_invents_no_limit(shape, data):
    text = (FIXTURES / shape).read_text()
    cut = data.draw(st.integers(0, len(text)))
    read = read_all_of(expected_of(shape)["parser"], text[:cut], name=shape)
    known = {row["value"] for row in expected_of(shape)["samples"] if row["metric"] == "limit"}
    assert [v for v in read.values("limit") if v not in known] == []
    at = data.draw(st.integers(0, len(text)))
    read_all_of(expected_of(shape)["parser"], text[:at] + data.draw(st.text(max_size=20)) + text[at:], name=shape)


def read_all_of(home, text, name="x"):
    """As `Read`, but every line is parsed, claimed or not, sniffed or not."""
    lines = lines_of(text)
    read = Read(parser_of(home)(), lines, name=name, cut=not text.endswith("\n"))
    parser = parser_of(home)()
    mine = lines.filter(parser.claim(lines, read.context)) if lines.height else lines
    parser.parse(mine, read.context)
    return read


@pytest.mark.parametrize("home", HOMES)
def test_an_empty_stream_and_a_huge_line_are_nothing(home):
    assert read_text(parser_of(home)(), "").samples.height == 0
    assert read_all_of(home, "9" * 2_000_000 + "\n" + "{" * 100_000).samples.height == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_windows_line_ends_and_colours_change_nothing(shape):
    parser = parser_of(expected_of(shape)["parser"])
    plain = read_file(FIXTURES / shape)
    dressed = lines_of("\x1b[2m" + (FIXTURES / shape).read_text().replace("\n", "\x1b[0m\r\n"))
    assert Read(parser(), dressed, name=shape).samples.equals(Read(parser(), plain, name=shape).samples)
