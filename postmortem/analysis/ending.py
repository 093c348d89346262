"""How one attempt ended, by the ladder of evidence of arithmetic.md, section 3.

Strong evidence silences weak evidence, in this order: a kill report that concerns the run; a runtime's OOMKilled or a
risen oom_kill counter; an exit status or a crash message; SIGKILL or sudden silence beside memory at its limit. What
contradicts the answer is kept beside it.
"""

import dataclasses
import datetime as dt
from typing import Literal

import polars as pl

from postmortem.analysis.cite import Citations
from postmortem.analysis.memory import Memory
from postmortem.result import Ending, Finding, How, Victim
from postmortem.run import Run
from postmortem.units import format_gib

__all__ = ["MEMORY_DEATHS", "Facts", "decide"]

MEMORY_DEATHS: frozenset[How] = frozenset({"cgroup_limit", "cgroup_limit_probable", "host_oom", "userland_oom"})

_NEAR = 0.97  # of the limit, charged: a kill follows within one allocation of a large daemon
_TAIL = dt.timedelta(seconds=90)
_PLACEHOLDER_YEAR = 2000  # parsers store it for stamps without a year or day; without a dated log it stays
_CRASHES = ("panic", "segfault", "abort", "bus_error", "cuda_error", "cuda_oom", "xid", "no_space")
_CRASH_CODES = {101: "a Rust panic", 132: "SIGILL", 134: "SIGABRT", 135: "SIGBUS", 136: "SIGFPE", 139: "SIGSEGV"}
_STOP_CODES = {129: "SIGHUP", 130: "SIGINT", 143: "SIGTERM"}


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the decision needs of one attempt."""

    run: Run
    """The attempt's rows."""
    kills: pl.DataFrame
    """Kill reports that concern it."""
    memory: Memory
    limit: int | None
    log_end: dt.datetime | None
    """The daemon's last dated line."""
    evidence_end: dt.datetime | None
    modelled_use: int | None
    """Least memory that tables and pool alone account for at the end; for runs without samples."""
    last: bool
    """Whether it is the capture's last attempt."""
    open_phase: bool
    """Whether a phase had begun and not ended."""


@dataclasses.dataclass
class _Case:
    """What the ladder has found so far."""

    facts: Facts
    cites: Citations
    code: int | None = None
    signal: int | None = None
    code_at: tuple[int, int] | None = None
    evidence: list[Finding] = dataclasses.field(default_factory=list[Finding])
    against: list[Finding] = dataclasses.field(default_factory=list[Finding])

    def ends(self, *what: str) -> pl.DataFrame:
        return self.facts.run.table("ends").filter(pl.col("what").is_in(what))

    def say(self, text: str, *pairs: tuple[int, int], weight: float = 1.0) -> None:
        self.evidence.append(self.cites.finding(text, *pairs, weight=weight))

    def doubt(self, text: str, *pairs: tuple[int, int], weight: float = 0.5) -> None:
        self.against.append(self.cites.finding(text, *pairs, weight=weight))


def decide(facts: Facts, cites: Citations) -> Ending:
    """The ending of one attempt, with the evidence for it and against it."""
    case = _Case(facts, cites)
    _read_exit(case)
    for rung in (_by_report, _by_runtime, _by_counter, _by_crash, _by_stop, _by_kill_signal, _by_silence):
        answer = rung(case)
        if answer is not None:
            how, certainty, victim, time = answer
            return _ending(case, how, certainty, victim, time)
    return _ending(case, "unknown", "weak", None, None)


_Answer = tuple[How, Literal["proven", "probable", "weak"], Victim | None, dt.datetime | None]


def _ending(
    case: _Case,
    how: How,
    certainty: Literal["proven", "probable", "weak"],
    victim: Victim | None,
    time: dt.datetime | None,
) -> Ending:
    known = [t for t in (case.facts.log_end, case.facts.evidence_end) if t is not None]
    if time is not None and time.year <= _PLACEHOLDER_YEAR:
        time = None
    known = [t for t in known if t.year > _PLACEHOLDER_YEAR]
    uncertainty = 1.0 if time is not None else None
    if time is None and known:
        time = max(known) if how in MEMORY_DEATHS else case.facts.log_end or max(known)
        uncertainty = max(1.0, (max(known) - min(known)).total_seconds(), case.facts.memory.interval_s or 0.0)
    return Ending(
        how=how,
        time=time,
        time_uncertainty_s=uncertainty,
        exit_code=case.code,
        signal=case.signal,
        victim=victim,
        evidence=case.evidence,
        against=case.against,
        certainty=certainty,
    )


