"""No root is needed to watch one's own processes. Where the tests run as root, the recorder becomes nobody first."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

NOBODY = 65534
# The interpreter may lie where nobody cannot read, and imports happen late: so a first recording, as root, loads all. A
# process that changed its user is then made readable to itself again, as one that nobody had started would be.
RECORD = f"""
import contextlib, ctypes, os, sys, tempfile
from postmortem.cli.app import main
PR_SET_DUMPABLE = 4
arguments = sys.argv[1:]
with tempfile.TemporaryDirectory() as warm, contextlib.suppress(SystemExit):
    sys.argv = ["postmortem", "record", "--no-report", "-o", warm, "--", "true"]
    main()
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
assert os.geteuid() != 0
sys.argv = ["postmortem", *arguments]
main()
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")


@pytest.fixture
def place():
    """A directory that belongs to the user that we become: tmp_path is root's alone."""
    folder = Path(tempfile.mkdtemp(prefix="postmortem-rights-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def _record(place: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", RECORD, "record", "--no-report", "-o", str(place / "run"), *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def _ended(running: "subprocess.Popen[bytes]", code: int) -> str:
    _, said = running.communicate(timeout=60)
    assert running.returncode == code, said
    return said.decode()


def _sleeper(*, own: bool) -> "subprocess.Popen[bytes]":
    if own and os.geteuid() == 0:
        return subprocess.Popen(["sleep", "3"], user=NOBODY, group=NOBODY, extra_groups=[])
    return subprocess.Popen(["sleep", "3"])


def test_a_command_is_recorded_without_root(place):
    _ended(_record(place, "--", "sh", "-c", "echo one; sleep 1.3; exit 3"), 3)
    assert (place / "run" / "run.log").read_text() == "one\n"
    assert len((place / "run" / "processes.csv").read_text().splitlines()) >= 3
    assert len((place / "run" / "shares.csv").read_text().splitlines()) >= 2  # smaps_rollup of one's own
    assert (place / "run" / "exit.txt").read_text().count("exit_status=3\n") == 1


def test_a_process_of_ones_own_is_watched_without_root(place):
    sleeper = _sleeper(own=True)
    watching = _record(place, "--pid", str(sleeper.pid))
    sleeper.wait()
    _ended(watching, 0)
    assert f",{sleeper.pid},sleep," in (place / "run" / "processes.csv").read_text()
    assert f",{sleeper.pid},sleep," in (place / "run" / "shares.csv").read_text()
    assert '"command": ["sleep", "3"]' in (place / "run" / "start.json").read_text()


@needs_root
def test_of_another_users_process_what_may_be_read_is_kept(place):
    sleeper = _sleeper(own=False)
    watching = _record(place, "--pid", str(sleeper.pid))
    sleeper.wait()
    _ended(watching, 0)
    assert f",{sleeper.pid},sleep," in (place / "run" / "processes.csv").read_text()
    assert not (place / "run" / "shares.csv").exists()  # its smaps_rollup is not ours to read


@needs_root
def test_without_the_right_to_the_kernels_log_there_is_none_and_no_complaint(place):
    said = _ended(_record(place, "--", "true"), 0)
    assert "kmsg" not in said
    assert not (place / "run" / "dmesg.txt").exists()
