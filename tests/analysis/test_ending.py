"""How it ended, rung by rung (arithmetic.md, section 3): small runs by hand, each rung with the evidence that contradicts it.

All runs are one daemon that works from second 0 to second 100 under a limit of 100 GiB.
"""

import pytest
from analysis.making import at, lines_time, result_of, run, table

from postmortem.units import GIB

LIMIT = 100 * GIB
END = 100
NEAR, FAR = 99 * GIB, 40 * GIB
LOG, MEMORY, DMESG, EXIT = range(4)


def kill(seconds=END + 0.5, victim="cuzk-daemon", **more):
    row = {"time": seconds, "victim": victim, "pid": 7, "killer": "kernel", "constraint": "memcg", "limit": LIMIT}
    return row | {"usage": LIMIT, "report": 1} | more


def end(what, seconds=END + 0.5, **more):
    return {"what": what, "time": seconds, **more}


def memory(*, last=FAR, cache=None, oom_kill=None, every=2, until=END, limit=LIMIT):
    """Samples that rise to `last`; `cache`: reclaimable bytes of it; `oom_kill`: the counter's last value."""
    rows = []
    for second in range(0, until + 1, every):
        used = round(last * (0.5 + 0.5 * second / until))
        figures = {"current": used, "limit": limit}
        if cache is not None:
            figures |= {"file": cache + GIB, "shmem": GIB}
        if oom_kill is not None:
            figures["oom_kill"] = oom_kill if second == until else 0
        rows += [
            {"time": second, "metric": m, "value": v, "scope": "cgroup"} for m, v in figures.items() if v is not None
        ]
    return rows


def ending(*, kills=(), ends=(), samples=None, phase="open", pool=0, marks=(), work=()):
    """The ending of the run that left this evidence. `phase`: open, closed, or None; `pool`: GiB owned at the end."""
    jobs = [
        {"op": "start", "time": 0},
        *({"op": "synth_start", "time": s, "job": "j", "partition": 0} for s in (5, 95)),
    ]
    spans = [{"op": "start", "name": "phase 2", "time": 10}, {"op": "end", "name": "phase 2", "time": 99}]
    buffers = [
        {"op": "alloc", "time": 20 + n, "size": GIB, "total": (n + 1) * GIB, "buffers": n + 1} for n in range(pool)
    ]
    tables = {
        "work": table("work", [*jobs, *work]),
        "budget": table("budget", [{"op": "init", "time": 0, "total": 90 * GIB, "total_ulp": GIB}]),
        "pool": table("pool", buffers),
        "samples": table("samples", memory() if samples is None else samples, source=MEMORY),
        "kills": table("kills", list(kills), source=DMESG),
        "ends": table("ends", list(ends), source=EXIT),
        "phases": table("phases", {"open": spans[:1], "closed": spans, None: []}[phase]),
        "marks": table("marks", list(marks)),
    }
    return result_of(run(tables, lines_time(*range(0, END + 1, 5)))).ending


STATED = [{"what": "limit_stated", "value": LIMIT, "time": 0}]
ASKED = end("stop_request", 99, by="daemon", name="SIGTERM", signal=15, text="received SIGTERM")
STOPPED = end("stopped", 100, by="daemon", text="cuzk-daemon stopped")
LOST = end("client_error", by="client", text="transport error: broken pipe")


def code(number, by="shell", **more):
    return end("exit_code", by=by, code=number, signal=number - 128 if number > 128 else None, **more)


