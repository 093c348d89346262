"""One recording from start to end: a command that is run, or a process or cgroup that is watched."""

import contextlib
import dataclasses
import datetime as dt
import os
import signal
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from postmortem import __version__
from postmortem.errors import InputError, NotFoundError, UsageError
from postmortem.recording import cgroups, gpu, processes, scrub, startup
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.child import Child, exit_code, passed_on
from postmortem.recording.cost import Cost, inside, own_rss
from postmortem.recording.kmsg import KernelLog
from postmortem.recording.sampler import Sampler
from postmortem.recording.say import say
from postmortem.recording.shares import Shares
from postmortem.recording.signals import noted
from postmortem.recording.writer import Appender, arrivals_file

__all__ = ["Recording", "new_folder", "record", "watch"]

_WATCH_S = 0.1
_SETTLE_S = 0.1  # the kernel's report follows the death by some milliseconds


@dataclasses.dataclass(frozen=True)
class Recording:
    """What came of it."""

    folder: Path
    returncode: int | None
    """As the command's own wait status: negative for a signal; None for a process that was only watched."""
    stopped_by: int | None
    """A signal that we were sent meanwhile."""
    oom_kills: int
    """By how much the cgroup's count of kills rose."""
    peak_rss: int
    """The recorder's own memory, in bytes."""
    core_share: float = 0.0
    """The recorder's own share of a core, 0…1."""
    inside: bool = False
    """Whether the recorder's memory was charged to the recorded cgroup."""

    @property
    def exit_code(self) -> int:
        """What a shell would report of the command; 0 after watching."""
        return 0 if self.returncode is None else exit_code(self.returncode)


def new_folder(wanted: Path | None) -> Path:
    """An empty directory for a run: the one that was asked for, else `postmortem-run-<time>`. Raises UsageError."""
    folder = wanted or Path(f"postmortem-run-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"cannot make {folder}: {error.strerror}"
        raise UsageError(msg) from error
    if any(not one.name.startswith(".") for one in folder.iterdir()):
        msg = f"{folder} is not empty: a run directory holds one run (give another with -o)"
        raise UsageError(msg)
    return folder


def record(
    command: Sequence[str], folder: Path, *, interval_s: float = 1.0, environment: Mapping[str, str] | None = None
) -> Recording:
    """Run a command to its end and leave the evidence in `folder`. Raises InputError where it cannot be run."""
    cost, kernel = Cost(), KernelLog()
    log, arrivals = _open_logs(folder)  # before the command runs: what cannot be recorded is not begun
    started = dt.datetime.now(dt.UTC)
    child = Child(command, environment=environment)
    variables = os.environ if environment is None else environment
    with (
        passed_on(child) as sent,
        _sampling(folder, lambda: _cgroup_of(child.pid), lambda: processes.tree(child.pid), interval_s, kernel) as it,
    ):
        group = cgroups.of_process(child.pid)
        _describe(folder, startup.Start(command, child.pid, group, variables, kernel_log=kernel.reason or "readable"))
        before = _kills(group)
        returncode = child.pump(log, arrivals)
    log.close()
    arrivals.close()
    _write_exit(folder, command, child.pid, started, returncode)
    _write_kernel(folder, kernel)
    rose = max(0, _kills(it.group) - before)
    return Recording(
        folder, returncode, sent[0] if sent else None, rose, own_rss(), cost.core_share(), inside(it.group)
    )


def watch(folder: Path, *, pid: int | None = None, path: Path | None = None, interval_s: float = 1.0) -> Recording:
    """Watch a process or a cgroup until it is gone or we are interrupted. Raises NotFoundError."""
    if pid is not None and not processes.alive(pid):
        msg = f"--pid {pid}: there is no such process"
        raise NotFoundError(msg)
    given = cgroups.at(path) if path is not None else None
    if path is not None and given is None:
        msg = f"--cgroup {path}: no memory counters there (a directory with memory.current or memory.usage_in_bytes)"
        raise NotFoundError(msg)
    cost, kernel = Cost(), KernelLog()
    find = (lambda: given) if given else (lambda: _cgroup_of(pid or 0))
    pids = given.pids if given else (lambda: processes.tree(pid or 0))
    group = find()
    before = _kills(group)
    with noted(signal.SIGINT, signal.SIGTERM) as told, _sampling(folder, find, pids, interval_s, kernel) as it:
        _describe(folder, startup.of_process(pid, group, kernel.reason or "readable"))
        while not told and (processes.alive(pid) if pid is not None else path is not None and path.exists()):
            time.sleep(_WATCH_S)
    _write_kernel(folder, kernel)
    rose = max(0, _kills(it.group) - before)
    return Recording(folder, None, told[0] if told else None, rose, own_rss(), cost.core_share(), inside(it.group))


def _open_logs(folder: Path) -> tuple[Appender, Appender]:
    try:
        return Appender(folder / "run.log"), arrivals_file(folder)
    except OSError as error:
        msg = f"cannot write into {folder}: {error.strerror}"
        raise InputError(msg) from error


@contextlib.contextmanager
def _sampling(
    folder: Path, find: Callable[[], Cgroup | None], pids: Callable[[], list[int]], interval_s: float, kernel: KernelLog
) -> Generator[Sampler]:
    sampler = Sampler(folder, find, pids, interval_s, lambda: kernel.append_to(folder / "dmesg.txt"))
    sampler.start()
    with gpu.beside(folder, interval_s), Shares(folder, pids):
        try:
            yield sampler
        finally:
            sampler.stop()


def _describe(folder: Path, start: startup.Start) -> None:
    try:
        (folder / "host.txt").write_text(startup.host_text(start.group))
        (folder / "start.json").write_text(startup.start_json(start, __version__))
    except OSError as error:
        say(f"cannot write into {folder}: {error.strerror}; the command runs on")


def _cgroup_of(pid: int) -> Cgroup | None:
    """Where a living process is. The kernel shows a dead one in the root, once it has given back its memory."""
    found = cgroups.of_process(pid)
    return found if processes.has_memory(pid) else None


def _kills(group: Cgroup | None) -> int:
    return group.limiting().counters().get("oom_kill", 0) if group else 0


def _write_exit(folder: Path, command: Sequence[str], pid: int, started: dt.datetime, returncode: int) -> None:
    words = " ".join(scrub.command(command)).replace("\n", " ")
    lines = [
        f"cmd={words}",
        f"pid={pid}",
        f"started={started:%Y-%m-%dT%H:%M:%S.%fZ}",
        f"exit_status={exit_code(returncode)}",
        *([f"signal={-returncode}"] if returncode < 0 else []),
        f"ended={dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
    ]
    try:
        with (folder / "exit.txt").open("w") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:  # said, not raised: the command's exit code must come out
        say(f"cannot write {folder}/exit.txt: {error.strerror}")


def _write_kernel(folder: Path, kernel: KernelLog) -> None:
    time.sleep(_SETTLE_S)
    kernel.append_to(folder / "dmesg.txt")
    kernel.close()
