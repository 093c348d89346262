"""A cgroup of its own for a child that is to be killed, so that nothing else can be; or why there can be none."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Generator, Sequence
from pathlib import Path

from postmortem.errors import UsageError
from postmortem.recording import cgroup_v1, cgroup_v2
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.files import number, pairs

__all__ = ["Cage", "cage", "check_killable", "check_swap", "killed_in", "kills"]

_NAME = "postmortem-probe-"
_SETTLES_S = 2.0  # a killed process leaves its cgroup when the kernel has taken it apart
_PROC = Path("/proc")
_MEND = "; probe without it, which stops short of the limit"


@dataclasses.dataclass(frozen=True)
class Cage:
    """`group` is None where none can be made; `why_not` says why."""

    group: Cgroup | None
    why_not: str | None = None

    @property
    def procs(self) -> Path | None:
        """The file through which a process enters."""
        return self.group.path / "cgroup.procs" if self.group else None


@contextlib.contextmanager
def cage(parent: Cgroup | None, limit: int) -> Generator[Cage]:
    """A child cgroup of `parent` with a limit in bytes and no swap; removed afterwards."""
    made = _make(parent, limit)
    try:
        yield made
    finally:
        if made.group is not None:
            _remove(made.group.path)


def _make(parent: Cgroup | None, limit: int) -> Cage:
    if parent is None:
        return Cage(None, "no memory cgroup is visible here")
    _clear_stale(parent.path)
    group = dataclasses.replace(parent, path=parent.path / f"{_NAME}{os.getpid()}")
    try:
        group.path.mkdir()
    except OSError as error:
        return Cage(None, f"{parent.path}: {error.strerror}")
    try:
        why = _limit(group, limit)
    except OSError as error:
        why = error.strerror
    if why is not None:
        _remove(group.path)
        return Cage(None, f"a cgroup below {parent.path}: {why}")
    return Cage(group)


def _limit(group: Cgroup, limit: int) -> str | None:
    names = cgroup_v1 if group.version == 1 else cgroup_v2
    file = group.path / names.FILES["memory.max"]
    if not file.exists():
        return "it has no memory controller (version 2 gives it only to children of a cgroup without processes)"
    file.write_text(str(limit))
    name, value = ("memory.swappiness", "0") if group.version == 1 else ("memory.swap.max", "0")
    with contextlib.suppress(OSError):  # not there without swap accounting
        (group.path / name).write_text(value)
    return None


def _clear_stale(parent: Path) -> None:
    """What a probe that was killed itself has left: empty cgroups whose maker is gone."""
    for path in parent.glob(f"{_NAME}*"):
        pid = path.name.removeprefix(_NAME)
        if pid.isdecimal() and not (_PROC / pid).exists():
            with contextlib.suppress(OSError):
                path.rmdir()


def _remove(path: Path) -> None:
    until = time.monotonic() + _SETTLES_S
    while True:
        try:
            path.rmdir()
        except OSError as error:
            if time.monotonic() > until:
                msg = f"cannot remove the cgroup {path}: {error.strerror}; remove it with rmdir"
                raise UsageError(msg) from error
            time.sleep(0.02)
        else:
            return


def check_killable(lineage: Sequence[Cgroup]) -> None:
    """Raise UsageError where a kill in one of these cgroups could take more than the child, or nothing at all."""
    for group in lineage:
        if group.version == 2 and number(group.path / "memory.oom.group") == 1:
            msg = f"--to-the-kill: memory.oom.group is 1 in {group.path}: a kill there could take all of it"
            raise UsageError(msg + _MEND)
        if group.version == 1 and pairs(group.path / "memory.oom_control").get("oom_kill_disable") == 1:
            msg = f"--to-the-kill: the kernel's killer is switched off in {group.path}: the child would hang"
            raise UsageError(msg + _MEND)


def check_swap(made: Cage, *, proc: Path = _PROC) -> None:
    """Raise UsageError where others' memory would be swapped out before the child is killed."""
    if made.group is None and pairs(proc / "meminfo").get("SwapTotal", 0):
        msg = f"--to-the-kill: there is swap, and no child cgroup without it can be made ({made.why_not})"
        raise UsageError(msg + _MEND)


def kills(groups: Sequence[Cgroup]) -> list[int]:
    """How often each one's own limit was the end of an allocation, to be compared with a later count."""
    # Version 1 counts failures where they happened; version 2 counts them there and at all ancestors.
    name = {1: "failcnt", 2: "oom"}
    return [group.counters().get(name[group.version], 0) for group in groups]


def killed_in(groups: Sequence[Cgroup], before: Sequence[int], after: Sequence[int]) -> str | None:
    """Whose limit it was, of `groups` from the innermost out; None where none of them counted anything: the host's."""
    rose = (str(group.path) for group, one, other in zip(groups, before, after, strict=True) if other > one)
    return next(rose, None)
