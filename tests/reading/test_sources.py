"""Finding inputs and what is said when there is nothing to read."""

import bz2
import errno
import gzip
import hashlib
import io
import lzma
import os
import random
import subprocess
import sys

import pytest
import zstandard

from postmortem.errors import InputError, NoEvidenceError, NotFoundError
from postmortem.sources import Stream, find

TEXT = b"".join(b"line %d of a log\n" % number for number in range(5000))
PACK = {
    "plain": bytes,
    "gz": gzip.compress,
    "gz of two members": lambda data: gzip.compress(data[:100]) + gzip.compress(data[100:]),
    "zst": zstandard.ZstdCompressor().compress,
    "zst of two frames": lambda data: b"".join(map(zstandard.ZstdCompressor().compress, (data[:100], data[100:]))),
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "bz2 of two streams": lambda data: bz2.compress(data[:100]) + bz2.compress(data[100:]),
}


def content(stream):
    return b"".join(chunk.data for chunk in stream.chunks())


@pytest.mark.parametrize("kind", PACK)
def test_compression_is_told_by_content_not_by_name(kind, tmp_path):
    file = tmp_path / "run.log"
    file.write_bytes(PACK[kind](TEXT))
    (stream,) = find([file])
    assert content(stream) == TEXT
    assert stream.warnings == []


@pytest.mark.parametrize("kind", PACK)
def test_hash_and_size_are_those_of_the_stored_file(kind, tmp_path):
    stored = PACK[kind](TEXT)
    (tmp_path / "a.bin").write_bytes(stored)
    (stream,) = find([tmp_path])
    content(stream)
    assert (stream.bytes, stream.sha256) == (len(stored), hashlib.sha256(stored).hexdigest())