def _read_exit(case: _Case) -> None:
    """The daemon's exit status; a wrapper's own status that differs is said, not believed."""
    rows = case.ends("exit_code", "container_exit", "killed_message", "segfault", "abort", "bus_error")
    # A wrapper that names the daemon speaks of it; one that does not speaks of itself or of its client.
    named = pl.col("name").is_in(list(case.facts.run.model.processes)).fill_null(value=False)
    real = rows.filter(pl.col("by").ne_missing("wrapper") | named)
    killed = real.filter((pl.col("signal") == 9) | (pl.col("code") == 137))
    chosen = killed if killed.height else real.filter(pl.col("code").is_not_null() | pl.col("signal").is_not_null())
    if chosen.height:
        row = chosen.row(chosen.height - 1, named=True)
        codes = chosen["code"].drop_nulls()
        signals = chosen["signal"].drop_nulls()
        case.code = int(codes[-1]) if len(codes) else None
        case.signal = int(signals[-1]) if len(signals) else None
        if case.signal is None and case.code is not None and 128 < case.code < 160:
            case.signal = case.code - 128
        if case.code is None and case.signal is not None:
            case.code = 128 + case.signal
        case.code_at = (row["source"], row["line"])
    _distrust_zero(case)
    masked = rows.filter(
        pl.col("code").is_not_null() & (pl.col("code") != (case.code if case.code is not None else -1))
    )
    for row in masked.head(3).iter_rows(named=True):
        if case.code is None and row["by"] == "wrapper":
            continue
        case.doubt(
            f"a wrapper reports exit code {row['code']}, which a pipe or negation can make of any other",
            (row["source"], row["line"]),
            weight=0.2,
        )


def _distrust_zero(case: _Case) -> None:
    """Exit code 0 of a daemon that lost its clients in the middle of a phase, without a word: a pipe's, not its own."""
    if case.code != 0 or case.code_at is None or case.ends("stopped", "stop_request").height:
        return
    if case.facts.open_phase and case.ends("client_error").height:
        case.doubt(
            "an exit code of 0 is reported, but the log stops inside a phase and the client lost the connection: "
            "the code is that of a pipe or a negation",
            case.code_at,
        )
        case.code = case.signal = case.code_at = None


def _by_report(case: _Case) -> _Answer | None:
    """A kill report that concerns the run is proof."""
    if case.facts.kills.is_empty():
        return None
    finished = case.ends("stopped").height and case.code in (0, None) and not case.facts.open_phase
    rows = case.facts.kills.sort("time", nulls_last=True)
    own = rows.filter(pl.col("victim").map_elements(case.facts.run.model.is_daemon, return_dtype=pl.Boolean))
    row = (own if own.height else rows).row(-1, named=True)
    where = ((row["source"], row["first_line"] or row["line"]), (row["source"], row["line"]))
    name = f"{row['victim'] or 'a process'}" + (f" (pid {row['pid']})" if row["pid"] is not None else "")
    if finished and not own.height:
        case.doubt(f"a kill report names {name}, but the daemon stopped in order", *where)
        return None
    victim = Victim(name=row["victim"], pid=row["pid"])
    if row["constraint"] == "userspace" or (row["killer"] or "kernel") != "kernel":
        case.say(f"{row['killer']} killed {name}", *where)
        return "userland_oom", "proven", victim, row["time"]
    if row["constraint"] in ("global", "cpuset", "memory_policy"):
        case.say(f"the kernel's report is host-wide (constraint {row['constraint']}): it killed {name}", *where)
        return "host_oom", "proven", victim, row["time"]
    limit = f" at its limit of {format_gib(row['limit'])}" if row["limit"] else ""
    group = f" of cgroup {row['oom_memcg']}" if row["oom_memcg"] else ""
    case.say(f"the kernel killed {name} because the memory{group} was{limit or ' at its limit'}", *where)
    known = case.facts.run.profile is not None and case.facts.run.model.processes
    if own.is_empty() and known and not case.facts.run.model.is_daemon(row["victim"]):
        case.doubt(f"the report's victim is {name}, not the daemon by name", where[1], weight=0.3)
    return "cgroup_limit", "proven", victim, row["time"]


