"""A cgroup of our own with a small limit, a sampler beside it and the kernel's log: runs `victim.py` and keeps the evidence.

Nothing outside the cgroup can be hit: its limit is far below what is free, and only processes in it are candidates.
"""

import collections
import contextlib
import dataclasses
import datetime as dt
import errno
import fcntl
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

MIB = 1 << 20
NEEDED = 1 << 30
VICTIM = Path(__file__).with_name("victim.py")
MILL = """
name = "mill"

[[line]]
regex = '^mill: may use (?P<budget>[0-9.]+ [KMG]iB)$'
rows = [{ table = "budget", op = "init", fields = { total = "budget:size" } }]
sample = ["2026-03-13T14:02:11Z mill: may use 200 MiB"]

[[line]]
regex = '^mill: job (?P<job>[0-9]+) ground in (?P<ms>[0-9]+) ms$'
rows = [{ table = "work", op = "job_done", fields = { job = "job:text", ms = "ms:int" } }]
sample = ["2026-03-13T14:02:12Z mill: job 7 ground in 60 ms"]
"""
"""The profile of the daemon that victim.py plays."""
V1 = {
    "usage_in_bytes": "memory.usage_in_bytes",
    "limit_in_bytes": "memory.limit_in_bytes",
    "failcnt": "memory.failcnt",
    "kmem_usage_in_bytes": "memory.kmem.usage_in_bytes",
}
V1_STAT = ("rss", "cache", "shmem", "mapped_file", "inactive_file", "active_file", "inactive_anon", "active_anon")
V2_STAT = ("anon", "file", "shmem", "file_mapped", "inactive_file", "active_file", "kernel", "pagetables", "sock")


class NoLabError(Exception):
    """Why this machine cannot cause a kill on purpose."""


@dataclasses.dataclass(frozen=True)
class Group:
    """One memory cgroup, of either version."""

    path: Path
    version: int

    def limit(self, size: int) -> None:
        if self.version == 1:
            (self.path / "memory.limit_in_bytes").write_text(str(size))
            (self.path / "memory.swappiness").write_text("0")
            return
        (self.path / "memory.max").write_text(str(size))
        with contextlib.suppress(OSError):  # Not there without swap accounting.
            (self.path / "memory.swap.max").write_text("0")

    def header(self) -> str:
        names = [*V1, *V1_STAT] if self.version == 1 else ["memory.current", "memory.max", *V2_STAT]
        return ",".join(["time", *names, "oom_kill"])

    def sample(self) -> str:
        stat = self._pairs("memory.stat")
        if self.version == 1:
            values = [self._text(name) for name in V1.values()] + [stat.get(name, "") for name in V1_STAT]
            events = self._pairs("memory.oom_control")
        else:
            values = [self._text("memory.current"), self._text("memory.max"), *(stat.get(name, "") for name in V2_STAT)]
            events = self._pairs("memory.events")
        return ",".join([f"{time.time():.3f}", *values, events.get("oom_kill", "")])

    def _text(self, name: str) -> str:
        try:
            return (self.path / name).read_text().strip()
        except OSError:
            return ""

    def _pairs(self, name: str) -> dict[str, str]:
        lines = (line.split() for line in self._text(name).splitlines())
        return {words[0]: words[1] for words in lines if len(words) == 2}


@dataclasses.dataclass
class Run:
    """What a run left, and what the program said of itself. Bytes by kind."""

    folder: Path
    truth: dict[str, int]
    returncode: int
    limit: int
    kernel_log: bool


def parent() -> tuple[Path, int]:
    """Where cgroups may be made. Raises NoLabError with the reason."""
    if os.geteuid() != 0:
        raise NoLabError("needs root to make a memory cgroup")
    free = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) << 10
    if free < NEEDED:
        raise NoLabError("less than 1 GiB of memory is free")
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if "rw" not in options.split(","):
            continue
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(where), 1
        if kind == "cgroup2" and "memory" in (Path(where) / "cgroup.subtree_control").read_text().split():
            return Path(where), 2
    raise NoLabError("no writable memory cgroup: neither version 1 nor version 2 with the controller switched on")


