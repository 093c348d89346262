"""An archive folder with everything that can be wrong in one: right rows, the rest unharmed, nothing outside of DIR."""

import io
import os
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import polars as pl
from batch.small import run

COMMAND = [sys.executable, "-m", "postmortem", "batch"]
BOMB_BYTES = 10 << 30


def bomb(name: str) -> bytes:
    """A zip of one log that expands to 10 GiB of zeros: one deflated block, many times over."""
    block, mib = zlib.compressobj(9, zlib.DEFLATED, -15), bytes(1 << 20)
    once = block.compress(mib) + block.flush(zlib.Z_FULL_FLUSH)
    data = once * (BOMB_BYTES >> 20) + b"\x03\x00"
    sizes = (zlib.crc32(b""), len(data), 0xFFFFFFFF)
    file = name.encode()
    extra = struct.pack("<HHQ", 1, 8, BOMB_BYTES)  # ZIP64: the true size
    local = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 45, 0, 8, 0, 33, *sizes, len(file), len(extra)) + file + extra
    central = struct.pack(
        "<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 45, 45, 0, 8, 0, 33, *sizes, len(file), len(extra), 0, 0, 0, 0, 0
    )
    central += file + extra
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(central), len(local) + len(data), 0)
    return local + data + central + end


def climbing(folder: Path) -> bytes:
    """A tar of a run, a name that climbs out, an absolute one, and a link to /etc/hostname."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(run(folder / "inside"), "inside")
        for name in ("../../climbed.log", "/absolute.log"):
            member = tarfile.TarInfo(name)
            member.size = 5
            archive.addfile(member, io.BytesIO(b"outer"))
        link = tarfile.TarInfo("linked.log")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    return packed.getvalue()


def test_a_folder_of_everything_that_can_be_wrong(tmp_path: Path):
    source = tmp_path / "source"
    run(source / "a" / "night", dies=True)
    run(source / "b" / "night")
    (source / "c-climbing.tar.gz").write_bytes(climbing(tmp_path / "made"))
    whole = climbing(tmp_path / "made-2")
    (source / "d-cut.tar.gz").write_bytes(whole[: len(whole) // 3])
    (source / "e-bomb.zip").write_bytes(bomb("bomb/run.log"))
    for name, data in (("f-noise", os.urandom(1 << 16)), ("g-empty", b"")):
        (source / name).mkdir()
        (source / name / "run.log").write_bytes(data)
    (source / "h-out.log").symlink_to("/etc/hostname")
    before = {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "out")}
    command = [*COMMAND, str(source), "--out", str(tmp_path / "out"), "--timeout", "60", "-j", "2"]
    first = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert first.returncode == 2
    assert "Traceback" not in first.stderr
    rows = {
        row["run"]: (row["status"], row["ending"])
        for row in pl.read_parquet(tmp_path / "out" / "runs.parquet").iter_rows(named=True)
    }
    assert rows["source/a/night"] == ("done", "cgroup_limit")
    assert rows["source/b/night"][0] == "done"
    assert rows["source/c-climbing.tar.gz/inside"] == rows["source/b/night"]
    refused = {name for name, (status, _) in rows.items() if status == "refused"}
    assert {name.rpartition("/")[2] for name in refused} >= {"climbed.log", "absolute.log", "linked.log", "h-out.log"}
    assert any(name.startswith("source/d-cut.tar.gz") for name in refused)
    assert rows["source/f-noise"][0] == "no_evidence"
    (exploded,) = [status for name, (status, _) in rows.items() if "e-bomb" in name]
    assert exploded in {"refused", "unreadable"}
    after = {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "out")}
    assert after == before
    again = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert "0 analysed, 4 unchanged" in again.stderr
