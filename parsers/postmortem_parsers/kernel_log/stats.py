"""Memory statistics inside a kernel report, brought to the names of cgroup v2 and to bytes.

Three spellings: one line in KB (`cache:0KB rss:204032KB …`, kernels before 5.3, one line a cgroup below the limit),
`name value` in bytes by v1 names (5.3+, cgroup v1, `total_*` with children) or by v2 names (`anon 123`).
Host reports give pages after `Mem-Info:`. Not read: per-zone lines, apart from the page size in the buddy list.
"""

import dataclasses
import re

from postmortem_parsers.kernel_log.numbers import KIB, as_int

__all__ = ["HostCounts", "Stats", "buddy_page_size"]

_ONE_LINE = re.compile(r"([a-z_]+):(\d+)KB")
_NAMED = re.compile(r"([a-z][a-z0-9_.]*) (\d+)")
_HOST_COUNT = re.compile(r"\b([a-z_]+):(\d+)(?=\s|$)")
_BUDDY = re.compile(r"(?:Node \d+ )?\w+: \d+\*(\d+)kB ")
_KERNEL_PARTS = ("kernel_stack", "pagetables", "percpu", "vmalloc", "slab")

Normal = dict[str, int | None]


def buddy_page_size(message: str) -> int | None:
    """Bytes of a page, which is the smallest block in `Node 0 Normal: 12*4kB (UME) …`."""
    match = _BUDDY.match(message)
    return int(match[1]) * KIB if match else None


@dataclasses.dataclass
class Stats:
    """The counters of one report's cgroup (and of the cgroups below it, where they have lines of their own)."""

    values: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    ambiguous: bool = False
    """Lines of two reports are mixed beyond repair."""

    def add(self, message: str) -> bool:
        """Take a line of the block; False when it is none."""
        pairs = [(name, int(value) * KIB) for name, value in _ONE_LINE.findall(message)]
        if pairs:
            # Each cgroup of the tree has its own line and counts only itself.
            for name, value in pairs:
                self.values[name] = self.values.get(name, 0) + value
            return True
        named = _NAMED.fullmatch(message)
        value = as_int(named[2]) if named else None
        if named is None or value is None:
            return False
        if self.values.get(named[1], value) != value:
            self.ambiguous = True
        self.values[named[1]] = value
        return True

    def normal(self, kmem_usage: int | None) -> Normal:
        """`stat_*` columns in bytes; nothing when lines of two reports are mixed."""
        if self.ambiguous or not self.values:
            return {}
        return self._v2() if "anon" in self.values else self._v1(kmem_usage)

    def _v2(self) -> Normal:
        get = self.values.get
        kernel = get("kernel")
        if kernel is None:  # a total since 5.18
            slab = get("slab", get("slab_reclaimable", 0) + get("slab_unreclaimable", 0))
            kernel = sum({**self.values, "slab": slab}.get(name, 0) for name in _KERNEL_PARTS)
        return {
            "stat_anon": get("anon"),
            "stat_file": get("file"),
            "stat_shmem": get("shmem"),
            "stat_kernel": kernel,
            "stat_pagetables": get("pagetables"),
            "stat_inactive_file": get("inactive_file"),
            "stat_active_file": get("active_file"),
            "stat_file_mapped": get("file_mapped"),
        }

    def _v1(self, kmem_usage: int | None) -> Normal:
        def get(name: str) -> int | None:
            return self.values.get(f"total_{name}", self.values.get(name))

        cache, inactive, active, shmem = get("cache"), get("inactive_file"), get("active_file"), get("shmem")
        if shmem is None and cache is not None and inactive is not None and active is not None:
            # Before 4.20 no shmem is printed; what of the cache is on no file list is shmem or tmpfs.
            shmem = max(0, cache - inactive - active)
        return {
            "stat_anon": get("rss"),
            "stat_file": cache,
            "stat_shmem": shmem,
            "stat_kernel": kmem_usage,
            "stat_inactive_file": inactive,
            "stat_active_file": active,
            "stat_file_mapped": get("mapped_file"),
        }


@dataclasses.dataclass
class HostCounts:
    """What a host-wide report says after `Mem-Info:`, in pages."""

    pages: dict[str, int] = dataclasses.field(default_factory=dict[str, int])
    ram: int | None = None
    reserved: int | None = None
    page_size: int | None = None

    def add(self, message: str) -> None:
        """Take a line after `Mem-Info:`; the first mention of a counter is the host's, later ones are zones'."""
        if match := re.fullmatch(r"(\d+) pages (RAM|reserved)", message):
            if match[2] == "RAM":
                self.ram = int(match[1])
            else:
                self.reserved = int(match[1])
        elif message.startswith("Node ") or "*" in message:
            self.page_size = self.page_size or buddy_page_size(message)
        else:
            for name, value in _HOST_COUNT.findall(message):
                self.pages.setdefault(name, int(value))

    def total(self, page_size: int) -> int | None:
        """MemTotal in bytes: all pages less those that the kernel keeps from its allocator."""
        return None if self.ram is None else (self.ram - (self.reserved or 0)) * page_size

    def normal(self, page_size: int) -> Normal:
        """`stat_*` columns of the host in bytes."""
        if "active_anon" not in self.pages:
            return {}

        def total(*names: str) -> int | None:
            counts = [self.pages[name] for name in names if name in self.pages]
            return sum(counts) * page_size if counts else None

        shmem = total("shmem")
        lists = total("active_anon", "inactive_anon", "isolated_anon")
        files = total("active_file", "inactive_file", "isolated_file")
        return {
            # The kernel keeps shmem on the anonymous lists; v2's `anon` does not count it, its `file` does.
            "stat_anon": max(0, lists - shmem) if lists is not None and shmem is not None else None,
            "stat_file": files + shmem if files is not None and shmem is not None else None,
            "stat_shmem": shmem,
            "stat_kernel": total("slab_reclaimable", "slab_unreclaimable", "pagetables"),
            "stat_pagetables": total("pagetables"),
            "stat_inactive_file": total("inactive_file"),
            "stat_active_file": total("active_file"),
            "stat_file_mapped": total("mapped"),
        }