@contextlib.contextmanager
def group(limit: int) -> Iterator[Group]:
    """A fresh cgroup, gone afterwards with all that lives in it."""
    where, version = parent()
    path = where / f"postmortem-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as error:
        msg = f"cannot make a cgroup in {where}: {error.strerror}"
        raise NoLabError(msg) from error
    made = Group(path, version)
    try:
        made.limit(limit)
        yield made
    finally:
        _clear(path)


def _clear(path: Path) -> None:
    for _ in range(100):
        for pid in (path / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), 9)
        try:
            path.rmdir()
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.05)
        else:
            return
    msg = f"{path} cannot be removed"
    raise RuntimeError(msg)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One kill at a time on this machine, also between test workers: their kernel reports share one log."""
    with (Path(tempfile.gettempdir()) / "postmortem-kills.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class KernelLog:
    """The kernel's log from now on; `text` is None where it may not be read."""

    def __init__(self) -> None:
        try:
            self._file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            self._file = None

    def text(self) -> str | None:
        if self._file is None:
            return None
        lines: list[str] = []
        while True:
            try:
                record = os.read(self._file, 8192).decode("utf-8", "replace")
            except BlockingIOError:
                break
            except BrokenPipeError:  # Records were overwritten before they were read.
                continue
            head, _, message = record.partition(";")
            seconds = int(head.split(",")[2]) / 1e6
            lines.append(f"[{seconds:12.6f}] {message.splitlines()[0]}")
        os.close(self._file)
        return "\n".join(lines) + "\n" if lines else ""


class Sampler:
    """Counters every 50 ms until stopped."""

    def __init__(self, group: Group, file: Path) -> None:
        self._group, self._file = group, file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._file.open("w") as file:
            file.write(self._group.header() + "\n")
            while not self._stop.wait(0.05):
                file.write(self._group.sample() + "\n")


def run(folder: Path, scenario: str, *, limit_mib: int, path: str = "", beside: str | None = None) -> Run:
    """Run a scenario to its end and leave run.log, memory.csv, dmesg.txt, host.txt and exit.txt in `folder`."""
    truth: collections.Counter[str] = collections.Counter()
    with alone(), group(limit_mib * MIB) as made:
        kernel = KernelLog()
        with (folder / "run.log").open("w") as log, Sampler(made, folder / "memory.csv"):
            helper = _start(made, beside, "", subprocess.DEVNULL) if beside else None
            if helper:
                _read_until(helper[1], truth, "ready")
            victim, state = _start(made, scenario, path, log)
            _read_until(state, truth, None)
            code = victim.wait(timeout=30)
            time.sleep(0.2)
            if helper:
                helper[0].kill()
                helper[0].wait(timeout=10)
        text = kernel.text()
    if text:
        (folder / "dmesg.txt").write_text(text)
    now = dt.datetime.now(dt.UTC)
    uptime = time.clock_gettime(time.CLOCK_MONOTONIC)
    machine = os.uname()
    (folder / "host.txt").write_text(
        f"$ uname -a\nLinux {machine.nodename} {machine.release} {machine.version} {machine.machine} GNU/Linux\n$ date -u; cat /proc/uptime\n{now:%a %b %e %H:%M:%S UTC %Y}\n{uptime:.2f} 1.00\n"
    )
    status = f"exit_status={128 - code}\nsignal={-code}\n" if code < 0 else f"exit_status={code}\n"
    (folder / "exit.txt").write_text(status)
    return Run(folder, dict(truth), code, limit_mib * MIB, bool(text))


def _start(made: Group, scenario: str, path: str, log: object) -> tuple[subprocess.Popen[bytes], int]:
    reading, writing = os.pipe()
    command = [sys.executable, "-S", str(VICTIM), str(made.path / "cgroup.procs"), str(writing), scenario, path]
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, pass_fds=[writing])  # type: ignore[arg-type]
    os.close(writing)
    return process, reading


def _read_until(descriptor: int, truth: collections.Counter[str], last: str | None) -> None:
    """Add up what the program says, to its end or to the kind `last`."""
    with os.fdopen(descriptor, closefd=last is None) as lines:
        for line in lines:
            kind, _, size = line.partition(" ")
            if kind == last:
                return
            truth[kind] += int(size)
    if last:
        msg = f"the program ended before it was {last}"
        raise RuntimeError(msg)
