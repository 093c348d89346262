"""Ground on which the arithmetic was not tested: machines and settings where charges differ from the rules used here.

A warning each, with what may differ. Facts: the kernel's hugetlbpage.rst and cgroup-v2.rst (memory_hugetlb_accounting),
WSL's and gVisor's kernel release strings, NVIDIA's product names of parts with unified memory.
"""

import re

import polars as pl

from postmortem.run import Run
from postmortem.units import MIB, format_gib

__all__ = ["untested"]

_WSL = re.compile(r"microsoft|WSL2", re.IGNORECASE)
_GVISOR = re.compile(r"gvisor|^4\.4\.0$", re.IGNORECASE)  # runsc reports Linux 4.4.0, whatever the host runs
_UNIFIED = re.compile(
    r"Tegra|Jetson|Orin|Xavier|Thor\b|GB10|DGX Spark|GH200|GB200|Integrated|Radeon.*Graphics|Intel", re.IGNORECASE
)


def untested(run: Run) -> list[str]:
    """Warnings for what the evidence shows of the machine; empty on a plain Linux host with a discrete GPU."""
    found = [_kernel(run), _gpu(run), _swap(run), _hugepages(run)]
    return [warning for warning in found if warning is not None]


def _kernel(run: Run) -> str | None:
    for release in _texts(run, "kernel_version"):
        if _WSL.search(release):
            return (
                f"kernel {release} is WSL2: page-locked GPU memory is held by the Windows host's driver and is not charged "
                "to the cgroup as shared memory; pool and driver overhead are not told apart here"
            )
        if _GVISOR.search(release):
            return (
                f"kernel {release} is gVisor's: its own kernel's memory counts into the sandbox, and /proc and cgroup files "
                "inside show what gVisor emulates, not what the host charged"
            )
    return None


def _gpu(run: Run) -> str | None:
    for name in _texts(run, "gpu"):
        if _UNIFIED.search(name):
            return (
                f"{name.split(',')[0]} shares memory with the host or can: GPU allocations may be host memory that no "
                "counter of the cgroup shows, and VRAM figures may count the same pages again"
            )
    return None


def _texts(run: Run, what: str) -> list[str]:
    return run.table("marks").filter(pl.col("what") == what)["text"].drop_nulls().to_list()


def _swap(run: Run) -> str | None:
    """Swap that holds something; swap space alone changes nothing."""
    samples = run.table("samples").filter(pl.col("metric") == "swap")
    kills, tasks = run.table("kills"), run.table("tasks")
    sizes = [samples["value"].max(), kills["swap_usage"].max(), tasks["swap"].max()]
    most = max((size for size in sizes if isinstance(size, int)), default=0)
    if most < MIB:
        return None
    return (
        f"swap was in use ({format_gib(most)}): what was swapped out is not in the charge, shared memory and anonymous "
        "memory became reclaimable, and a budget may have been exceeded long before the kill"
    )


def _hugepages(run: Run) -> str | None:
    rows = run.table("samples").filter(pl.col("metric") == "hugetlb")
    most = rows["value"].max()
    if not isinstance(most, int) or most < MIB:
        return None
    return (
        f"huge pages are reserved ({format_gib(most)}): hugetlb memory is charged to its own controller, not here, unless "
        "the hierarchy is mounted with memory_hugetlb_accounting"
    )
