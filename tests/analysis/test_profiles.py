"""Any daemon: which profiles a run gets, and what the shipped ones make of its lines."""

import polars as pl
import pytest

import postmortem
from postmortem_parsers.profiles import combined, load, names
from postmortem_parsers.profiles.choose import choose, knows

MIB = 1 << 20
GIB = 1 << 30

KILL = """\
[ 5211.402114] {name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[ 5211.402131] memory: usage {limit}kB, limit {limit}kB, failcnt 81
[ 5211.402140] Memory cgroup stats for /box:
[ 5211.402151] anon {anon}
[ 5211.402152] file 0
[ 5211.402153] kernel 4194304
[ 5211.402155] shmem 0
[ 5211.402160] Tasks state (memory values in pages):
[ 5211.402161] [  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
[ 5211.402162] [   4711]     0  4711   620000   508416   {pages}        0        0      1048576        0             0 {name}
[ 5211.402170] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=box,mems_allowed=0,oom_memcg=/box,task_memcg=/box,task={name},pid=4711,uid=0
[ 5211.402180] Memory cgroup out of memory: Killed process 4711 ({name}) total-vm:2480000kB, anon-rss:{anon_kb}kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1024kB oom_score_adj:0
"""

TORCH = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; "
    "20.11 GiB already allocated; 1.23 GiB free; 20.50 GiB reserved in total by PyTorch)\n"
)


def kill_report(name: str, limit: int) -> str:
    anon = limit - 4 * MIB
    return KILL.format(name=name, limit=limit >> 10, anon=anon, pages=anon >> 12, anon_kb=anon >> 10)


