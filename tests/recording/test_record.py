"""`record` on real processes: what it leaves, and what comes through."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kills import lab

import postmortem

RECORD = [sys.executable, "-m", "postmortem", "record", "--no-report"]
needs_cgroup = pytest.mark.cgroup


@pytest.fixture
def group():
    try:
        with lab.alone(), lab.group(240 * lab.MIB) as made:
            yield made
    except lab.NoLabError as reason:
        pytest.skip(str(reason))


def _record(folder: Path, *command: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RECORD, *options, "-o", str(folder), "--", *command], check=False, capture_output=True, timeout=60
    )


def _python(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


@pytest.mark.parametrize("code", [0, 1, 7])
def test_the_commands_exit_code_comes_out(tmp_path, code):
    assert _record(tmp_path / "run", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize(("number", "code"), [(9, 137), (15, 143), (11, 139)])
def test_a_signal_comes_out_as_shells_count_it_and_is_written_down(tmp_path, number, code):
    done = _record(tmp_path / "run", "sh", "-c", f"kill -{number} $$")
    assert done.returncode == code
    written = (tmp_path / "run" / "exit.txt").read_text()
    assert f"exit_status={code}\nsignal={number}\n" in written


def test_output_passes_through_on_its_own_stream_and_is_kept_in_the_log(tmp_path):
    done = _record(tmp_path / "run", "sh", "-c", "echo one; echo two >&2; printf three")
    assert done.stdout == b"one\nthree"
    assert b"two\n" in done.stderr
    assert sorted((tmp_path / "run" / "run.log").read_bytes().split()) == [b"one", b"three", b"two"]


def test_lines_that_have_no_time_have_their_arrival_beside_the_log(tmp_path):
    begin = time.time()
    _record(tmp_path / "run", "sh", "-c", "echo one; sleep 0.4; echo two")
    header, *rows = [line.split(",") for line in (tmp_path / "run" / "arrivals.csv").read_text().splitlines()]
    assert header == ["time", "lines", "file"]
    assert [row[1:] for row in rows] == [["1", "run.log"], ["2", "run.log"]]
    assert float(rows[1][0]) - float(rows[0][0]) == pytest.approx(0.4, abs=0.2)
    assert float(rows[0][0]) >= begin - 0.01


def test_sigterm_goes_to_the_command(tmp_path):
    running = subprocess.Popen([*RECORD, "-o", str(tmp_path / "run"), "--", "sleep", "30"], stderr=subprocess.DEVNULL)
    _wait_for(tmp_path / "run" / "host.txt")
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=10) == 143


def test_secrets_are_in_no_file(tmp_path):
    variables = os.environ | {"CUZK_API_KEY": "hidden-1", "AWS_SECRET": "hidden-2", "CUZK_MODE": "fast"}
    command = ["true", "--token", "hidden-3", "--password=hidden-4", "http://me:hidden-5@example.org/"]
    subprocess.run([*RECORD, "-o", str(tmp_path / "run"), "--", *command], env=variables, check=True, timeout=60)
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    everything = "".join(file.read_text() for file in files)
    assert "hidden" not in everything
    assert json.loads((tmp_path / "run" / "start.json").read_text())["environment"] == {"CUZK_MODE": "fast"}


def test_every_line_of_the_recorders_own_files_is_read_by_analyze(tmp_path):
    _record(tmp_path / "run", "sh", "-c", "sleep 0.3; kill -9 $$")
    found = postmortem.analyze(tmp_path / "run")
    ours = [one for one in found.result.sources if one.path != "run.log"]
    assert len(ours) >= 4
    assert {one.path: (one.unmatched, one.skipped) for one in ours} == {one.path: (0, 0) for one in ours}


def test_a_command_that_is_not_there_is_wrong_use(tmp_path):
    done = _record(tmp_path / "run", "/nowhere/at-all")
    assert done.returncode == 2
    assert b"cannot run /nowhere/at-all" in done.stderr


def test_a_directory_that_holds_a_run_is_refused(tmp_path):
    (tmp_path / "run.log").write_text("another run\n")
    done = _record(tmp_path, "true")
    assert done.returncode == 2
    assert (tmp_path / "run.log").read_text() == "another run\n"


def test_watching_a_process_ends_with_it(tmp_path):
    sleeper = subprocess.Popen(["sleep", "0.8"])
    watching = subprocess.Popen([*RECORD, "-o", str(tmp_path / "run"), "--pid", str(sleeper.pid)])
    sleeper.wait()
    assert watching.wait(timeout=10) == 0
    rows = (tmp_path / "run" / "processes.csv").read_text().splitlines()
    assert any(f",{sleeper.pid},sleep," in row for row in rows)


def test_sigterm_ends_the_watching_and_what_was_seen_is_kept(tmp_path):
    sleeper = subprocess.Popen(["sleep", "30"])
    watching = subprocess.Popen([*RECORD, "-o", str(tmp_path / "run"), "--pid", str(sleeper.pid)])
    _wait_for(tmp_path / "run" / "start.json")
    watching.send_signal(signal.SIGTERM)
    assert watching.wait(timeout=10) == 0
    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()
    assert f",{sleeper.pid},sleep," in (tmp_path / "run" / "processes.csv").read_text()


def test_a_disk_that_is_full_costs_evidence_and_not_the_command(tmp_path):
    def small_files() -> None:  # what the recorder may write; the command only passes its output on
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))

    command = [*RECORD, "-o", str(tmp_path / "run"), "--", "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; exit 3"]
    done = subprocess.run(command, check=False, capture_output=True, timeout=60, preexec_fn=small_files)
    assert done.returncode == 3, done.stderr
    assert done.stdout == b"x" * 100_000
    assert (tmp_path / "run" / "run.log").stat().st_size == 2048


@needs_cgroup
def test_a_container_is_watched_to_its_end_and_its_state_kept(tmp_path, group, monkeypatch):
    inner = group.path / "docker-abc"
    inner.mkdir()
    sleeper = subprocess.Popen(["sh", "-c", f"echo $$ > {inner}/cgroup.procs; exec sleep 30"])
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    state = '{"Status": "exited", "OOMKilled": true, "ExitCode": 137}'
    docker.write_text(f"#!/bin/sh\ncase $3 in *Pid*) echo {sleeper.pid} ;; *) echo '{state}' ;; esac\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for _ in range(200):
        if (inner / "cgroup.procs").read_text():
            break
        time.sleep(0.02)
    watching = subprocess.Popen([*RECORD, "-o", str(tmp_path / "run"), "--container", "cuzk-0"])
    _wait_for(tmp_path / "run" / "memory.csv")
    time.sleep(0.3)
    sleeper.kill()
    sleeper.wait()
    _remove(inner)
    assert watching.wait(timeout=10) == 0
    assert '"ExitCode": 137' in (tmp_path / "run" / "container.json").read_text()
    assert _column(tmp_path / "run" / "memory.csv", "memory.max")[0] == 240 * lab.MIB
    assert f",{sleeper.pid},sleep," in (tmp_path / "run" / "processes.csv").read_text()


@needs_cgroup
def test_a_kill_by_the_limit_is_told_with_dense_samples_before_it(tmp_path, group):
    folder = tmp_path / "run"
    victim = _python(_grow(group.path, mib_a_step=4, pause_s=0.02))
    assert _record(folder, *victim).returncode == 137
    found = postmortem.analyze(folder)
    assert found.ending.how == "cgroup_limit"
    assert found.arithmetic.limit.best == 240 * lab.MIB
    times = [float(line.split()[1]) for line in (folder / "run.log").read_text().splitlines()]
    before = [t for t in _column(folder / "memory.csv", "time") if t <= times[-1] + 0.05]
    assert times[-1] - before[-1] <= 0.2
    # A dead process is shown in the root: the last sample is still of the cgroup that it died in.
    assert _column(folder / "memory.csv", "oom_kill")[-1] == 1
    assert _column(folder / "memory.csv", "memory.max")[-1] == 240 * lab.MIB


@needs_cgroup
def test_a_burst_out_of_calm_finds_a_sample_from_just_before(tmp_path, group):
    folder = tmp_path / "run"
    burst = f"""
