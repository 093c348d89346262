"""What the kernel parser takes from a stream, and what it leaves; hostile input; kills told by several streams."""

import pathlib

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem_parsers import exits
from postmortem_parsers.exits import ExitsParser
from postmortem_parsers.host import HostParser
from postmortem_parsers.interface import Context
from postmortem_parsers.kernel import KernelParser, dedupe_kills

FIXTURES = pathlib.Path(__file__).parents[3] / "fixtures" / "kernel"
WHOLE = (FIXTURES / "memcg-v2-6.8.log").read_text()


def frame(text: str) -> pl.DataFrame:
    lines = text.split("\n")
    return pl.DataFrame({"line": range(1, len(lines) + 1), "text": lines}, schema={"line": pl.Int64, "text": pl.String})


def claimed(text: str) -> list[str]:
    lines = frame(text)
    return lines.filter(KernelParser().claim(lines, Context(0, "x", None)))["text"].to_list()


def test_a_whole_dmesg_file_is_the_kernels():
    text = "[    1.000000] eth0: renamed from veth1\n" + WHOLE.rstrip("\n")
    assert len(claimed(text)) == len(text.split("\n"))


def test_tracing_lines_are_left_to_the_daemons_parser():
    line = "2026-03-13T14:02:11.123456Z  INFO cuzk_core::memory: budget acquired amount_gib=14"
    bare = (FIXTURES / "dress-bare.log").read_text().rstrip("\n").split("\n")
    mixed = [part for report_line in bare for part in (report_line, line)]
    assert claimed("\n".join(mixed)) == bare


def test_a_memory_stat_dump_is_left_to_the_sample_parsers():
    assert claimed("anon 123\nfile 456\nshmem 7\ninactive_anon 8") == []


def test_a_memory_stat_dump_after_a_bare_report_is_left_too():
    bare = (FIXTURES / "dress-bare.log").read_text().rstrip("\n").split("\n")
    assert claimed("\n".join([*bare, "anon 123", "file 456"])) == bare


def test_syslog_lines_of_other_programs_are_left():
    assert (
        claimed("Mar  3 14:02:11 gpu-07 systemd[1]: cuzk.service: Main process exited, code=killed, status=9/KILL")
        == []
    )


def test_a_program_that_quotes_the_kernel_is_not_the_kernel(read_text):
    quoted = "Memory cgroup out of memory: Killed process 7 (x) total-vm:4kB, anon-rss:4kB, file-rss:0kB"
    tables, _ = read_text(f"Mar  3 14:02:11 gpu-07 node-problem-detector[9]: {quoted}\n")
    assert tables.get("kills") is None


@pytest.mark.parametrize(
    "name", ["dress-docker-json", "dress-containerd", "dress-journal-json", "dress-talos", "dress-rfc5424"]
)
def test_all_lines_of_a_shipped_kernel_log_are_claimed(name):
    text = (FIXTURES / f"{name}.log").read_text().rstrip("\n")
    assert claimed(text) == text.split("\n")


def test_the_same_kill_in_two_streams_counts_once(read_text):
    dmesg, _ = read_text((FIXTURES / "memcg-v2-6.8.log").read_text())
    syslog, _ = read_text((FIXTURES / "dress-syslog.log").read_text())
    kills = dedupe_kills(pl.concat([dmesg.get("kills"), syslog.get("kills").with_columns(source=pl.lit(1, pl.Int32))]))
    assert kills.height == 1
    assert kills["hostname"].to_list() == ["gpu-07"]
    assert kills["uptime_s"][0] is not None
    assert kills["time"][0] is not None


def test_the_same_kill_from_a_local_and_a_utc_clock_counts_once(read_text):
    local, _ = read_text((FIXTURES / "dress-ctime.log").read_text().replace("14:02:11", "16:02:11"))
    utc, _ = read_text((FIXTURES / "dress-journal-iso.log").read_text())
    assert dedupe_kills(pl.concat([local.get("kills"), utc.get("kills")])).height == 1


def test_equal_pids_on_two_hosts_are_two_kills(read_text):
    one, _ = read_text((FIXTURES / "dress-syslog.log").read_text())
    two, _ = read_text((FIXTURES / "dress-syslog.log").read_text().replace("gpu-07", "gpu-08"))
    assert dedupe_kills(pl.concat([one.get("kills"), two.get("kills")])).height == 2


def test_a_later_kill_of_a_reused_pid_is_another_kill(read_text):
    one = (FIXTURES / "memcg-v2-6.8.log").read_text()
    tables, _ = read_text(one + one.replace("[812432.", "[912432."))
    assert tables.get("kills").height == 2


def run_all(text: str) -> None:
    for parser in (KernelParser(), HostParser(), ExitsParser()):
        lines, context = frame(text), Context(0, "x", None)
        mask = parser.claim(lines, context)
        assert len(mask) == lines.height
        parser.parse(lines.filter(mask), context)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_report_with_pieces_cut_out_or_garbled_never_raises(data):
    text = data.draw(
        st.sampled_from(
            [
                WHOLE,
                *(
                    (FIXTURES / f"{name}.log").read_text()
                    for name in ("global-3.10", "dress-journal-json", "dress-journal-export")
                ),
            ]
        )
    )
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text)))
        stop = min(len(text), start + data.draw(st.integers(0, 200)))
        text = text[:start] + data.draw(st.text(max_size=8)) + text[stop:]
    run_all(text)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_never_raises_and_accuses_nobody(text):
    lines, context = frame(text), Context(0, "x", None)
    parser = KernelParser()
    assert parser.parse(lines.filter(parser.claim(lines, context)), context).get("kills") is None
    run_all(text)


@pytest.mark.parametrize("cut", range(10, len(WHOLE), 611))
def test_a_report_cut_anywhere_has_no_wrong_figure(cut, read_text):
    whole, _ = read_text(WHOLE)
    (truth,) = whole.get("kills").iter_rows(named=True)
    tables, _ = read_text(WHOLE[:cut])
    kills = tables.get("kills")
    for kill in [] if kills is None else kills.iter_rows(named=True):
        for name in ("usage", "limit", "total_vm", "anon_rss", "oom_memcg", "task_memcg", "victim", "pid", "stat_file"):
            assert kill[name] in (None, truth[name]), name


def test_empty_input_gives_empty_tables():
    for parser in (KernelParser(), HostParser(), ExitsParser()):
        lines, context = frame("").head(0), Context(0, "x", None)
        assert parser.claim(lines, context).len() == 0
        assert parser.parse(lines, context).names() == []


def test_a_few_lines_go_through_the_same_rules_as_many(monkeypatch: pytest.MonkeyPatch):
    files = [*FIXTURES.rglob("*.log"), *FIXTURES.parent.rglob("run.log")]
    texts = [text for file in files for text in file.read_text(errors="replace").splitlines()[:2000]]
    texts = [text for text in texts if len(text) < 400]
    assert len(texts) > 1000
    messages = [pl.Series("message", texts[at : at + 100]) for at in range(0, len(texts), 100)]
    few = [exits._ruled(some) for some in messages]
    monkeypatch.setattr(exits, "_FEW", 0)
    assert [exits._ruled(some).to_list() for some in messages] == [some.to_list() for some in few]
    assert any(some.any() for some in few)
