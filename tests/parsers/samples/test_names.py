"""One name, one meaning, whoever wrote the column."""

import pytest

from postmortem_parsers.samples.names import for_container_total, lookup

KIB, MIB, GIB = 2**10, 2**20, 2**30


@pytest.mark.parametrize(
    ("name", "metric", "scope", "unit"),
    [
        ("memory_current", "current", "cgroup", 1),
        ("usage_in_bytes", "current", "cgroup", 1),
        ("usage_bytes", "current", "cgroup", 1),
        ("memory.current", "current", "cgroup", 1),
        ("mem_used", "current", "cgroup", 1),
        ("memory_usage_gib", "current", "cgroup", GIB),
        ("Memory (MiB)", "current", "cgroup", MIB),
        ("limit_in_bytes", "limit", "cgroup", 1),
        ("memory_max", "limit", "cgroup", 1),
        ("memory.stat_anon", "anon", "cgroup", 1),
        ("mapped_file", "file_mapped", "cgroup", 1),
        ("kmem_usage_in_bytes", "kernel", "cgroup", 1),
        ("rss", "rss", "cgroup", 1),
        ("total_rss", "rss", "cgroup", 1),
        ("container_memory_working_set_bytes", "working_set", "cgroup", 1),
        ("container_memory_rss", "rss", "cgroup", 1),
        ("node_memory_MemAvailable_bytes", "host_available", "host", 1),
        ("MemAvailable", "host_available", "host", KIB),
        ("process_resident_memory_bytes", "rss_process", "process", 1),
        ("memory.used [MiB]", "vram_used", "gpu", MIB),
        ("DCGM_FI_DEV_FB_USED", "vram_used", "gpu", MIB),
    ],
)
def test_a_name_means(name, metric, scope, unit):
    found = lookup(name)
    assert (found.metric, found.scope, found.unit) == (metric, scope, unit)


@pytest.mark.parametrize("name", ["value", "cpu_percent", "budget_used_gib", "pinned_pool_total_gib", "size", ""])
def test_a_name_that_is_no_measured_memory_means_nothing(name):
    assert lookup(name) is None


def test_used_and_total_beside_free_memory_are_the_host_s():
    found = for_container_total({name: lookup(name) for name in ("used", "total", "free")})
    assert [(c.metric, c.scope) for c in found.values()] == [
        ("host_used", "host"),
        ("host_total", "host"),
        ("host_free", "host"),
    ]


def test_a_total_beside_a_use_is_the_limit():
    found = for_container_total({name: lookup(name) for name in ("used", "total")})
    assert [c.metric for c in found.values()] == ["current", "limit"]


def test_v1_totals_replace_the_plain_names_only_where_both_are_there():
    both = for_container_total({name: lookup(name) for name in ("rss", "total_rss", "cache")})
    assert list(both) == ["total_rss", "cache"]