def analyze(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return postmortem.analyze(folder)


def head(text):
    lines = text.splitlines()
    return pl.DataFrame({"line": range(1, len(lines) + 1), "text": lines})


@pytest.mark.parametrize("name", names())
def test_each_profile_knows_its_own_samples(name):
    profile = load(name)
    for kind in (profile.event, profile.line, profile.block):
        for pattern in kind:
            assert all(knows(profile, head(sample)) for sample in pattern.sample[:1])


def test_the_projects_own_daemon_comes_first():
    assert names()[0] == "cuzk"
    assert list(names()[1:]) == sorted(names()[1:])


def test_a_run_uses_every_profile_that_knows_a_line_of_it_in_a_fixed_order():
    torch, cuzk = load("pytorch").line[0].sample[0], load("cuzk").event[0].sample[0]
    assert choose([head(torch), head(cuzk)]).name == "cuzk, pytorch"
    assert choose([head(cuzk), head(torch)]).name == "cuzk, pytorch"


def test_a_text_that_none_knows_is_left_to_the_first():
    assert choose([head("nothing of interest")]).name == "cuzk"
    assert choose([]).name == "cuzk"


def test_of_several_profiles_the_first_memory_model_counts():
    both = combined([load("jvm"), load("cuzk")])
    assert both.model == load("cuzk").model
    assert both.processes == ["java", "cuzk-daemon", "cuzk"]


def test_a_logfmt_budget_counts_without_a_profile_of_its_own(tmp_path):
    found = analyze(
        tmp_path, run="level=info msg=mem.init budget_mb=1921 total_ram_mb=7685\n", dmesg=kill_report("mill", 2 * GIB)
    )
    assert found.result.profile == "logfmt"
    assert found.arithmetic.budget.best == 1921 * MIB
    assert found.arithmetic.budget.high == 1922 * MIB - 1
    assert found.arithmetic.margin.best == 127 * MIB
    assert found.ending.how == "cgroup_limit"


def test_a_budget_above_the_limit_was_taken_from_the_host(tmp_path):
    found = analyze(
        tmp_path, run="level=info msg=mem.init budget_mb=7301 total_ram_mb=7685\n", dmesg=kill_report("mill", 2 * GIB)
    )
    assert found.verdict.cause == "limit_misdetected"
    assert any("host's 7.5 GiB" in finding.text for finding in found.verdict.causes[0].evidence)


def test_heap_that_only_a_budget_speaks_of_names_no_cause(tmp_path):
    found = analyze(tmp_path, run="level=info msg=mem.init budget_mb=1921\n", dmesg=kill_report("mill", 2 * GIB))
    assert found.verdict.cause == "inconclusive"
    assert "2.0 GiB anonymous" in found.verdict.summary


def test_a_ledger_is_taken_at_its_word_and_the_rest_is_overhead(tmp_path):
    log = (
        "time=2026-03-13T14:02:11Z level=info msg=mem.init budget_mb=1921\n"
        "time=2026-03-13T14:02:12Z level=info msg=job.admitted job=1 budget_used_mb=1200\n"
    )
    found = analyze(tmp_path, run=log, dmesg=kill_report("mill", 2 * GIB))
    parts = {part.part: part for part in found.arithmetic.parts}
    assert parts["working_set"].provision.best == 1200 * MIB
    assert parts["overhead"].actual.best == (2048 - 1200) * MIB
    assert parts["overhead"].provision.best == 127 * MIB
    assert found.arithmetic.excess_sum.best == found.arithmetic.slack.best == (1921 - 1200) * MIB
    assert found.verdict.cause == "overhead"


def test_a_jvm_whose_heap_is_as_large_as_its_container_had_no_margin(tmp_path):
    found = analyze(tmp_path, run="exec java -Xms512m -Xmx2g -jar app.jar\n", dmesg=kill_report("java", 2 * GIB))
    assert found.arithmetic.budget.best == 2 * GIB
    assert found.verdict.cause == "limit_misdetected"


def test_a_java_heap_that_is_full_is_an_exception_and_no_kill(tmp_path):
    log = (
        "[0.004s][info][gc,init] Heap Max Capacity: 512M\n"
        "[1.234s][info][gc] GC(3) Pause Young (Normal) (G1 Evacuation Pause) 511M->509M(512M) 5.3ms\n"
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n'
    )
    found = analyze(tmp_path, run=log)
    assert found.ending.how == "crashed"
    assert found.verdict.cause == "not_memory"
    assert found.arithmetic.budget.best == 512 * MIB


def test_gpu_memory_is_never_the_hosts(tmp_path):
    samples = "".join(f"2026-03-13T14:02:{second:02}Z,{3 * GIB},{64 * GIB}\n" for second in range(30))
    found = analyze(tmp_path, run=TORCH, memory="time,memory.current,memory.max\n" + samples)
    assert found.ending.how == "crashed"
    assert "VRAM" in found.ending.evidence[0].text
    assert found.verdict.cause == "not_memory"
    assert found.arithmetic.charged.best == 3 * GIB
    assert found.arithmetic.limit.best == 64 * GIB


def test_vllms_gpu_figures_become_marks_and_nothing_of_the_arithmetic(tmp_path):
    log = "INFO 03-13 14:02:11 [gpu_worker.py:298] Available KV cache memory: 11.06 GiB\n"
    found = analyze(tmp_path, run=log)
    assert (found.arithmetic.limit, found.arithmetic.budget, found.result.pool) == (None, None, None)
    assert found.result.sources[0].unmatched == 0


def test_a_kernel_report_alone_names_the_victim_and_what_memory_was(tmp_path):
    found = analyze(tmp_path, dmesg=kill_report("mill", 2 * GIB))
    assert found.result.profile is None
    assert found.verdict.summary.startswith("mill was killed by the cgroup's memory limit")
    parts = {part.part: part.actual.best for part in found.arithmetic.parts}
    assert parts["anonymous"] == 2 * GIB - 4 * MIB
    assert parts["kernel"] == 4 * MIB
    assert sum(parts.values()) == 2 * GIB


def test_processes_of_a_daemon_that_nobody_knows_are_not_its_neighbours(tmp_path):
    rows = "".join(f"2026-03-13T14:02:{second:02}Z,4711,mill,{900 + second}000000\n" for second in range(30))
    found = analyze(tmp_path, ps="time,pid,name,rss\n" + rows)
    assert all(cause.cause != "neighbour" for cause in found.verdict.causes)
    assert "neighbour" not in {part.part for part in found.arithmetic.parts}
