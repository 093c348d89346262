"""Every packing gives the same members; what is dangerous is refused with a reason, and the rest is read."""

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from postmortem.archives.cursor import read_run
from postmortem.archives.find import Found, find
from postmortem.archives.limits import Limits
from postmortem.errors import UsageError

FILES = {"night/a/run.log": b"one\n" * 50_000, "night/a/mem.txt": b"two\n", "night/b/run.log": b"three\n"}


def tar(files=FILES) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def zipped(files=FILES) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


PACKED = {
    "a.tar": tar(),
    "a.tar.gz": gzip.compress(tar()),
    "a.tar.zst": zstandard.compress(tar()),
    "a.tar.xz": lzma.compress(tar()),
    "a.tar.bz2": bz2.compress(tar()),
    "a.zip": zipped(),
    "no-suffix-says-it": gzip.compress(tar()),
}
NESTED = {
    "tar.gz-in-zip.zip": zipped({"in.tar.gz": PACKED["a.tar.gz"]}),
    "zip-in-tar.xz": lzma.compress(tar({"deep/in.zip": PACKED["a.zip"]})),
    "three-deep.tar": tar({"1.zip": zipped({"2.tar.zst": zstandard.compress(tar({"3.tar": tar()}))})}),
}


def contents(found: Found) -> dict[str, dict[str, bytes]]:
    return {run.name: {str(file.name): file.read() for file in read_run(run, Limits())} for run in found.runs}


EXPECTED = {
    "a": {"run.log": FILES["night/a/run.log"], "mem.txt": FILES["night/a/mem.txt"]},
    "b": {"run.log": FILES["night/b/run.log"]},
}


@pytest.mark.parametrize("name", [*PACKED, *NESTED])
def test_every_packing_gives_the_same_runs_with_the_same_bytes(tmp_path: Path, name: str):
    (tmp_path / name).write_bytes((PACKED | NESTED)[name])
    found = find([str(tmp_path)])
    assert not found.refused
    assert contents(found) == EXPECTED


def test_a_directory_gives_the_same_runs_as_its_archive(tmp_path: Path):
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    assert contents(find([str(tmp_path)])) == EXPECTED


def test_runs_are_read_in_any_order_though_the_archive_only_streams_forwards(tmp_path: Path):
    (tmp_path / "a.tar.gz").write_bytes(PACKED["a.tar.gz"])
    runs = find([str(tmp_path)]).runs
    for run in [*runs, *reversed(runs)]:
        assert {str(f.name): f.read() for f in read_run(run, Limits())} == EXPECTED[run.name]


def test_a_file_can_be_read_twice(tmp_path: Path):
    (tmp_path / "a.tar.gz").write_bytes(PACKED["a.tar.gz"])
    file = read_run(find([str(tmp_path)]).runs[0], Limits())[0]
    first = file.read()
    file.seek(0)
    assert file.read() == first == FILES["night/a/run.log"]


def refused(tmp_path: Path, name: str, data: bytes, **limits) -> tuple[dict[str, str], list[str]]:
    (tmp_path / name).write_bytes(data)
    found = find([str(tmp_path / name)], limits=Limits(**limits))
    return {refusal.path.removeprefix(name).lstrip("/"): refusal.reason for refusal in found.refused}, [
        r.name for r in found.runs
    ]


