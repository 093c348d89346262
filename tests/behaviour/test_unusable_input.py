"""What cannot be analysed is one clear line on stderr and exit code 2, never a traceback."""

import json
import struct
import subprocess
import sys
import zlib

import pytest
from behaviour.runs import BUNDLED

from postmortem.cli import app


def png():
    """A picture of one grey pixel, chunk by chunk."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"\0\x80") + b"\0\1\2\3" * 400
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with one of everything that holds no evidence."""
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "blank.log").write_bytes(b"\n\n   \n")
    (tmp_path / "photo.png").write_bytes(png())
    (tmp_path / "letter.txt").write_text("Dear operator,\n\nthe weather here is fine.\n")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("Nothing happened today.\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def analyze(capfdbinary):
    """Runs `postmortem analyze` and gives (exit code, stdout, stderr)."""

    def call(*arguments):
        code = app.run(("analyze", *arguments))
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return call


UNUSABLE = ["missing.log", "empty.log", "blank.log", "photo.png", "letter.txt", "nothing", "letters"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("path", UNUSABLE)
@pytest.mark.parametrize("options", [(), ("--format", "json")], ids=["report", "json"])
def test_one_line_that_names_the_input_and_exit_code_2(analyze, path, options):
    code, out, err = analyze(path, *options)
    assert (code, out) == (2, "")
    assert err.startswith("postmortem: ")
    assert path in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("path", UNUSABLE)
def test_no_report_is_left_behind(folder, analyze, path):
    before = sorted(folder.rglob("*"))
    analyze(path)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.usefixtures("folder")
def test_a_missing_file_beside_a_good_one_is_still_an_error(analyze):
    code, out, err = analyze(str(BUNDLED["misdetected-limit"] / "run.log"), "missing.log", "--format", "json")
    assert (code, out) == (2, "")
    assert "missing.log" in err


@pytest.mark.usefixtures("folder")
def test_files_without_evidence_beside_a_good_one_do_no_harm(analyze):
    code, out, err = analyze(
        str(BUNDLED["misdetected-limit"] / "run.log"), "photo.png", "empty.log", "--format", "json"
    )
    assert (code, err) == (0, "")
    sources = {source["path"]: source for source in json.loads(out)["sources"]}
    assert "looks like binary data, not a log: not read" in sources["photo.png"]["warnings"]
    assert json.loads(out)["verdict"]["cause"] in ("limit_misdetected", "inconclusive")


def test_the_command_itself_ends_with_2_and_no_traceback(tmp_path):
    command = [sys.executable, "-c", "import sys; from postmortem.cli.app import main; sys.exit(main())"]
    done = subprocess.run(
        [*command, "analyze", "missing.log"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "missing.log" in done.stderr