LADDER = {
    # A kill report that concerns the run is proof …
    "a report of the cgroup": ({"kills": [kill()]}, "cgroup_limit", "proven"),
    "a report of the cgroup beside memory that was sampled far below": ({"kills": [kill()], "samples": memory(last=FAR)}, "cgroup_limit", "proven"),
    "a report of the host": ({"kills": [kill(constraint="global", limit=None)]}, "host_oom", "proven"),
    "a report of a cpuset": ({"kills": [kill(constraint="cpuset", limit=None)]}, "host_oom", "proven"),
    "a report of a userland daemon": ({"kills": [kill(killer="systemd-oomd", constraint="userspace")]}, "userland_oom", "proven"),
    "a report and exit code 137": ({"kills": [kill()], "ends": [code(137)]}, "cgroup_limit", "proven"),
    "a report that names another process of the cgroup": ({"kills": [kill(victim="lotus-worker")], "ends": [code(137)]}, "cgroup_limit", "proven"),
    "a report by seconds since boot only": ({"kills": [kill(None, uptime_s=812_403.0)], "ends": [code(137)]}, "cgroup_limit", "proven"),
    # … unless it is of another time, or the daemon went on.
    "an older report of the daemon's own name": ({"kills": [kill(-4000)], "ends": [STOPPED], "phase": "closed"}, "finished", "proven"),
    "an older report and silence": ({"kills": [kill(-4000)]}, "running", "weak"),
    "a later report": ({"kills": [kill(90_000)], "ends": [STOPPED], "phase": "closed"}, "finished", "proven"),
    "a report of another process beside an orderly stop": ({"kills": [kill(victim="curio")], "ends": [STOPPED, code(0)], "phase": "closed"}, "finished", "proven"),
    # The runtime and the counter.
    "OOMKilled": ({"ends": [end("container_oom", by="runtime")]}, "cgroup_limit", "proven"),
    "systemd's oom-kill result": ({"ends": [end("unit_oom", by="runtime")]}, "cgroup_limit", "proven"),
    "the kubelet's SystemOOM": ({"ends": [end("system_oom", by="runtime")]}, "host_oom", "probable"),
    "an OOM event without a victim": ({"ends": [end("oom_event", by="runtime", text="OOM detected")]}, "running", "weak"),
    "OOMKilled beside an orderly stop": ({"ends": [end("container_oom", by="runtime"), STOPPED, code(0)], "phase": "closed"}, "finished", "proven"),
    "a risen oom_kill counter": ({"samples": memory(last=NEAR, oom_kill=1)}, "cgroup_limit", "proven"),
    "a risen oom_kill counter beside exit code 0": ({"samples": memory(last=NEAR, oom_kill=1), "ends": [code(0)], "phase": "closed"}, "finished", "proven"),
    "a counter that stands above zero all the time": ({"samples": [r | {"value": 4} if r["metric"] == "oom_kill" else r for r in memory(last=FAR, oom_kill=1)]}, "running", "weak"),
    # Crashes.
    "a panic and exit code 101": ({"ends": [end("panic", 100, by="daemon", text="index out of bounds"), code(101)]}, "crashed", "proven"),
    "a panic beside memory at its limit": ({"ends": [end("panic", 100, by="daemon", text="index out of bounds"), code(101)], "samples": memory(last=NEAR)}, "crashed", "proven"),
    "exit code 139": ({"ends": [code(139)]}, "crashed", "proven"),
    "exit code 134 beside memory at its limit": ({"ends": [code(134)], "samples": memory(last=NEAR)}, "crashed", "proven"),
    "a segmentation fault in the kernel log": ({"ends": [end("segfault", by="kernel", text="segfault at 0")]}, "crashed", "proven"),
    "an Xid error": ({"ends": [end("xid", 99, by="kernel", text="Xid 79: GPU has fallen off the bus"), code(134)]}, "crashed", "proven"),
    "a panic that the daemon outlived": ({"ends": [end("panic", 30, by="daemon", text="in a worker"), STOPPED, code(0)], "phase": "closed"}, "finished", "proven"),
    "a panic and SIGKILL at the limit": ({"ends": [end("panic", 30, by="daemon", text="in a worker"), code(137)], "samples": memory(last=NEAR)}, "cgroup_limit_probable", "probable"),
    "exit code 1": ({"ends": [code(1)]}, "crashed", "probable"),
    # Stops.
    "SIGTERM and exit code 143": ({"ends": [ASKED, code(143)]}, "stopped", "proven"),
    "exit code 143 beside memory at its limit": ({"ends": [code(143)], "samples": memory(last=NEAR)}, "stopped", "proven"),
    "exit code 130": ({"ends": [code(130)]}, "stopped", "proven"),
    "an orderly stop inside a phase": ({"ends": [ASKED, STOPPED]}, "stopped", "proven"),
    "an orderly stop after the last phase": ({"ends": [STOPPED], "phase": "closed"}, "finished", "proven"),
    "an orderly stop at the limit": ({"ends": [STOPPED, code(0)], "phase": "closed", "samples": memory(last=NEAR)}, "finished", "proven"),
    "exit code 0": ({"ends": [code(0)], "phase": "closed"}, "finished", "proven"),
    "exit code 0 that a lost client contradicts": ({"ends": [code(0), LOST], "samples": memory(last=NEAR)}, "cgroup_limit_probable", "probable"),
    "exit code 0 of the wrapper only": ({"ends": [code(0, by="wrapper"), LOST], "samples": memory(last=NEAR)}, "cgroup_limit_probable", "probable"),
    # SIGKILL.
    "exit code 137 at the limit": ({"ends": [code(137)], "samples": memory(last=NEAR)}, "cgroup_limit_probable", "probable"),
    "exit code 137 beside a wrapper's 1": ({"ends": [code(137), code(1, by="wrapper")], "samples": memory(last=NEAR)}, "cgroup_limit_probable", "probable"),
    "`Killed` at the limit": ({"ends": [end("killed_message", by="shell", signal=9)], "samples": memory(last=NEAR)}, "cgroup_limit_probable", "probable"),
    "exit code 137 far below": ({"ends": [code(137)]}, "sigkill_unexplained", "weak"),
    "exit code 137 at the limit, but of page cache": ({"ends": [code(137)], "samples": memory(last=NEAR, cache=40 * GIB)}, "sigkill_unexplained", "weak"),
    "an operator's kill -9": ({"ends": [end("operator_kill", 99, by="wrapper", text="kill -9 7"), code(137)]}, "sigkill_unexplained", "proven"),
    "an operator's kill -9 at the limit": ({"ends": [end("operator_kill", 99, by="wrapper", text="kill -9 7"), code(137)], "samples": memory(last=NEAR)}, "sigkill_unexplained", "proven"),
    # Silence.
    "silence at the limit": ({"ends": [LOST], "samples": memory(last=NEAR)}, "cgroup_limit_probable", "probable"),
    "silence at the limit, but of page cache": ({"ends": [LOST], "samples": memory(last=NEAR, cache=40 * GIB)}, "unknown", "weak"),
    "silence far below, the client lost": ({"ends": [LOST]}, "unknown", "weak"),
    "silence far below": ({}, "running", "weak"),
    "a client that gave up waiting": ({"ends": [end("client_timeout", by="client", text="deadline exceeded")]}, "running", "probable"),
    "silence without samples, the pool alone near the limit": ({"samples": [], "pool": 93, "marks": STATED, "ends": [LOST]}, "cgroup_limit_probable", "probable"),
    "silence without samples, the pool far below": ({"samples": [], "pool": 20, "marks": STATED, "ends": [LOST]}, "unknown", "weak"),
    "silence without samples or limit": ({"samples": [], "pool": 93, "ends": [LOST]}, "unknown", "weak"),
}  # fmt: skip


