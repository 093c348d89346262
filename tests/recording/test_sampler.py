"""The sampler on a recorded version 2 tree, which this machine need not have."""

import time
from pathlib import Path

import postmortem
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.charge import Charge
from postmortem.recording.sampler import Sampler

GIB = 1 << 30
MIB = 1 << 20


def _tree(tmp_path) -> Cgroup:
    root = tmp_path / "fs"
    (root / "pod" / "app").mkdir(parents=True)
    _write(root, **{"cgroup.procs": "", "memory.stat": "anon 1\n"})
    _write(root / "pod", **{"memory.current": f"{2 * GIB}\n", "memory.max": f"{10 * GIB}\n"})
    _write(root / "pod", **{"memory.stat": f"anon {GIB}\nfile {GIB}\nshmem {GIB // 2}\ninactive_file {GIB // 4}\n"})
    _write(root / "pod", **{"memory.events": "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n", "cgroup.procs": ""})
    _pressure(root / "pod", 0)
    _write(root / "pod" / "app", **{"memory.current": f"{GIB}\n", "memory.max": "max\n", "memory.stat": "anon 1\n"})
    return Cgroup(root / "pod" / "app", root, 2)


def _write(folder, **files: str) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def _pressure(folder, stalled_us: int) -> None:
    words = "avg10=1.50 avg60=0.00 avg300=0.00"
    _write(folder, **{"memory.pressure": f"some {words} total={stalled_us}\nfull {words} total=0\n"})


def _rows(file) -> list[dict[str, str]]:
    header, *rows = [line.split(",") for line in file.read_text().splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def _started(tmp_path, group) -> tuple[Path, Sampler]:
    run = tmp_path / "run"
    run.mkdir()
    sampler = Sampler(run, lambda: group, list)
    sampler.start()
    return run, sampler


def test_the_ancestor_whose_limit_counts_is_sampled_under_the_kernels_names(tmp_path):
    group = _tree(tmp_path)
    run, sampler = _started(tmp_path, group)
    time.sleep(0.3)
    sampler.stop()
    first = _rows(run / "memory.csv")[0]
    assert (first["cgroup"], first["memory.current"], first["memory.max"]) == ("/pod", str(2 * GIB), str(10 * GIB))
    assert (first["anon"], first["shmem"], first["failcnt"]) == (str(GIB), str(GIB // 2), "12")
    assert (first["psi_some_avg10"], first["psi_full_avg10"]) == ("1.50", "1.50")
    limits = {row["cgroup"]: int(row["memory.max"]) for row in _rows(run / "limits.csv")}
    assert limits["/pod"] == 10 * GIB
    assert limits["/pod/app"] >= 1 << 62  # none
    found = postmortem.analyze(run)
    assert [one.path for one in found.result.sources] == ["host.csv", "limits.csv", "memory.csv"]
    assert [(one.unmatched, one.skipped) for one in found.result.sources] == [(0, 0)] * 3
    assert found.arithmetic.limit is not None
    assert found.arithmetic.limit.best == 10 * GIB


def test_a_limit_that_is_changed_is_written_again(tmp_path):
    group = _tree(tmp_path)
    run, sampler = _started(tmp_path, group)
    time.sleep(0.3)
    _write(group.path.parent, **{"memory.max": f"{8 * GIB}\n"})
    time.sleep(1.2)
    sampler.stop()
    limits = [int(row["memory.max"]) for row in _rows(run / "limits.csv") if row["cgroup"] == "/pod"]
    assert limits == [10 * GIB, 8 * GIB]


def test_under_pressure_five_samples_a_second_are_written(tmp_path):
    group = _tree(tmp_path)
    run, sampler = _started(tmp_path, group)
    for n in range(20):
        _pressure(group.path.parent, n * 50_000)  # all the time
        time.sleep(0.05)
    sampler.stop()
    assert 4 <= len(_rows(run / "memory.csv")) <= 9


def test_what_was_held_before_the_end_is_written_although_the_cgroup_is_gone(tmp_path):
    group = _tree(tmp_path)
    charge = Charge(tmp_path / "memory.csv")
    charge.read(group.limiting(), 1.0)
    charge.write()
    charge.read(group.limiting(), 1.1)
    (group.path.parent / "memory.current").unlink()
    charge.read(group.limiting(), 1.2)
    charge.write(with_before=True)
    charge.close()
    assert [row["time"] for row in _rows(tmp_path / "memory.csv")] == ["1.000", "1.100"]


def test_no_column_is_lost_when_the_first_cgroup_has_fewer_counters(tmp_path):
    group = _tree(tmp_path)
    charge = Charge(tmp_path / "memory.csv")
    charge.read(group, 1.0)
    charge.write()
    charge.read(group.limiting(), 2.0)
    charge.write()
    charge.close()
    assert [row["shmem"] for row in _rows(tmp_path / "memory.csv")] == ["", str(GIB // 2)]
