"""Which files are one run, by their names alone, and how run.toml and --run-glob override it."""

import pytest

from postmortem.archives.grouping import Entry, group
from postmortem.archives.runtoml import RunToml, parse
from postmortem.units import GIB


def runs(paths: str, settings=None, globs=()) -> dict[str, list[str]]:
    found = group([Entry(path, path) for path in paths.split()], settings or {}, globs)
    return {run.run: [entry.path for entry in run.entries] for run in found}


def test_a_folder_with_one_log_and_what_lies_beside_it_is_one_run():
    assert list(runs("n/run.log n/mem.txt n/dmesg.txt n/cgroup.csv n/client.log")) == ["n"]


def test_rotated_and_compressed_pieces_of_one_log_are_one_run():
    assert list(runs("n/cuzk.log n/cuzk.log.1 n/cuzk.log.2.gz n/cuzk.log-20260101.zst")) == ["n"]


def test_logs_of_several_names_in_one_folder_are_a_run_each_with_what_is_called_like_them():
    assert runs("n/a.log n/a.mem.txt n/b.log n/b-dmesg.txt.gz") == {
        "n/a.log": ["n/a.log", "n/a.mem.txt"],
        "n/b.log": ["n/b-dmesg.txt.gz", "n/b.log"],
    }


def test_a_name_that_only_begins_alike_takes_nothing_of_another_run():
    assert runs("n/run1.log n/run12.log n/run12.mem.txt")["n/run12.log"] == ["n/run12.log", "n/run12.mem.txt"]


def test_folders_of_samples_below_a_run_belong_to_it():
    assert list(runs("n/run.log n/samples/mem.txt n/kernel/dmesg.txt")) == ["n"]


def test_folders_with_logs_of_their_own_are_runs_of_their_own():
    assert list(runs("n/1/run.log n/2/run.log n/2/mem.txt")) == ["n/1", "n/2"]


def test_a_folder_of_kernel_logs_alone_is_a_run():
    assert list(runs("n/dmesg.txt n/mem.txt")) == ["n"]


def test_a_run_toml_makes_its_folder_one_run():
    assert list(runs("n/a.log n/b.log n/deep/c.log", {"n": RunToml()})) == ["n"]


def test_a_run_glob_makes_each_match_one_run():
    assert list(runs("x/n1/a.log x/n1/b.log x/n2/a.log", globs=["x/n*"])) == ["x/n1", "x/n2"]


def test_run_toml_sets_name_sizes_clock_and_tags():
    assert parse(
        b'name="n"\nlimit="342GiB"\nbudget=1024\nclock="+02:00"\n[tags]\nversion="0.5.1"\nrack=7\n'
    ) == RunToml(name="n", limit=342 * GIB, budget=1024, clock="+02:00", tags=("version=0.5.1", "rack=7"))


@pytest.mark.parametrize(
    "text", [b"nam = 1", b"limit = 'much'", b"limit = -1", b"name = 3", b"\xff", b"= =", b"tags = 3"]
)
def test_a_broken_run_toml_is_a_value_with_its_reason(text: bytes):
    assert (parse(text).error or "").startswith("run.toml: ")