import time, os
open({str(group.path / "cgroup.procs")!r}, "w").write(str(os.getpid()))
time.sleep(2.6)
print(f"{{time.time():.3f}}", flush=True)
b"x" * (400 << 20)
"""
    assert _record(folder, *_python(burst)).returncode == 137
    began = float((folder / "run.log").read_text())
    rows = zip(_column(folder / "memory.csv", "time"), _column(folder / "memory.csv", "oom_kill"), strict=True)
    calm = [time for time, kills in rows if not kills]
    assert began - calm[-1] <= 0.15
    # In calm one a second is written, not fifty; the move into the cgroup, the burst and a busy machine add some.
    assert len(calm) <= 40


@needs_cgroup
def test_samples_survive_a_kill_of_recorder_and_command_together(tmp_path, group):
    folder = tmp_path / "run"
    command = [*RECORD, "-o", str(folder), "--", *_python(_grow(group.path, mib_a_step=1, pause_s=0.02))]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    _wait_for(folder / "memory.csv")
    time.sleep(1.5)
    os.killpg(running.pid, signal.SIGKILL)  # its own session: the recorder and its command only
    died = time.time()
    running.wait(timeout=10)
    assert died - _column(folder / "memory.csv", "time")[-1] <= 0.2
    assert postmortem.analyze(folder).result.sources


@needs_cgroup
def test_watching_a_cgroup_ends_when_it_is_removed(tmp_path, group):
    child = group.path / "inner"
    child.mkdir()
    watching = subprocess.Popen([*RECORD, "-o", str(tmp_path / "run"), "--cgroup", str(child)])
    _wait_for(tmp_path / "run" / "memory.csv")
    time.sleep(0.3)
    child.rmdir()
    assert watching.wait(timeout=10) == 0
    limits = _column(tmp_path / "run" / "memory.csv", "memory.max")
    assert limits[0] == 240 * lab.MIB  # the parent's, which is the one that would kill


def _grow(group: Path, *, mib_a_step: int, pause_s: float) -> str:
    """A program that enters the cgroup, then takes memory and says when."""
    return f"""
import time, os
open({str(group / "cgroup.procs")!r}, "w").write(str(os.getpid()))
kept = []
while True:
    kept.append(bytearray(b"x" * ({mib_a_step} << 20)))
    print("took", f"{{time.time():.3f}}", flush=True)
    time.sleep({pause_s})
"""


def _column(file: Path, name: str) -> list[float]:
    header, *rows = [line.split(",") for line in file.read_text().splitlines()]
    return [float(row[header.index(name)]) for row in rows]


def _remove(group: Path) -> None:
    for _ in range(100):
        try:
            group.rmdir()
        except OSError:  # the dead are still being taken out
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"{group} cannot be removed")


def _wait_for(path: Path) -> None:
    for _ in range(200):
        if path.exists() and path.stat().st_size:
            return
        time.sleep(0.05)
    pytest.fail(f"{path.name} did not appear")