def _by_runtime(case: _Case) -> _Answer | None:
    """The word of who started the process: a container runtime, systemd, slurm, the kubelet."""
    for row in case.ends("oom_event").head(1).iter_rows(named=True):
        case.doubt(
            f"an OOM event alone names no victim: {_short(row['text'])}", (row["source"], row["line"]), weight=0.2
        )
    rows = case.ends(*_RUNTIME_WORDS)
    if rows.is_empty():
        return None
    row = rows.row(-1, named=True)
    if case.ends("stopped").height and case.code in (0, None) and not case.facts.open_phase:
        # Such a word is about the container or unit: any process in it can have been the one that was killed.
        case.doubt(f"{_RUNTIME_WORDS[row['what']]}, yet the daemon stopped in order", (row["source"], row["line"]))
        return None
    case.say(_RUNTIME_WORDS[row["what"]], (row["source"], row["line"]))
    victim = Victim(name=row["name"], pid=row["pid"])
    if row["what"] == "system_oom":
        return "host_oom", "probable", victim, row["time"]
    return "cgroup_limit", "proven", victim, row["time"]


_RUNTIME_WORDS = {
    "container_oom": "the container runtime states OOMKilled",
    "unit_oom": "systemd states the unit's result as oom-kill",
    "slurm_oom": "slurm states an out-of-memory kill in the job's cgroup",
    "oom_group": "the kernel killed all tasks of the cgroup (memory.oom.group)",
    "system_oom": "the kubelet states a SystemOOM: the node was out of memory",
}


def _by_counter(case: _Case) -> _Answer | None:
    """The cgroup's oom_kill counter rose while the attempt ran."""
    counted = case.facts.memory.samples.filter(pl.col("oom_kill").is_not_null())
    if counted.height < 2 or counted["oom_kill"][-1] <= counted["oom_kill"][0]:
        return None
    risen = counted.filter(pl.col("oom_kill") > counted["oom_kill"][0]).row(0, named=True)
    if case.code == 0 or (case.ends("stopped").height and not case.facts.open_phase):
        case.doubt(
            "the cgroup's oom_kill counter rose, yet the daemon ended in order", (risen["source"], risen["line"])
        )
        return None
    case.say(
        f"the cgroup's oom_kill counter rose from {counted['oom_kill'][0]} to {counted['oom_kill'][-1]}",
        (risen["source"], risen["line"]),
    )
    return "cgroup_limit", "proven", None, risen["time"]


def _by_crash(case: _Case) -> _Answer | None:
    """A crash message, or the exit code of one."""
    if case.signal == 9:
        return None
    crashes = case.ends(*_CRASHES)
    fatal = case.code not in (0, None) or case.facts.last
    if crashes.height and fatal and not _orderly(case):
        row = crashes.row(0, named=True)
        pairs = [(r["source"], r["line"]) for r in crashes.head(4).iter_rows(named=True)]
        case.say(f"{_CRASH_WORDS.get(row['what'], row['what'])}: {_short(row['text'])}", *pairs)
        if case.code_at is not None and case.code is not None:
            case.say(f"exit code {case.code}", case.code_at, weight=0.8)
        return "crashed", "proven", Victim(name=row["name"], pid=row["pid"]), row["time"]
    if case.code in _CRASH_CODES and case.code_at is not None:
        case.say(f"exit code {case.code}: {_CRASH_CODES[case.code]}", case.code_at)
        return "crashed", "proven", None, None
    return None


_CRASH_WORDS = {
    "panic": "a panic",
    "segfault": "a segmentation fault",
    "abort": "an abort",
    "bus_error": "a bus error",
    "cuda_error": "a CUDA error",
    "cuda_oom": "the GPU's memory was exhausted (VRAM, not the host's memory)",
    "xid": "the GPU driver reported an Xid error",
    "no_space": "no space left on the device",
}


