"""What `probe` does where it may do little: read only, without root, refused by the system, wrongly asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = [sys.executable, "-m", "postmortem", "probe"]
WATCHED = """
import os, sys
def note(event, arguments):
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event in {"os.fork", "os.posix_spawn", "os.mkdir", "subprocess.Popen", "mmap.__new__", "os.kill"}:
        print(event, arguments, file=sys.stderr)
from postmortem.cli.app import run
import postmortem.probing.report
sys.addaudithook(note)
run(["probe", "--dry-run", "--json"])
"""

# The interpreter may lie where nobody cannot read: so a first probe, as root, loads all.
AS_NOBODY = """
import contextlib, ctypes, io, os, sys
from postmortem.cli.app import run
with contextlib.redirect_stdout(io.StringIO()):
    run(["probe", "--dry-run", "--json"])
import postmortem_reports.safe
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: a process that changed its user may not write its own /proc
sys.exit(run(["probe", "--json"]))
"""


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*PROBE, *options], check=False, capture_output=True, text=True, timeout=120)


def test_a_dry_run_writes_nothing_starts_nothing_and_maps_nothing():
    done = subprocess.run([sys.executable, "-c", WATCHED], check=True, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["measured"] == []
    assert done.stderr == ""


def test_what_the_system_refuses_is_said_in_its_words():
    command = ["sh", "-c", 'ulimit -v 1500000; exec "$@"', "sh", *PROBE, "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    found = json.loads(done.stdout)
    (measured,) = found["measured"]
    if found["headroom"] < 2 << 30:
        pytest.skip("less than 2 GiB is free here: the limit is met before the refusal")
    assert (measured["stopped"], measured["reason"]) == ("refused", "mmap: Cannot allocate memory")
    assert 0 < measured["allocatable"] < 1500000 << 10
    assert found["budget"] < measured["allocatable"]


def test_no_root_is_needed():
    command = ["sh", "-c", 'ulimit -v 1500000; exec "$@"', "sh", sys.executable, "-c", AS_NOBODY]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["usable"] > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--kind", "gpu"), "not one of anon, shared, pinned"),
        (("--dry-run", "--to-the-kill"), "give one of them"),
        (("--evidence", "no/such/folder/probe.log", "--dry-run"), "No such file or directory"),
    ],
)
def test_wrong_use_is_one_line_that_says_what(options, words):
    done = _run(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_help_fits_eighty_columns():
    done = subprocess.run(
        [*PROBE, "--help"], check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}
    )
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_an_evidence_line_is_appended(tmp_path):
    file: Path = tmp_path / "probe.log"
    for _ in range(2):
        assert _run("--dry-run", "--evidence", str(file)).returncode == 0
    assert [line.split()[1] for line in file.read_text().splitlines()] == ["memprobe:", "memprobe:"]