@pytest.mark.parametrize("name", ["../../escape.log", "/etc/x.log", "a/../../x.log", "C:\\x.log", "..\\x.log"])
@pytest.mark.parametrize("pack", [tar, zipped])
def test_names_that_lead_out_of_the_archive_are_refused_and_the_rest_is_read(tmp_path: Path, pack, name: str):
    why, runs = refused(tmp_path, "evil", pack({name: b"x", **FILES}))
    assert len(why) == 1
    assert all(".." not in shown and not shown.startswith("/") for shown in why)
    assert "name" in next(iter(why.values()))
    assert runs == ["a", "b"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_an_archive_are_refused(tmp_path: Path, kind: bytes):
    made = io.BytesIO(tar())
    with tarfile.open(fileobj=made, mode="a") as archive:
        info = tarfile.TarInfo("night/a/link.log")
        info.type, info.linkname = kind, "/etc/passwd"
        archive.addfile(info)
    why, runs = refused(tmp_path, "a.tar", made.getvalue())
    assert list(why) == ["night/a/link.log"]
    assert runs == ["a", "b"]


def test_a_link_out_of_a_directory_is_refused(tmp_path: Path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "run.log").symlink_to(tmp_path / "secret")
    found = find([str(tmp_path / "runs")])
    assert [(r.path, "out of the source" in r.reason) for r in found.refused] == [("runs/run.log", True)]
    assert not found.runs


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("bomb.tar.gz", gzip.compress(tar({"x/run.log": bytes(80 << 20)}))),
        ("bomb.zip", zipped({"x/run.log": bytes(80 << 20)})),
    ],
)
def test_a_bomb_is_refused_before_it_has_expanded(tmp_path: Path, name: str, data: bytes):
    why, _ = refused(tmp_path, name, data, ratio_from_bytes=8 << 20)
    assert any("bomb" in reason for reason in why.values())


def test_members_beyond_the_bound_are_refused(tmp_path: Path):
    why, _ = refused(tmp_path, "many.tar", tar({f"{n}/run.log": b"x" for n in range(20)}), members=5)
    assert any("more than 5 members" in reason for reason in why.values())


def test_archives_nested_too_deep_are_refused(tmp_path: Path):
    data = tar()
    for _ in range(6):
        data = tar({"in.tar": data})
    why, runs = refused(tmp_path, "deep.tar", data)
    assert ["nested deeper" in reason for reason in why.values()] == [True]
    assert runs == []


@pytest.mark.parametrize("name", ["a.tar", "a.tar.gz", "a.tar.zst", "a.tar.xz", "a.zip"])
def test_of_a_cut_archive_what_came_before_is_found_and_the_damage_is_said(tmp_path: Path, name: str):
    data = (PACKED | NESTED)[name]
    why, _ = refused(tmp_path, name, data[: len(data) * 2 // 3])
    assert why


def test_a_damaged_header_in_the_middle_of_a_tar_is_not_its_end(tmp_path: Path):
    data = bytearray(tar({"a/run.log": b"x" * 400, "b/run.log": b"y" * 400}))
    data[1024 + 10] ^= 0xFF  # in the second member's header
    why, runs = refused(tmp_path, "a.tar", bytes(data))
    assert runs == ["a"]
    assert "damaged" in why[""]


def test_a_log_that_is_compressed_alone_is_no_archive(tmp_path: Path):
    (tmp_path / "run.log.gz").write_bytes(gzip.compress(b"hello\n"))
    found = find([str(tmp_path)])
    assert [[entry.number for entry in run.entries] for run in found.runs] == [[-1]]


def test_a_url_without_fsspec_gives_a_hint(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(UsageError, match=r"pip install 'oom-postmortem\[objects\]'"):
        find(["s3://bucket/runs"])


def test_two_sources_of_one_name_are_told_apart(tmp_path: Path):
    for place in "xy":
        (tmp_path / place / "runs" / "n").mkdir(parents=True)
        (tmp_path / place / "runs" / "n" / "run.log").write_text(place)
    found = find([str(tmp_path / "x" / "runs"), str(tmp_path / "y" / "runs")])
    assert [run.run.rsplit("/", 3)[1:] for run in found.runs] == [["x", "runs", "n"], ["y", "runs", "n"]]


def test_a_damaged_member_is_held_up_to_the_damage_and_says_so(tmp_path: Path):
    data = bytearray(zipped({"n/run.log": b"hello\n" * 100_000}))
    data[data.index(b"n/run.log") + 400] ^= 0xFF
    (tmp_path / "a.zip").write_bytes(bytes(data))
    found = find([str(tmp_path / "a.zip")])
    if found.runs:  # the flip lies behind what finding a run looks at
        (file,) = read_run(found.runs[0], Limits())
        assert getattr(file, "damage", None)
    else:
        assert found.refused