def _short(text: str | None, most: int = 120) -> str:
    text = " ".join((text or "").split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _orderly(case: _Case) -> bool:
    return case.ends("stopped").height > 0 or case.code == 0


def _by_stop(case: _Case) -> _Answer | None:
    """Asked to stop, or done."""
    if case.signal == 9:
        return None
    stopped, asked = case.ends("stopped"), case.ends("stop_request")
    for rows, text in ((asked, "asked to stop"), (stopped, "the daemon stopped in order")):
        for row in rows.tail(1).iter_rows(named=True):
            said = _short(row["text"] or row["name"])
            case.say(f"{text}: {said}" if said else text, (row["source"], row["line"]))
    if case.code in _STOP_CODES and case.code_at is not None:
        case.say(f"exit code {case.code}: {_STOP_CODES[case.code]}", case.code_at)
        return "stopped", "proven", None, None
    if asked.height or stopped.height:
        terminated = asked.filter(pl.col("signal").eq_missing(15)).height > 0
        done = not case.facts.open_phase and (stopped.height > 0 or not terminated)
        certainty = "proven" if stopped.height or not done else "probable"
        return "finished" if done else "stopped", certainty, None, None
    return _by_code(case)


def _by_code(case: _Case) -> _Answer | None:
    """An exit code alone: zero is an orderly end, another an error of the program's own."""
    if case.code is None or case.code_at is None:
        return None
    case.say(f"exit code {case.code}", case.code_at)
    return ("finished", "proven", None, None) if case.code == 0 else ("crashed", "probable", None, None)


def _by_kill_signal(case: _Case) -> _Answer | None:
    """SIGKILL: by the limit when memory was there, else unexplained."""
    if case.signal != 9 or case.code_at is None:
        return None
    operator = case.ends("operator_kill")
    for row in operator.tail(1).iter_rows(named=True):
        case.say(f"somebody sent the signal: {_short(row['text'])}", (row["source"], row["line"]))
    case.say("exit code 137 or `Killed`: SIGKILL", case.code_at, weight=0.6)
    if operator.height:
        return "sigkill_unexplained", "proven", None, None
    if _near_limit(case):
        return "cgroup_limit_probable", "probable", None, None
    case.doubt("SIGKILL also comes from docker stop, liveness probes, operators and evictions", weight=0.3)
    return "sigkill_unexplained", "weak", None, None


def _by_silence(case: _Case) -> _Answer | None:
    """The log just ends."""
    errors = case.ends("client_error")
    timeouts = case.ends("client_timeout")
    for row in errors.head(1).iter_rows(named=True):
        case.say(f"the client lost the daemon: {_short(row['text'])}", (row["source"], row["line"]), weight=0.7)
    if timeouts.height and errors.is_empty():
        row = timeouts.row(0, named=True)
        case.say(f"the client gave up waiting: {_short(row['text'])}", (row["source"], row["line"]), weight=0.7)
        case.doubt("nothing says that the daemon ended")
        return "running", "probable", None, None
    if _near_limit(case):
        if case.facts.log_end is None and not case.facts.memory.ends_at(case.facts.limit):
            case.doubt("memory was below its limit again when the samples end, and no log says that anything ended")
            return "unknown", "weak", None, None
        words = "the samples end there" if case.facts.log_end is None else "the daemon's log stops without a word"
        case.say(f"{words}, and no exit status is left", *_last_line(case), weight=0.6)
        return "cgroup_limit_probable", "probable", None, None
    if errors.height:
        case.doubt("memory was not seen at its limit, and no exit status is left")
        return "unknown", "weak", None, None
    if case.facts.log_end is not None:
        case.say("the log ends while the daemon works", *_last_line(case), weight=0.4)
        return "running", "weak", None, None
    return None


def _last_line(case: _Case) -> list[tuple[int, int]]:
    if case.facts.log_end is None:
        return []
    rows = case.facts.run.lines_time.drop_nulls("time").filter(pl.col("time") <= case.facts.log_end)
    if rows.is_empty():
        return []
    row = rows.sort("time", "line").row(-1, named=True)
    return [(row["source"], row["line"])]


def _near_limit(case: _Case) -> bool:
    """Memory at its limit when the evidence ends, by samples; without any, by what tables and pool alone account for."""
    facts = case.facts
    if facts.limit is None:
        return False
    samples = facts.memory.samples
    if samples.height:
        last = samples["time"][-1]
        tail = samples.filter(pl.col("time") >= last - _TAIL)
        top = (
            tail.filter(pl.col("current") >= 0.995 * pl.col("current").max()).sort("unreclaimable").row(-1, named=True)
        )
        slack = facts.memory.step
        if top["current"] + slack >= _NEAR * facts.limit:
            if top["reclaimable"] is not None and top["unreclaimable"] < 0.9 * facts.limit:
                case.doubt(
                    f"of {format_gib(top['current'])} charged, {format_gib(top['reclaimable'])} was reclaimable page cache",
                    (top["source"], top["line"]),
                )
                return False
            case.say(
                f"memory stood at {format_gib(top['current'])} of {format_gib(facts.limit)} in the last samples",
                (top["source"], top["line"]),
                weight=0.9,
            )
            return True
        if (facts.memory.interval_s or 0) < 30:
            case.doubt(
                f"the last samples show {format_gib(top['current'])} of {format_gib(facts.limit)}",
                (top["source"], top["line"]),
            )
            return False
    if facts.modelled_use is not None and facts.modelled_use >= 0.9 * facts.limit:
        case.say(
            f"tables, pool and least heap alone account for {format_gib(facts.modelled_use)} of {format_gib(facts.limit)}",
            weight=0.5,
        )
        return True
    return False
