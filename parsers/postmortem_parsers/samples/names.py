"""The one home of what a counter's name means: kernel files, columns, Prometheus series -> metric, scope, unit.

Covers cgroup v2 (to 6.12) and v1 files, /proc/meminfo, /proc/PID/status and smaps_rollup, cAdvisor, node_exporter,
kube-state-metrics, DCGM, nvidia-smi, sysstat, `below`, and the words that people put over a column of their own.
Not here: guesses from values (`guess.py`).
"""

from __future__ import annotations

import dataclasses
import re

import polars as pl

from postmortem.units import GIB, KIB, MIB

__all__ = [
    "COUNTS",
    "FILES",
    "FILE_LINES",
    "LIMITS",
    "UNLIMITED",
    "Counter",
    "for_container_total",
    "lookup",
    "table",
]

UNLIMITED = 1 << 62
"""The kernel writes "no limit" as about 2^63 (in pages, rounded to the page size), never as less than this."""

PERCENT = 100  # stall times are stored in hundredths of a percent


@dataclasses.dataclass(frozen=True)
class Counter:
    """What a name counts."""

    metric: str
    scope: str = "cgroup"
    unit: int = 1
    """Bytes (or hundredths of a percent) of one step of a bare number; counts have 1."""
    exact: bool = True
    """The unit is the source's own and its numbers are not rounded to it (kernel counters are whole pages)."""


COUNTS = frozenset({"oom", "oom_kill", "oom_group_kill", "failcnt", "pids", "high_events", "low_events"})
LIMITS = frozenset({"limit", "high", "soft_limit", "swap_limit", "memsw_limit", "kernel_limit"})

# Files that hold one value.
FILES: dict[str, Counter] = {
    "memory.current": Counter("current"),
    "memory.max": Counter("limit"),
    "memory.high": Counter("high"),
    "memory.low": Counter("low"),
    "memory.min": Counter("min"),
    "memory.peak": Counter("peak"),
    "memory.swap.current": Counter("swap"),
    "memory.swap.max": Counter("swap_limit"),
    "memory.swap.peak": Counter("swap_peak"),
    "memory.zswap.current": Counter("zswap"),
    "pids.current": Counter("pids"),
    "memory.usage_in_bytes": Counter("current"),
    "memory.limit_in_bytes": Counter("limit"),
    "memory.max_usage_in_bytes": Counter("peak"),
    "memory.soft_limit_in_bytes": Counter("soft_limit"),
    "memory.failcnt": Counter("failcnt"),
    "memory.kmem.usage_in_bytes": Counter("kernel"),
    "memory.kmem.limit_in_bytes": Counter("kernel_limit"),
    "memory.memsw.usage_in_bytes": Counter("memsw"),
    "memory.memsw.limit_in_bytes": Counter("memsw_limit"),
    "memory.memsw.max_usage_in_bytes": Counter("memsw_peak"),
}

_STAT = [
    *("anon", "file", "kernel", "kernel_stack", "pagetables", "sec_pagetables", "percpu", "sock", "vmalloc", "shmem"),
    *("zswap", "zswapped", "file_mapped", "file_dirty", "file_writeback", "anon_thp", "file_thp", "shmem_thp"),
    *("inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable", "slab_reclaimable"),
    *("slab_unreclaimable", "slab", "hugetlb"),
    *("cache", "rss", "rss_huge", "swap"),  # v1; its `rss` is anonymous memory only
]
_STAT_RENAMED = {
    "mapped_file": "file_mapped",
    "dirty": "file_dirty",
    "writeback": "file_writeback",
    "swapcached": "swapcached",
    "hierarchical_memory_limit": "limit",
    "hierarchical_memsw_limit": "memsw_limit",
}
_STAT_PLAIN = {name: Counter(name) for name in _STAT} | {n: Counter(m) for n, m in _STAT_RENAMED.items()}
_MEMORY_STAT = _STAT_PLAIN | {f"total_{name}": c for name, c in _STAT_PLAIN.items() if "limit" not in name}

# `max` counts how often the limit was met and something was reclaimed: v1's failcnt.
_EVENTS = {
    "low": Counter("low_events"),
    "high": Counter("high_events"),
    "max": Counter("failcnt"),
    "oom": Counter("oom"),
    "oom_kill": Counter("oom_kill"),
    "oom_group_kill": Counter("oom_group_kill"),
}
_PRESSURE = {kind: Counter(f"psi_{kind}_avg10", unit=PERCENT) for kind in ("some", "full")}