@pytest.mark.parametrize("kind", ["gz", "zst", "xz", "bz2"])
def test_of_a_truncated_archive_all_that_can_be_had_is_given_with_a_warning(kind):
    text = b"".join(b"%d %d\n" % (number, random.Random(number).getrandbits(64)) for number in range(60_000))
    stored = PACK[kind](text)
    stream = Stream("run.log.gz", io.BytesIO(stored[: len(stored) * 3 // 4]))
    got = content(stream)
    # bzip2 works in blocks of 900 kB and xz in its own; each gives its whole blocks at least.
    assert text.startswith(got)
    assert len(got) > (len(text) // 2 if kind != "bz2" else 0)
    assert "truncated" in stream.warnings[0]
    assert stream.bytes == len(stored) * 3 // 4


def test_a_damaged_archive_is_read_up_to_the_damage():
    stored = bytearray(gzip.compress(os.urandom(300_000).hex().encode()))
    stored[200_000] ^= 0xFF
    stream = Stream("x", io.BytesIO(bytes(stored)))
    content(stream)
    assert len(stream.warnings) == 1


def test_a_directory_is_its_files_in_order_without_hidden_ones_our_outputs_and_a_fixtures_answers(tmp_path):
    for name in ("b.log", "a/z.log", ".git/config", ".hidden", "run.postmortem.html", "truth.json", "expected.json"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("x\n")
    assert [stream.path for stream in find([tmp_path])] == ["a/z.log", "b.log"]


def test_the_order_in_which_files_are_named_does_not_matter(tmp_path):
    files = [tmp_path / name for name in ("c", "a", "b")]
    for file in files:
        file.write_text("x\n")
    one = [stream.path for stream in find([*files, files[0]])]
    assert one == [stream.path for stream in find(files[::-1])]
    assert len(one) == 3


def test_standard_input_is_read_and_can_be_read_again(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    (stream,) = find(["-"])
    assert (stream.name, content(stream), content(stream)) == ("-", TEXT, TEXT)


def test_a_pipe_is_read():
    reader, writer = os.pipe()
    os.write(writer, b"hello\n")
    os.close(writer)
    (stream,) = find([f"/dev/fd/{reader}"])
    assert content(stream) == b"hello\n"
    os.close(reader)


def message_of(error, *paths):
    with pytest.raises(error) as caught:
        find(list(paths))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_a_missing_path_an_empty_file_and_an_empty_directory_are_one_clear_line(tmp_path):
    assert "missing.log: no such file" in message_of(NotFoundError, tmp_path / "missing.log")
    (tmp_path / "run.log").touch()
    assert "run.log: empty" in message_of(NoEvidenceError, tmp_path / "run.log")
    (tmp_path / "sub").mkdir()
    assert "sub: holds no files" in message_of(NoEvidenceError, tmp_path / "sub")
    assert "\0" in message_of(NotFoundError, "a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_one_clear_line(tmp_path):
    (tmp_path / "run.log").write_text("x")
    (tmp_path / "run.log").chmod(0)
    assert "no permission" in message_of(InputError, tmp_path / "run.log")


def test_a_directory_that_may_be_listed_but_not_entered_is_one_clear_line(tmp_path, monkeypatch):
    (tmp_path / "run.log").write_text("x")

    def refuse(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.is_file", refuse)
    assert "run.log: no permission" in message_of(InputError, tmp_path)


def test_devices_are_refused_since_some_have_no_end():
    assert "/dev/zero: a device" in message_of(InputError, "/dev/zero")


def test_closed_standard_input_is_one_clear_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "standard input is closed" in message_of(InputError, "-")


def test_empty_standard_input_and_an_empty_pipe_are_one_clear_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    assert "-: empty" in message_of(NoEvidenceError, "-")
    reader, writer = os.pipe()
    os.close(writer)
    assert "empty" in message_of(NoEvidenceError, f"/dev/fd/{reader}")
    os.close(reader)


@pytest.mark.parametrize("kind", ["plain", "gz"])
def test_a_file_that_vanishes_before_it_is_read_is_one_clear_line(kind, tmp_path):
    file = tmp_path / "run.log"
    file.write_bytes(PACK[kind](TEXT))
    (stream,) = find([file])
    file.unlink()
    with pytest.raises(NotFoundError, match="no such file"):
        content(stream)


def test_a_file_that_grows_while_it_is_read_has_the_hash_of_what_was_read(tmp_path):
    file = tmp_path / "run.log"
    file.write_bytes(TEXT)
    (stream,) = find([file])
    got = b""
    for number, chunk in enumerate(stream.chunks(size=20_000)):
        got += chunk.data
        if number < 3:
            with file.open("ab") as end:
                end.write(b"one more\n")
    assert got == file.read_bytes() == TEXT + 3 * b"one more\n"
    assert (stream.bytes, stream.sha256) == (len(got), hashlib.sha256(got).hexdigest())


def test_a_file_that_is_truncated_while_it_is_read_is_read_as_far_as_it_goes(tmp_path):
    file = tmp_path / "run.log"
    file.write_bytes(TEXT)
    (stream,) = find([file])
    chunks = stream.chunks(size=20_000)
    got = next(chunks).data
    os.truncate(file, 30_000)
    got += b"".join(chunk.data for chunk in chunks)
    assert got == TEXT[:30_000]


@pytest.mark.parametrize("kind", ["plain", "gz"])
def test_the_last_line_can_be_read_again_though_no_newline_ends_it(kind, tmp_path):
    file = tmp_path / "run.log"
    file.write_bytes(PACK[kind](TEXT + b"Killed"))
    (stream,) = find([file])
    content(stream)
    (chunk,) = stream.chunks_with({5001})
    assert (chunk.lines + chunk.first_line - 1, chunk.data[-6:]) == (5001, b"Killed")


@pytest.mark.parametrize("kind", ["plain", "gz", "zst"])
def test_a_line_of_64_mib_is_kept_in_part_and_costs_bounded_memory(kind, tmp_path):
    line = b"2026-03-13T14:02:11.123456Z  INFO a::b: " + b"x" * (64 << 20)
    file = tmp_path / "run.log"
    file.write_bytes(PACK[kind](b"before\n" + line + b"\nafter\n"))
    (stream,) = find([file])
    chunks = list(stream.chunks())
    assert sum(chunk.lines for chunk in chunks) == 3
    kept = b"".join(chunk.data for chunk in chunks)
    assert kept.startswith(b"before\n2026-03-13")
    assert kept.endswith(b"x\nafter\n")
    assert len(kept) < 2 << 20
    assert "a line longer than" in stream.warnings[0]


@pytest.mark.parametrize("kind", ["plain", "gz", "zst"])
def test_a_line_of_200_mib_does_not_take_as_much_memory(kind, tmp_path):
    file = tmp_path / "run.log"
    file.write_bytes(PACK[kind](b"before\n" + b"x" * (200 << 20) + b"\nafter\n"))
    # The largest resident size of a process of its own: the one of the tests has held the whole line.
    code = """
import resource, sys
from postmortem.sources import find
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
(stream,), before = find([sys.argv[1]]), peak()
for chunk in stream.chunks(): pass
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150  # MiB


def test_an_empty_file_among_others_is_a_warning(tmp_path):
    (tmp_path / "dmesg.txt").touch()
    (tmp_path / "run.log").write_text("x\n")
    empty, _ = find([tmp_path])
    assert (empty.path, empty.warnings) == ("dmesg.txt", ["empty"])


BINARY = {
    "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 20,
    "elf": b"\x7fELF\x02" + bytes(range(256)) * 9,
}
TEXTS = {
    "a log that was truncated under its writer": b"\0" * 5000 + b"2026 INFO x: y\n" * 50,
    "UTF-8": ("größer — ☃\n" * 50).encode(),
    "Latin-1": "é abc def ghi jkl mno pqr stu\n".encode("latin-1") * 30,
    "colours": b"\x1b[32m INFO\x1b[0m text\n" * 30,
}


@pytest.mark.parametrize("name", [*BINARY, *TEXTS])
def test_binary_data_is_told_from_logs(name):
    assert Stream("x", io.BytesIO((BINARY | TEXTS)[name])).binary is (name in BINARY)


def test_utf_16_with_a_byte_order_mark_is_decoded():
    stream = Stream("x", io.BytesIO("grün\r\nzwei\n".encode("utf-16")))
    assert not stream.binary
    assert content(stream).decode() == "grün\r\nzwei\n"
