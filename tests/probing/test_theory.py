"""Theory from recorded trees of both cgroup versions: every limit on the way to the root counts."""

from pathlib import Path

import pytest

from postmortem.errors import UsageError
from postmortem.probing import cage, charges, theory
from postmortem.recording.cgroups import Cgroup

GIB = 1 << 30


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "proc").mkdir()
    text = f"MemTotal: {64 << 20} kB\nMemFree: {20 << 20} kB\nMemAvailable: {48 << 20} kB\nShmem: {1 << 20} kB\n"
    (tmp_path / "proc" / "meminfo").write_text(text + f"Cached: {30 << 20} kB\nAnonPages: {9 << 20} kB\n")
    return tmp_path / "proc"


def _v2(folder: Path, *, current: int, most: str, stat: str = "", high: str = "max") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files = {"memory.current": str(current), "memory.max": most, "memory.high": high, "memory.stat": stat}
    for name, text in files.items():
        (folder / name).write_text(text + "\n")


def _group(root: Path, path: str, version: int = 2) -> Cgroup:
    return Cgroup(root / path, root, version)


def test_an_ancestor_that_neighbours_fill_bounds_more_than_the_smallest_limit(tmp_path, proc):
    _v2(tmp_path / "pod", current=19 * GIB, most=str(20 * GIB))
    _v2(tmp_path / "pod" / "app", current=2 * GIB, most=str(10 * GIB))
    found = theory.read(_group(tmp_path, "pod/app"), proc=proc)
    assert (found.limit, found.limited_by, found.used) == (10 * GIB, str(tmp_path / "pod" / "app"), 2 * GIB)
    assert (found.headroom, found.binding.where) == (GIB, str(tmp_path / "pod"))
    assert found.budget == GIB - 10 * GIB // 20


def test_memory_high_bounds_as_a_limit_does_and_is_said_to_throttle(tmp_path, proc):
    _v2(tmp_path / "app", current=2 * GIB, most=str(10 * GIB), high=str(8 * GIB))
    found = theory.read(_group(tmp_path, "app"), proc=proc)
    assert (found.limit, found.least.throttles, found.headroom) == (8 * GIB, True, 6 * GIB)


def test_what_the_host_has_left_bounds_a_limit_that_promises_more(tmp_path, proc):
    _v2(tmp_path / "app", current=0, most=str(60 * GIB))
    found = theory.read(_group(tmp_path, "app"), proc=proc)
    assert (found.limit, found.headroom, found.binding.where) == (60 * GIB, 48 * GIB, "host")


def test_a_version_1_limit_beyond_the_containers_view_counts(tmp_path, proc):
    (tmp_path / "memory.usage_in_bytes").write_text(f"{5 * GIB}\n")
    (tmp_path / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    (tmp_path / "memory.stat").write_text(f"hierarchical_memory_limit {6 * GIB}\n")
    found = theory.read(_group(tmp_path, ".", 1), proc=proc)
    assert (found.limit, found.headroom) == (6 * GIB, GIB)


def test_mapped_shared_memory_takes_nothing_from_the_reclaimable_cache(tmp_path):
    stat = f"anon {GIB}\nfile {5 * GIB}\nshmem {3 * GIB}\nfile_mapped {3 * GIB}\ninactive_file {2 * GIB}\nactive_file 0"
    _v2(tmp_path / "app", current=6 * GIB, most=str(10 * GIB), stat=stat)
    group = _group(tmp_path, "app")
    assert group.reclaimable() == 2 * GIB
    assert charges.read(group).total == 4 * GIB


def test_charges_are_read_from_the_counters_of_both_versions(tmp_path):
    _v2(tmp_path / "new", current=6 * GIB, most="max", stat=f"anon {4 * GIB}\nshmem {GIB}\nkernel {GIB}")
    assert charges.read(_group(tmp_path, "new")) == charges.Charges(6 * GIB, 4 * GIB, GIB, GIB)
    _v2(tmp_path / "old", current=6 * GIB, most="max", stat=f"anon {GIB}\nshmem 0\npagetables {GIB}\nkernel_stack 4096")
    assert charges.read(_group(tmp_path, "old")).kernel == GIB + 4096  # before 5.18 there is no sum
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "memory.usage_in_bytes").write_text(f"{6 * GIB}\n")
    (tmp_path / "one" / "memory.kmem.usage_in_bytes").write_text("8192\n")
    (tmp_path / "one" / "memory.stat").write_text(f"total_rss {GIB}\ntotal_cache {5 * GIB}\ntotal_shmem {5 * GIB}\n")
    assert charges.read(_group(tmp_path, "one", 1)) == charges.Charges(6 * GIB, GIB, 5 * GIB, 8192)


def test_without_a_cgroup_the_hosts_counters_stand_in(proc):
    found = charges.read(None, proc=proc)
    assert (found.total, found.anon, found.shared) == ((64 + 1 - 20 - 30) * GIB, 9 * GIB, GIB)


def test_a_kill_that_would_take_the_whole_container_is_refused(tmp_path):
    _v2(tmp_path / "app", current=0, most="max")
    (tmp_path / "app" / "memory.oom.group").write_text("1\n")
    with pytest.raises(UsageError, match=r"memory\.oom\.group is 1"):
        cage.check_killable([_group(tmp_path, "app")])


def test_a_killer_that_is_switched_off_is_refused(tmp_path):
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 1\nunder_oom 0\noom_kill 0\n")
    with pytest.raises(UsageError, match="switched off"):
        cage.check_killable([_group(tmp_path, ".", 1)])


def test_swap_without_a_cgroup_of_its_own_is_refused(proc):
    with (proc / "meminfo").open("a") as file:
        file.write("SwapTotal: 1024 kB\n")
    with pytest.raises(UsageError, match="there is swap"):
        cage.check_swap(cage.Cage(None, "Permission denied"), proc=proc)


def test_a_child_cgroup_without_the_controller_is_removed_and_the_reason_given(tmp_path):
    _v2(tmp_path / "app", current=0, most="max")
    with cage.cage(_group(tmp_path, "app"), GIB) as made:
        assert (made.group, made.procs) == (None, None)
        assert "no memory controller" in str(made.why_not)
    assert [one for one in (tmp_path / "app").iterdir() if one.is_dir()] == []


def test_where_the_kill_was_is_the_innermost_that_counted_one(tmp_path):
    groups = [_group(tmp_path, name) for name in ("pod/app/cage", "pod/app", "pod")]
    assert cage.killed_in(groups, [0, 3, 3], [0, 4, 4]) == str(tmp_path / "pod" / "app")
    assert cage.killed_in(groups, [0, 3, 3], [0, 3, 3]) is None