def _kilobytes(scope: str, names: dict[str, str]) -> dict[str, Counter]:
    return {name: Counter(metric, scope, KIB) for name, metric in names.items()}


_MEMINFO = _kilobytes(
    "host",
    {
        "MemTotal": "host_total",
        "MemFree": "host_free",
        "MemAvailable": "host_available",
        "Buffers": "buffers",
        "Cached": "cache",
        "Shmem": "shmem",
        "AnonPages": "anon",
        "Mapped": "file_mapped",
        "Active(anon)": "active_anon",
        "Inactive(anon)": "inactive_anon",
        "Active(file)": "active_file",
        "Inactive(file)": "inactive_file",
        "Unevictable": "unevictable",
        "Mlocked": "locked",
        "SwapTotal": "swap_total",
        "SwapFree": "swap_free",
        "Dirty": "file_dirty",
        "Writeback": "file_writeback",
        "Slab": "slab",
        "SReclaimable": "slab_reclaimable",
        "SUnreclaim": "slab_unreclaimable",
        "KernelStack": "kernel_stack",
        "PageTables": "pagetables",
        "VmallocUsed": "vmalloc",
        "Percpu": "percpu",
        "Hugetlb": "hugetlb",
        "Committed_AS": "committed",
    },
)
_STATUS = _kilobytes(
    "process",
    {
        "VmRSS": "rss_process",
        "VmHWM": "peak",
        "VmSize": "vm_size",
        "VmLck": "locked",
        "VmPin": "pinned",
        "VmPTE": "pagetables",
        "VmSwap": "swap",
        "RssAnon": "anon",
        "RssFile": "file",
        "RssShmem": "shmem",
        "HugetlbPages": "hugetlb",
    },
)
_SMAPS = _kilobytes(
    "process",
    {
        "Rss": "rss_process",
        "Pss": "pss",
        "Pss_Anon": "pss_anon",
        "Pss_File": "pss_file",
        "Pss_Shmem": "pss_shmem",
        "Anonymous": "anon",
        "Swap": "swap",
        "Locked": "locked",
    },
)

FILE_LINES: dict[str, dict[str, Counter]] = {
    "memory.stat": _MEMORY_STAT,
    "memory.events": _EVENTS,
    "memory.events.local": {},  # the same events without the children's; memory.events is the one to count
    "memory.oom_control": {"oom_kill": Counter("oom_kill")},
    "memory.pressure": _PRESSURE,
    "pressure/memory": {name: dataclasses.replace(c, scope="host") for name, c in _PRESSURE.items()},
    "meminfo": _MEMINFO,
    "status": _STATUS,
    "smaps_rollup": _SMAPS,
    # Lines under no heading: the names alone tell them apart.
    "": _MEMORY_STAT | _EVENTS | _PRESSURE | _MEMINFO | _STATUS | _SMAPS,
}
"""What the `name value` lines of a file mean, by the file's name."""


def table() -> pl.DataFrame:
    """`FILES` and `FILE_LINES` to join with: columns file, name, metric, scope, unit, exact."""
    rows = [(file, "", c) for file, c in FILES.items()]
    rows += [(file, name, c) for file, lines in FILE_LINES.items() for name, c in lines.items()]
    return pl.DataFrame(
        [(file, name, c.metric, c.scope, c.unit, c.exact) for file, name, c in rows],
        schema={
            "file": pl.String,
            "name": pl.String,
            "metric": pl.String,
            "scope": pl.String,
            "unit": pl.Int64,
            "exact": pl.Boolean,
        },
        orient="row",
    )


