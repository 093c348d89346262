"""Both versions of the cgroup file system, as recorded trees."""

from pathlib import Path

import pytest

from postmortem.probing import theory
from postmortem.recording import cgroups

GIB = 1 << 30
NO_LIMIT_V1 = 9223372036854771712


def _write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def _proc(tmp_path: Path, cgroup: str, mountinfo: str) -> Path:
    proc = tmp_path / "proc"
    _write(proc / "self", cgroup=cgroup, mountinfo=mountinfo)
    _write(proc, meminfo=f"MemTotal: {64 << 20} kB\nMemFree: 1 kB\nMemAvailable: {48 << 20} kB\n")
    return proc


@pytest.fixture
def v2(tmp_path):
    root = tmp_path / "fs"
    _write(root, cgroup__procs="", memory__stat="anon 1\n")
    _write(root / "pod", memory__current=f"{9 * GIB}\n", memory__max=f"{10 * GIB}\n")
    stat = f"anon {3 * GIB}\nfile {2 * GIB}\nfile_mapped 0\nfile_dirty {GIB}\ninactive_file {GIB}\nactive_file {GIB}\n"
    _write(
        root / "pod" / "app",
        memory__current=f"{5 * GIB}\n",
        memory__max="max\n",
        memory__stat=stat,
        memory__events="low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\n",
        memory__pressure="some avg10=1.52 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=1\n",
        cgroup__procs="41\n42\n",
    )
    return _proc(tmp_path, "0::/pod/app\n", f"30 1 0:26 / {root} rw shared:4 - cgroup2 cgroup rw\n")


@pytest.fixture
def v1(tmp_path):
    root = tmp_path / "fs"
    # A container sees its own cgroup as the mount point, under the path that the host knows.
    _write(
        root,
        memory__usage_in_bytes=f"{5 * GIB}\n",
        memory__limit_in_bytes=f"{6 * GIB}\n",
        memory__stat=f"cache {GIB}\nrss {GIB}\ntotal_cache {2 * GIB}\ntotal_rss {3 * GIB}\ntotal_inactive_file {GIB}\n",
        memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        memory__failcnt="7\n",
        cgroup__procs="1\n",
    )
    mountinfo = f"31 1 0:27 /docker/abc {root} rw - cgroup cgroup rw,memory\n"
    return _proc(tmp_path, "5:cpu:/docker/abc\n4:memory:/docker/abc\n0::/\n", mountinfo)


def test_v2_the_ancestors_limit_counts_where_the_own_cgroup_has_none(v2):
    found = cgroups.of_process(proc=v2)
    assert found is not None
    assert (found.version, found.path.name) == (2, "app")
    assert found.limit() is None
    assert found.limiting().path.name == "pod"
    assert found.limiting().limit() == 10 * GIB


def test_v2_counters_events_and_pressure_have_the_columns_names(v2):
    found = cgroups.of_process(proc=v2)
    assert found is not None
    counters = found.counters()
    assert counters["memory.current"] == 5 * GIB
    assert (counters["failcnt"], counters["oom"], counters["oom_kill"]) == (12, 1, 1)
    assert found.pressure() == {"psi_some_avg10": "1.52", "psi_full_avg10": "0.25"}
    assert found.pids() == [41, 42]


def test_dirty_pages_are_not_reclaimable(v2):
    found = cgroups.of_process(proc=v2)
    assert found is not None
    assert found.reclaimable() == GIB  # two of file pages, one of them dirty


def test_v1_inside_a_container_is_the_mount_point_and_counts_its_children(v1):
    found = cgroups.of_process(proc=v1)
    assert found is not None
    assert found.version == 1
    counters = found.counters()
    assert (counters["memory.current"], counters["memory.max"]) == (5 * GIB, 6 * GIB)
    assert (counters["cache"], counters["rss"]) == (2 * GIB, 3 * GIB)
    assert (counters["failcnt"], counters["oom_kill"]) == (7, 2)


def test_v1_writes_a_huge_number_where_there_is_no_limit(v1):
    found = cgroups.of_process(proc=v1)
    assert found is not None
    (found.path / "memory.limit_in_bytes").write_text(f"{NO_LIMIT_V1}\n")
    assert found.limit() is None


def test_v1_a_smaller_limit_beyond_the_containers_view_is_the_one_that_counts(v1):
    found = cgroups.of_process(proc=v1)
    assert found is not None
    stat = found.path / "memory.stat"
    stat.write_text(stat.read_text() + f"hierarchical_memory_limit {4 * GIB}\n")
    assert found.limit() == 6 * GIB
    assert found.limiting().binding_limit() == 4 * GIB
    assert found.counters()["memory.max"] == 4 * GIB


def test_v1_the_ancestor_that_owns_the_limit_is_the_one_that_is_watched(v1):
    found = cgroups.of_process(proc=v1)
    assert found is not None
    stat = f"hierarchical_memory_limit {6 * GIB}\n"  # as the kernel hands it down
    files = {"memory__usage_in_bytes": "1\n", "memory__limit_in_bytes": f"{NO_LIMIT_V1}\n", "memory__stat": stat}
    _write(found.path / "inner", **files)
    inner = cgroups.at(found.path / "inner")
    assert inner is not None
    assert inner.limit() is None
    assert inner.binding_limit() == 6 * GIB
    assert inner.limiting().path == found.path


def test_time_lost_waiting_is_read_from_the_pressure_file(v2):
    found = cgroups.of_process(proc=v2)
    assert found is not None
    assert found.stalled_us() == 1


def test_a_process_without_a_memory_cgroup_has_none(tmp_path):
    assert cgroups.of_process(proc=_proc(tmp_path, "3:cpu:/\n", "")) is None


def test_the_theory_takes_the_limit_and_gives_back_the_cache(v1):
    found = theory.read(cgroups.of_process(proc=v1), proc=v1)
    assert (found.limit, found.used, found.reclaimable) == (6 * GIB, 5 * GIB, GIB)
    assert found.headroom == 2 * GIB
    assert found.budget == 2 * GIB - int(0.05 * 6 * GIB)


def test_the_theory_without_a_limit_is_the_hosts_memory(tmp_path):
    proc = _proc(tmp_path, "", "")
    found = theory.read(None, proc=proc)
    assert (found.limit, found.limited_by, found.headroom) == (64 * GIB, "host", 48 * GIB)
