"""File and counter names of cgroup version 2 (kernels to 6.12), by the column that the recorder writes."""

__all__ = ["EVENTS", "EVENTS_FILE", "FILES", "STAT"]

FILES = {
    "memory.current": "memory.current",
    "memory.max": "memory.max",
    "memory.high": "memory.high",
    "memory.peak": "memory.peak",  # 5.19 and later
    "memory.swap.current": "memory.swap.current",
}
STAT = {
    name: name
    for name in (
        *("anon", "file", "kernel", "kernel_stack", "pagetables", "percpu", "sock", "vmalloc", "shmem"),
        *("file_mapped", "file_dirty", "file_writeback", "inactive_anon", "active_anon", "inactive_file"),
        *("active_file", "unevictable", "slab_reclaimable", "slab_unreclaimable"),
    )
}
EVENTS_FILE = "memory.events"
EVENTS = {"failcnt": "max", "oom": "oom", "oom_kill": "oom_kill"}
