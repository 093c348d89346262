"""File and counter names of cgroup version 1, by the column that the recorder writes.

`total_…` counts the children too, as usage and limit do. `oom_kill` is in memory.oom_control since 4.13.
"""

__all__ = ["EVENTS", "EVENTS_FILE", "FILES", "STAT"]

FILES = {
    "memory.current": "memory.usage_in_bytes",
    "memory.max": "memory.limit_in_bytes",
    "memory.peak": "memory.max_usage_in_bytes",
    "failcnt": "memory.failcnt",
    "kernel": "memory.kmem.usage_in_bytes",
}
STAT = {
    **{
        name: f"total_{name}"
        for name in (
            *("cache", "rss", "shmem", "swap", "inactive_anon", "active_anon", "inactive_file", "active_file"),
            "unevictable",
        )
    },
    "file_mapped": "total_mapped_file",
    "file_dirty": "total_dirty",
    "file_writeback": "total_writeback",
}
EVENTS_FILE = "memory.oom_control"
EVENTS = {"oom_kill": "oom_kill"}