@pytest.mark.parametrize("name", LADDER)
def test_the_ladder(name):
    evidence, how, certainty = LADDER[name]
    found = ending(**evidence)
    assert (found.how, found.certainty) == (how, certainty)


SAID_BESIDE = {
    "a report of another process beside an orderly stop": "stopped in order",
    "OOMKilled beside an orderly stop": "OOMKilled",
    "a risen oom_kill counter beside exit code 0": "oom_kill",
    "a report that names another process of the cgroup": "lotus-worker",
    "exit code 137 at the limit, but of page cache": "page cache",
    "exit code 137 far below": "docker stop",
    "exit code 137 beside a wrapper's 1": "wrapper",
    "exit code 0 that a lost client contradicts": "exit code of 0",
    "silence far below, the client lost": "not seen at its limit",
}


@pytest.mark.parametrize("name", SAID_BESIDE)
def test_what_contradicts_the_answer_is_said_beside_it(name):
    found = ending(**LADDER[name][0])
    assert SAID_BESIDE[name] in " ".join(finding.text for finding in found.against)


@pytest.mark.parametrize("name", [name for name, (_, how, _) in LADDER.items() if how != "unknown"])
def test_every_ending_has_evidence_with_its_lines(name):
    found = ending(**LADDER[name][0])
    assert found.evidence
    assert all(line.partition(":")[2].isdigit() for finding in found.evidence for line in finding.lines)


def test_the_exit_status_and_the_victim_are_stated():
    found = ending(kills=[kill()], ends=[code(137)])
    assert (found.exit_code, found.signal) == (137, 9)
    assert (found.victim.name, found.victim.pid) == ("cuzk-daemon", 7)
    assert found.time == at(END + 0.5)


def test_a_shells_killed_message_means_137():
    found = ending(ends=[end("killed_message", by="shell", signal=9)], samples=memory(last=NEAR))
    assert (found.exit_code, found.signal) == (137, 9)


def test_without_a_kill_time_the_uncertainty_reaches_back_to_the_last_line():
    found = ending(ends=[LOST], samples=memory(last=NEAR, until=120))
    assert found.time is not None
    assert found.time_uncertainty_s >= 20


def test_a_daemon_that_is_started_again_ends_each_attempt_for_itself():
    again = {"op": "start", "time": 60}
    found = ending(ends=[code(137) | {"time": at(57)}, STOPPED], samples=[], phase="closed", work=[again])
    assert found.how == "finished"
