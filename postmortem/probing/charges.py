"""What the kernel charges, by class: the cgroup's own counters, or the machine's where there is no cgroup."""

import dataclasses
from pathlib import Path

from postmortem.recording.cgroups import Cgroup
from postmortem.recording.files import pairs

__all__ = ["Charges", "read"]

_KERNEL_PARTS = ("kernel_stack", "pagetables", "percpu", "slab_reclaimable", "slab_unreclaimable", "vmalloc")


@dataclasses.dataclass(frozen=True)
class Charges:
    """Sizes in bytes; None where there is no such counter."""

    total: int
    """All that is charged and cannot be reclaimed."""
    anon: int | None
    """v1 `rss`, v2 `anon`, host AnonPages."""
    shared: int | None
    """Shared memory: v1 `shmem` (without it `cache`), v2 `shmem`, host Shmem."""
    kernel: int | None
    """v1 kmem, v2 `kernel` (before 5.18 the sum of its parts), host: page tables, unreclaimable slab and stacks."""

    def since(self, before: "Charges") -> "Charges":
        """By how much each has risen; what has fallen meanwhile is 0."""

        def rise(now: int | None, then: int | None) -> int | None:
            return None if now is None or then is None else max(0, now - then)

        return Charges(
            max(0, self.total - before.total),
            rise(self.anon, before.anon),
            rise(self.shared, before.shared),
            rise(self.kernel, before.kernel),
        )


def read(group: Cgroup | None, *, proc: Path = Path("/proc")) -> Charges:
    """What is charged now."""
    if group is None or group.current() is None:
        return _of_host(proc)
    found = group.counters()
    parts = [found[name] for name in _KERNEL_PARTS if name in found]
    return Charges(
        total=found["memory.current"] - group.reclaimable(),
        anon=found.get("anon", found.get("rss")),
        shared=found.get("shmem", found.get("cache")),
        kernel=found.get("kernel", sum(parts) if parts else None),
    )


def _of_host(proc: Path) -> Charges:
    kib = pairs(proc / "meminfo")

    def size(*names: str) -> int:
        return sum(kib.get(name, 0) for name in names) << 10

    return Charges(
        total=size("MemTotal", "Shmem") - size("MemFree", "Buffers", "Cached", "SReclaimable"),
        anon=size("AnonPages"),
        shared=size("Shmem"),
        kernel=size("PageTables", "SUnreclaim", "KernelStack"),
    )