# Whole names of exporters and tools, in small letters.
_NAMED: dict[str, Counter] = {
    **{name.lower(): counter for name, counter in _MEMINFO.items() if name.startswith("Mem")},
    **{name.lower(): counter for name, counter in _STATUS.items()},
    # cAdvisor; its `rss` is the cgroup's anonymous memory
    "container_memory_usage_bytes": Counter("current"),
    "container_memory_working_set_bytes": Counter("working_set"),
    "container_memory_rss": Counter("rss"),
    "container_memory_cache": Counter("cache"),
    "container_memory_swap": Counter("swap"),
    "container_memory_mapped_file": Counter("file_mapped"),
    "container_memory_total_active_file_bytes": Counter("active_file"),
    "container_memory_total_inactive_file_bytes": Counter("inactive_file"),
    "container_memory_kernel_usage": Counter("kernel"),
    "container_memory_failcnt": Counter("failcnt"),
    "container_memory_max_usage_bytes": Counter("peak"),
    "container_spec_memory_limit_bytes": Counter("limit"),
    "container_oom_events_total": Counter("oom_kill"),
    "kube_pod_container_resource_limits": Counter("limit"),
    # node_exporter
    "node_memory_memtotal_bytes": Counter("host_total", "host"),
    "node_memory_memfree_bytes": Counter("host_free", "host"),
    "node_memory_memavailable_bytes": Counter("host_available", "host"),
    "node_memory_shmem_bytes": Counter("shmem", "host"),
    "node_memory_anonpages_bytes": Counter("anon", "host"),
    "node_memory_cached_bytes": Counter("cache", "host"),
    "node_memory_pagetables_bytes": Counter("pagetables", "host"),
    "node_memory_slab_bytes": Counter("slab", "host"),
    "node_vmstat_oom_kill": Counter("oom_kill", "host"),
    # client libraries
    "process_resident_memory_bytes": Counter("rss_process", "process"),
    # GPUs: MiB where the tool prints no unit
    "dcgm_fi_dev_fb_used": Counter("vram_used", "gpu", MIB, exact=False),
    "dcgm_fi_dev_fb_free": Counter("vram_free", "gpu", MIB, exact=False),
    "dcgm_fi_dev_fb_total": Counter("vram_total", "gpu", MIB, exact=False),
    "memory.used": Counter("vram_used", "gpu", MIB, exact=False),
    "memory.free": Counter("vram_free", "gpu", MIB, exact=False),
    "memory.total": Counter("vram_total", "gpu", MIB, exact=False),
    "memory.reserved": Counter("vram_reserved", "gpu", MIB, exact=False),
    "used_gpu_memory": Counter("vram_used", "gpu", MIB, exact=False),
    "used_memory": Counter("vram_used", "gpu", MIB, exact=False),
    # sysstat (`sadf -d`, `sar -r`)
    "kbmemfree": Counter("host_free", "host", KIB),
    "kbavail": Counter("host_available", "host", KIB),
    "kbmemused": Counter("host_used", "host", KIB),
    "kbbuffers": Counter("buffers", "host", KIB),
    "kbcached": Counter("cache", "host", KIB),
    "kbanonpg": Counter("anon", "host", KIB),
    "kbslab": Counter("slab", "host", KIB),
    "kbkstack": Counter("kernel_stack", "host", KIB),
    "kbpgtbl": Counter("pagetables", "host", KIB),
    "kbvmused": Counter("vmalloc", "host", KIB),
    "kbdirty": Counter("file_dirty", "host", KIB),
}

# People's own words, without prefix and unit.
_WORDS: dict[str, Counter] = {
    **_MEMORY_STAT,
    **{f"file_{name}": Counter(f"file_{name}") for name in ("mapped", "dirty", "writeback")},
    **{
        word: Counter("current")
        for word in ("current", "usage", "used", "use", "charged", "memory", "mem", "memory_usage", "usage_in")
    },
    **{word: Counter("limit") for word in ("limit", "max", "limit_in", "hard_limit", "spec_memory_limit")},
    **{word: Counter("peak") for word in ("peak", "max_usage", "max_usage_in", "hwm", "high_water_mark")},
    **{word: Counter("kernel") for word in ("kernel", "kmem", "kmem_usage", "kmem_usage_in")},
    **{word: Counter("swap") for word in ("swap", "swap_current", "swap_usage")},
    **{word: Counter("working_set") for word in ("working_set", "workingset", "wss")},
    **{word: Counter("failcnt") for word in ("failcnt", "events_max", "fail_count")},
    **{word: Counter("oom_kill") for word in ("oom_kill", "oom_kills", "events_oom_kill")},
    **{word: Counter("pagetables") for word in ("pagetables", "page_tables")},
    "total": Counter("total"),  # host's or container's: `for_container_total` decides by its neighbours
    "oom": Counter("oom"),
    "events_oom": Counter("oom"),
    "oom_group_kill": Counter("oom_group_kill"),
    "events_high": Counter("high_events"),
    "high": Counter("high"),
    "pids": Counter("pids"),
    "pss": Counter("pss", "process"),
    **{name: Counter(name, "process") for name in ("pss_anon", "pss_file", "pss_shmem", "swap_pss")},
    "uss": Counter("uss", "process"),
    "rss_process": Counter("rss_process", "process"),
    "process_rss": Counter("rss_process", "process"),
    "proc_rss": Counter("rss_process", "process"),
    "host_total": Counter("host_total", "host"),
    "host_free": Counter("host_free", "host"),
    "host_available": Counter("host_available", "host"),
    **{
        f"host_{name}": Counter(name, "host")
        for name in (
            "anon",
            "shmem",
            "pagetables",
            "slab",
            "swap_total",
            "swap_free",
            "locked",
            "unevictable",
            "pinned",
        )
    },
    "free": Counter("host_free", "host"),
    "available": Counter("host_available", "host"),
    "avail": Counter("host_available", "host"),
    **{
        word: Counter("vram_used", "gpu")
        for word in ("vram", "vram_used", "gpu_mem", "gpu_mem_used", "gpu_memory_used", "gpu_memory", "fb_used")
    },
    **{word: Counter("vram_total", "gpu") for word in ("vram_total", "gpu_mem_total", "gpu_memory_total", "fb_total")},
    **{word: Counter("vram_free", "gpu") for word in ("vram_free", "gpu_mem_free", "gpu_memory_free", "fb_free")},
    "psi_some_avg10": Counter("psi_some_avg10", unit=PERCENT),
    "psi_full_avg10": Counter("psi_full_avg10", unit=PERCENT),
    "pressure_some_avg10": Counter("psi_some_avg10", unit=PERCENT),
    "pressure_full_avg10": Counter("psi_full_avg10", unit=PERCENT),
}

