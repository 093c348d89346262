"""What passes through `guard`: signals in, exit codes out, whoever reads the output or stops reading it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

GUARD = [sys.executable, "-m", "postmortem", "guard", "--budget", "1GiB", "--set-env", "BUDGET={budget}"]
CODES = [("exit 0", 0), ("exit 1", 1), ("kill -9 $$", 137), ("kill -15 $$", 143), ("kill -11 $$", 139)]


def _command(folder: Path, script: str) -> list[str]:
    return [*GUARD, "-o", str(folder / "attempts"), "--", "sh", "-c", script]


def _begun(folder: Path, script: str) -> "subprocess.Popen[bytes]":
    """A guard whose command has said `ready`."""
    running = subprocess.Popen(_command(folder, script), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    return running


@pytest.mark.parametrize(("script", "code"), CODES)
def test_a_pipe_behind_it_masks_nothing(tmp_path, script, code):
    bash = '"$@" 2>&1 | cat; exit ${PIPESTATUS[0]}'
    command = ["bash", "-c", bash, "bash", *_command(tmp_path, f"echo said; {script}")]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60)
    assert done.returncode == code
    assert done.stdout.startswith(b"said\n")


@pytest.mark.parametrize(("script", "code"), CODES)
def test_readers_that_have_gone_mask_nothing(tmp_path, script, code):
    read, write = os.pipe()
    os.close(read)
    command = _command(tmp_path, f"for n in 1 2 3; do echo said; done; {script}")
    done = subprocess.run(command, check=False, stdout=write, stderr=write, timeout=60)
    os.close(write)
    assert done.returncode == code
    assert (tmp_path / "attempts" / "attempt-1" / "run.log").read_text() == "said\n" * 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_reaches_the_command_which_ends_as_it_likes(tmp_path, number):
    script = "trap 'echo caught; exit 7' TERM INT; echo ready; while :; do sleep 0.05; done"
    running = _begun(tmp_path, script)
    running.send_signal(number)
    out, said = running.communicate(timeout=60)
    assert (running.returncode, out) == (7, b"caught\n")
    assert b"a signal to guard" in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_command_that_dies_of_the_signal_gives_its_code_and_no_retry(tmp_path, number, code):
    # exec: a shell that runs a command in the foreground waits for it first.
    sleeper = f"exec {sys.executable} -S -c \"import signal, time; signal.signal(2, signal.SIG_DFL); print('ready', flush=True); time.sleep(60)\""
    running = _begun(tmp_path, sleeper)
    running.send_signal(number)
    running.communicate(timeout=60)
    assert running.returncode == code
    assert not (tmp_path / "attempts" / "attempt-2").exists()


def test_a_signal_that_is_no_stop_does_not_count_as_one(tmp_path):
    running = _begun(tmp_path, "trap 'echo reopened' USR1; echo ready; sleep 0.5; sleep 0.5; exit 3")
    running.send_signal(signal.SIGUSR1)
    out, said = running.communicate(timeout=60)
    assert (running.returncode, out) == (3, b"reopened\n")
    assert b"exit code 3" in said


def test_a_stop_between_two_attempts_ends_with_the_report(tmp_path):
    running = _begun(tmp_path, "echo ready; exit 5")
    # The command has ended; what runs now is its analysis.
    deadline = time.monotonic() + 30
    while not (tmp_path / "attempts" / "attempt-1" / "exit.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 5, said
    assert b"Budget for the configuration" in said
