"""One measurement: a kind of memory allocated for real, and what the kernel charged for it meanwhile."""

import dataclasses
import mmap
import signal
from collections.abc import Callable

from postmortem.probing import cage, charges
from postmortem.probing import theory as theories
from postmortem.probing.allocate import Allocated, Step, Stopped, allocate
from postmortem.probing.cage import Cage
from postmortem.probing.charges import Charges
from postmortem.probing.holder import Kind
from postmortem.probing.theory import HOST, Theory
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.signals import handled
from postmortem.units import GIB, MIB, format_fine

__all__ = ["Measured", "measure"]

_GUARD_SHARE = 1 / 128  # of the limit: what is left free while probing
_LEAST_GUARD = 2 * MIB
_FIRST_SHARE = 64  # the first chunk is a GiB, or this part of a small limit


@dataclasses.dataclass(frozen=True)
class Measured:
    """One kind of memory, measured. Sizes in bytes."""

    kind: Kind
    allocatable: int
    overhead: int
    """Charged beyond what was allocated: the allocating process itself (pinned: the driver's context), kernel memory."""
    kernel: int | None
    """Of the overhead, what the counters call kernel memory; None where there is no such counter."""
    process: int
    """Of the overhead, what the process cost before it had allocated anything."""
    charged_anon: int | None
    """By how much the counter of anonymous memory rose."""
    charged_shared: int | None
    """By how much the counter of shared memory rose."""
    stopped: Stopped
    reason: str | None
    """Why the system refused more, in its own words."""
    killed_in: str | None
    """Where the child was killed: the cgroup whose limit was hit, or `host`; None where it was not."""

    @property
    def killed(self) -> bool:
        """The kernel killed the child."""
        return self.stopped == "killed"

    @property
    def kernel_per_gib(self) -> int | None:
        """Kernel memory for each GiB allocated."""
        return None if self.kernel is None or not self.allocatable else self.kernel * GIB // self.allocatable


class _Counters:
    """The charges before the child, with the child, and with what it held when last looked at."""

    def __init__(self, group: Cgroup | None) -> None:
        self._group = group
        self._before = charges.read(group)
        self._begun = self._full = self._before
        self._held = 0

    def ready(self) -> None:
        self._begun = self._full = charges.read(self._group)

    def noted(self, held: int) -> None:
        self._held, self._full = held, charges.read(self._group)

    def result(self) -> tuple[Charges, int, int]:
        """What was charged; of it beyond what was held; of that the process before it held anything."""
        charged = self._full.since(self._before)
        return charged, max(0, charged.total - self._held), self._begun.since(self._before).total


def measure(
    kind: Kind, group: Cgroup | None, theory: Theory, *, to_the_kill: bool, say: Callable[[str], None]
) -> Measured:
    """Allocate this kind in `group`. Raises UsageError where it cannot be had, or a kill could hit others."""
    step = Step(
        headroom=lambda: theories.read(group).headroom,
        guard=max(_LEAST_GUARD, int(theory.limit * _GUARD_SHARE)),
        first_chunk=min(GIB, max(MIB, theory.limit // _FIRST_SHARE // MIB * MIB)),
    )
    if not to_the_kill:
        counters = _Counters(group)
        return _measured(kind, counters, allocate(kind, step, ready=counters.ready, noted=counters.noted), None)
    lineage = group.lineage() if group else []
    cage.check_killable(lineage)
    with handled([signal.SIGTERM], _end), cage.cage(group, _cage_limit(theory)) as made:
        cage.check_swap(made)
        say(_announcement(made, _cage_limit(theory)))
        groups = [made.group, *lineage] if made.group else lineage
        before = cage.kills(groups)
        counters = _Counters(made.group or group)
        caged = dataclasses.replace(step, to_the_kill=True, procs=made.procs)
        got = allocate(kind, caged, ready=counters.ready, noted=counters.noted)
        where = (cage.killed_in(groups, before, cage.kills(groups)) or HOST) if got.stopped == "killed" else None
        return _measured(kind, counters, got, where)


def _measured(kind: Kind, counters: _Counters, got: Allocated, where: str | None) -> Measured:
    charged, overhead, process = counters.result()
    return Measured(
        kind=kind,
        allocatable=got.size,
        overhead=overhead,
        kernel=charged.kernel,
        process=process,
        charged_anon=charged.anon,
        charged_shared=charged.shared,
        stopped=got.stopped,
        reason=got.reason,
        killed_in=where,
    )


def _cage_limit(theory: Theory) -> int:
    """What theory says is left, less what the probe and its fork add outside: so the cage's own limit is met first."""
    return max(MIB, theory.headroom - max(_LEAST_GUARD, theory.headroom // 1024)) // mmap.PAGESIZE * mmap.PAGESIZE


def _announcement(made: Cage, limit: int) -> str:
    if made.group is not None:
        return (
            f"--to-the-kill: a child process allocates in a cgroup of its own, {made.group.path} (limit "
            f"{format_fine(limit)}: what theory says is left), until the kernel kills it there; "
            "it is also the first victim of every limit above; then the cgroup is removed"
        )
    return (
        f"--to-the-kill: no child cgroup can be made ({made.why_not}); so a child process allocates here, marked as "
        "the kernel's first victim (oom_score_adj 1000), until it is killed; shortly before, others here may have to "
        "wait for memory"
    )


def _end(number: int) -> None:
    """End through the cleaning-up, as Ctrl-C does."""
    raise SystemExit(128 + number)
