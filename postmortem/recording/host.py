"""The host's memory from /proc/meminfo and its pinned pages from /proc/vmstat, in bytes by column of host.csv."""

import os
from pathlib import Path

from postmortem.recording.files import pairs

__all__ = ["COLUMNS", "sample"]

_MEMINFO = {
    "host_total": "MemTotal",
    "host_free": "MemFree",
    "host_available": "MemAvailable",
    "host_anon": "AnonPages",
    "host_shmem": "Shmem",
    "host_pagetables": "PageTables",
    "host_slab": "Slab",
    "host_swap_total": "SwapTotal",
    "host_swap_free": "SwapFree",
}
_VMSTAT = {"host_locked": "nr_mlock", "host_unevictable": "nr_unevictable"}
_PINNED = ("nr_foll_pin_acquired", "nr_foll_pin_released")  # 5.7 and later, counted since boot
COLUMNS = (*_MEMINFO, *_VMSTAT, "host_pinned")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def sample(proc: Path = Path("/proc")) -> dict[str, str | int]:
    """What the host uses now; columns that this kernel does not count are left out.

    `host_pinned` is what get_user_pages holds for devices (RDMA, io_uring, cudaHostRegister): acquired less released.
    """
    meminfo, vmstat = pairs(proc / "meminfo"), pairs(proc / "vmstat")
    row: dict[str, str | int] = {column: meminfo[name] << 10 for column, name in _MEMINFO.items() if name in meminfo}
    row |= {column: vmstat[name] * _PAGE for column, name in _VMSTAT.items() if name in vmstat}
    if all(name in vmstat for name in _PINNED):
        row["host_pinned"] = max(0, vmstat[_PINNED[0]] - vmstat[_PINNED[1]]) * _PAGE
    return row
