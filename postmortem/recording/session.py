"""One recording from start to end: a command that is run, or a process or cgroup that is watched."""

import contextlib
import dataclasses
import datetime as dt
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path

from postmortem import __version__
from postmortem.errors import InputError, NotFoundError, UsageError
from postmortem.recording import cgroups, processes, startup
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.child import Child, exit_code, passed_on
from postmortem.recording.kmsg import KernelLog
from postmortem.recording.sampler import Sampler
from postmortem.recording.writer import Appender

__all__ = ["Recording", "new_folder", "record", "watch"]

_GPU_QUERY = "timestamp,index,memory.used,memory.total"
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

    @property
    def exit_code(self) -> int:
        """What a shell would report of the command; 0 after watching."""
        return 0 if self.returncode is None else exit_code(self.returncode)


def new_folder(wanted: Path | None) -> Path:
    """An empty directory for a run: the one that was asked for, else `postmortem-run-<time>`. Raises UsageError."""
    folder = wanted or Path(f"postmortem-run-{dt.datetime.now(dt.UTC):%Y%m%dT%H%M%SZ}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".record").mkdir(exist_ok=True)
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
    kernel = KernelLog()
    started = dt.datetime.now(dt.UTC)
    child = Child(command, environment=environment)
    log, arrivals = Appender(folder / "run.log"), Appender(folder / ".record" / "arrivals")
    with (
        passed_on(child) as sent,
        _sampling(folder, lambda: _cgroup_of(child.pid), lambda: processes.tree(child.pid), interval_s) as it,
    ):
        _describe(folder, command, child.pid, cgroups.of_process(child.pid))
        before = _kills(cgroups.of_process(child.pid))
        returncode = child.pump(log, arrivals)
    log.close()
    arrivals.close()
    _write_exit(folder, command, child.pid, started, returncode)
    _write_kernel(folder, kernel)
    rose = max(0, _kills(it.group) - before)
    return Recording(folder, returncode, sent[0] if sent else None, rose, own_rss())


def watch(folder: Path, *, pid: int | None = None, path: Path | None = None, interval_s: float = 1.0) -> Recording:
    """Watch a process or a cgroup until it is gone or we are interrupted. Raises NotFoundError."""
    if pid is not None and not processes.alive(pid):
        msg = f"--pid {pid}: there is no such process"
        raise NotFoundError(msg)
    given = cgroups.at(path) if path is not None else None
    if path is not None and given is None:
        msg = f"--cgroup {path}: no memory counters there (a directory with memory.current or memory.usage_in_bytes)"
        raise NotFoundError(msg)
    kernel = KernelLog()
    find = (lambda: given) if given else (lambda: _cgroup_of(pid or 0))
    pids = given.pids if given else (lambda: processes.tree(pid or 0))
    group = find()
    before, stopped = _kills(group), None
    with _sampling(folder, find, pids, interval_s) as it:
        _describe(folder, [], pid, group)
        try:
            while processes.alive(pid) if pid is not None else path is not None and path.exists():
                time.sleep(_WATCH_S)
        except KeyboardInterrupt:
            stopped = 2
    _write_kernel(folder, kernel)
    return Recording(folder, None, stopped, max(0, _kills(it.group) - before), own_rss())


def own_rss() -> int:
    """The recorder's largest resident size, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@contextlib.contextmanager
def _sampling(
    folder: Path, find: Callable[[], Cgroup | None], pids: Callable[[], list[int]], interval_s: float
) -> Generator[Sampler]:
    sampler = Sampler(folder, find, pids, interval_s)
    sampler.start()
    with _gpu(folder, interval_s):
        try:
            yield sampler
        finally:
            sampler.stop()


@contextlib.contextmanager
def _gpu(folder: Path, interval_s: float) -> Generator[None]:
    """nvidia-smi's own loop into gpu.csv, where the tool is there."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        yield
        return
    with (folder / "gpu.csv").open("ab") as file:
        command = [tool, f"--query-gpu={_GPU_QUERY}", "--format=csv", f"-lms={max(200, int(interval_s * 1000))}"]
        loop = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)  # noqa: S603
        try:
            yield
        finally:
            loop.terminate()
            loop.wait()


def _describe(folder: Path, command: Sequence[str], pid: int | None, group: Cgroup | None) -> None:
    (folder / "host.txt").write_text(startup.host_text(group))
    (folder / ".record" / "start.json").write_text(startup.start_json(command, pid, group, __version__))


def _cgroup_of(pid: int) -> Cgroup | None:
    """Where a living process is. The kernel shows a dead one in the root, once it has given back its memory."""
    found = cgroups.of_process(pid)
    return found if processes.memory(pid) else None


def _kills(group: Cgroup | None) -> int:
    return group.limiting().counters().get("oom_kill", 0) if group else 0


def _write_exit(folder: Path, command: Sequence[str], pid: int, started: dt.datetime, returncode: int) -> None:
    words = " ".join(startup.without_secrets(command)).replace("\n", " ")
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
    except OSError as error:
        msg = f"cannot write {folder}/exit.txt: {error.strerror}"
        raise InputError(msg) from error


def _write_kernel(folder: Path, kernel: KernelLog) -> None:
    time.sleep(_SETTLE_S)
    lines = kernel.lines()
    kernel.close()
    if lines:
        (folder / "dmesg.txt").write_text("\n".join(lines) + "\n")