_UNIT_WORDS = {
    **dict.fromkeys(("b", "byte", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kib"), KIB),
    **dict.fromkeys(("m", "mb", "mib"), MIB),
    **dict.fromkeys(("g", "gb", "gib"), GIB),
}
_BRACKETED_UNIT = re.compile(r"\s*[\[(]\s*([A-Za-z]+)\s*[\])]\s*$")
_PREFIXES = ("cgroup_memory_", "container_memory_", "memory_stat_", "cgroup_", "container_", "memory_", "mem_", "stat_")


def lookup(name: str) -> Counter | None:
    """What a column, key or series of this name counts; None where the name says nothing that we know."""
    bare = name.strip().strip("\"'").strip()
    bracket = _BRACKETED_UNIT.search(bare)
    unit = _UNIT_WORDS.get(bracket[1].lower()) if bracket else None
    if bracket and unit is not None:
        bare = bare[: bracket.start()]
    low = bare.lower()
    found = _NAMED.get(low)
    if found is None and low in FILES:
        found = FILES[low]
    if found is None:
        found, suffix_unit = _by_words(re.sub(r"[^a-z0-9]+", "_", low).strip("_"))
        unit = unit if unit is not None else suffix_unit
    if found is None or unit is None or found.metric in COUNTS or found.unit == PERCENT:
        return found
    return dataclasses.replace(found, unit=unit, exact=unit == 1)


def _by_words(name: str) -> tuple[Counter | None, int | None]:
    """The counter of a name in a person's own words, and the unit that its last word states."""
    stem, _, last = name.rpartition("_")
    forms: list[tuple[str, int | None]] = [(name, None)]
    if stem and last in _UNIT_WORDS:
        forms.append((stem, _UNIT_WORDS[last]))
    for text, unit in forms:
        if found := _without_prefix(text):
            return found, unit
    return None, None


def _without_prefix(name: str) -> Counter | None:
    if name in _WORDS:
        return _WORDS[name]
    for prefix in _PREFIXES:
        if name.startswith(prefix) and (found := _WORDS.get(name.removeprefix(prefix))):
            return found
    return None


def for_container_total(counters: dict[str, Counter]) -> dict[str, Counter]:
    """`counters` by column, where the neighbours decide what `used` and `total` are.

    Beside the host's free or available memory they are the host's. Alone with a use, a total is what the tool took
    for the limit. `below dump cgroup` calls the cgroup's use `Mem Total`, beside no other use. v1's `total_…` names
    (children included) replace the plain ones.
    """
    metrics = {c.metric for c in counters.values()}
    if metrics & {"host_free", "host_available"}:
        rename = {"current": ("host_used", "host"), "total": ("host_total", "host"), "swap": ("swap", "host")}
    elif "current" in metrics:
        rename = {"total": ("limit", "cgroup")}
    else:
        rename = {"total": ("current", "cgroup")}
    renamed = {
        column: dataclasses.replace(c, metric=rename[c.metric][0], scope=rename[c.metric][1])
        if c.metric in rename
        else c
        for column, c in counters.items()
    }
    with_children = {c.metric for column, c in renamed.items() if column.lower().startswith("total_")}
    return {
        column: c
        for column, c in renamed.items()
        if c.metric not in with_children or column.lower().startswith("total_")
    }
