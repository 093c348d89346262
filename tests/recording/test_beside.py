"""What runs beside a recording: the copy at a second place, the status endpoint, GPU memory, containers."""

import http.server
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import fsspec
import pytest

import postmortem
from postmortem.errors import NotFoundError, UsageError
from postmortem.recording import containers, sync
from postmortem.recording.stores import Directory
from postmortem.recording.sync import Copy

RECORD = [sys.executable, "-m", "postmortem", "record", "--no-report"]


def test_the_copy_is_equal_to_the_run_directory(tmp_path):
    run, copy = tmp_path / "run", tmp_path / "copy"
    command = ["sh", "-c", "echo one; sleep 1.3; echo two"]
    subprocess.run([*RECORD, "-o", str(run), "--sync", str(copy), "--", *command], check=True, timeout=60)
    assert _files(copy) == _files(run)


def test_the_copy_can_be_in_an_object_store(tmp_path, bucket):
    store, variables = bucket
    run = tmp_path / "run"
    store.mkdir("runs")
    command = [*RECORD, "-o", str(run), "--sync", "s3://runs/7", "--", "sh", "-c", "echo one; sleep 0.5; echo two"]
    subprocess.run(command, check=True, timeout=60, env=variables)
    names = sorted(file.removeprefix("runs/7/") for file in store.find("runs/7"))
    assert {name: store.cat_file(f"runs/7/{name}") for name in names} == _files(run)


def test_a_copy_in_an_object_store_is_kept_up_while_the_run_lasts(tmp_path, monkeypatch):
    (tmp_path / "run.log").write_text("one\n")
    copy = Copy(tmp_path, "memory://kept-up/7")
    monkeypatch.setattr(copy._place, "every_s", 0.05)
    with copy:
        files = fsspec.filesystem("memory")
        _wait(lambda: files.exists("/kept-up/7/run.log"))
        assert files.cat_file("/kept-up/7/run.log") == b"one\n"
    assert copy.trouble == ""


def test_a_second_place_that_holds_a_run_is_refused_before_the_command_runs(tmp_path):
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "run.log").write_text("another run\n")
    mark = tmp_path / "ran"
    command = [*RECORD, "-o", str(tmp_path / "run"), "--sync", str(tmp_path / "copy"), "--", "touch", str(mark)]
    done = subprocess.run(command, check=False, timeout=60, capture_output=True)
    assert done.returncode == 2
    assert b"is not empty" in done.stderr
    assert not mark.exists()


def test_a_url_of_a_store_that_is_not_installed_is_said_before_the_command_runs(tmp_path):
    with pytest.raises(UsageError, match="pip install"):
        Copy(tmp_path, "nowhere://bucket/run")


def test_a_second_place_that_fails_is_said_and_the_recording_goes_on(tmp_path):
    (tmp_path / "file").write_text("in the way")
    run = tmp_path / "run"
    command = [*RECORD, "-o", str(run), "--sync", str(tmp_path / "file" / "copy"), "--", "sh", "-c", "echo one; exit 3"]
    done = subprocess.run(command, check=False, timeout=60, capture_output=True)
    assert done.returncode == 3
    assert b"Not a directory; the recording goes on" in done.stderr
    assert b"is not complete (Not a directory)" in done.stderr
    assert (run / "run.log").read_text() == "one\n"


def test_a_second_place_that_hangs_delays_the_end_by_a_bounded_time_only(tmp_path, monkeypatch, capfd):
    (tmp_path / "run.log").write_text("one\n")
    monkeypatch.setattr(Directory, "prepare", lambda _: time.sleep(60))
    monkeypatch.setattr(sync, "_START_S", 0.2)
    monkeypatch.setattr(sync, "_END_S", 0.2)
    began = time.monotonic()
    with Copy(tmp_path, tmp_path / "copy"):
        pass
    assert time.monotonic() - began < 2
    said = capfd.readouterr().err
    assert "no answer for 0 s; the recording goes on" in said
    assert "is not complete" in said


def test_what_a_full_disk_took_in_part_is_written_again(tmp_path):
    source, place = tmp_path / "run.log", Directory(tmp_path / "copy")
    source.write_bytes(b"x" * 100)
    place.prepare()
    place.bring(source, "run.log", last=False)
    (tmp_path / "copy" / "run.log").write_bytes(b"x" * 100 + b"hal")  # a write that failed midway
    source.write_bytes(b"x" * 100 + b"half")
    place.bring(source, "run.log", last=True)
    assert (tmp_path / "copy" / "run.log").read_bytes() == source.read_bytes()


@pytest.fixture
def endpoint():
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{\n "uptime_secs": 3, "memory": {"total_bytes": 1073741824, "used_bytes": 5}\n}')

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/status"
        server.shutdown()


def test_the_status_endpoint_is_kept_one_answer_a_line_with_its_time_beside_it(tmp_path, endpoint):
    run = [*RECORD, "-o", str(tmp_path / "run"), "--status", endpoint, "--interval", "0.2", "--", "sleep", "0.7"]
    subprocess.run(run, check=True, timeout=60)
    lines = (tmp_path / "run" / "status.jsonl").read_text().splitlines()
    assert len(lines) >= 2
    assert json.loads(lines[0])["uptime_secs"] == 3
    arrivals = (tmp_path / "run" / "arrivals.csv").read_text().splitlines()[1:]
    assert [row.split(",")[1:] for row in arrivals] == [[str(n + 1), "status.jsonl"] for n in range(len(lines))]


NVIDIA_SMI = """#!/bin/sh
case "$*" in
*driver_version*) echo "NVIDIA A100-SXM4-80GB, 570.86.15, 81920 MiB"; exit ;;
*-lms=*) ;;
*) exit 1 ;;
esac
echo "timestamp, index, memory.used [MiB], memory.total [MiB]"
while sleep 0.1; do echo "$(date +'%Y/%m/%d %H:%M:%S.123'), 0, 4321 MiB, 81920 MiB"; done
"""


def test_gpu_memory_and_driver_are_kept_where_nvidia_smi_is_there(tmp_path, monkeypatch):
    _program(tmp_path / "bin" / "nvidia-smi", NVIDIA_SMI)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    subprocess.run([*RECORD, "-o", str(tmp_path / "run"), "--", "sleep", "0.7"], check=True, timeout=60)
    found = postmortem.analyze(tmp_path / "run")
    of_gpu = {one.path: one for one in found.result.sources if one.path.startswith("gpu")}
    assert of_gpu["gpu.csv"].lines >= 3
    assert "memory.used [MiB]: taken for vram_used (gpu), in MiB" in of_gpu["gpu.csv"].columns
    assert {name: (one.unmatched, one.skipped) for name, one in of_gpu.items()} == {
        "gpu.csv": (0, 0),
        "gpu.txt": (0, 0),
    }


def test_an_nvidia_smi_that_ignores_its_end_does_not_hold_up_the_recording(tmp_path, monkeypatch):
    _program(tmp_path / "bin" / "nvidia-smi", "#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    began = time.monotonic()
    subprocess.run([*RECORD, "-o", str(tmp_path / "run"), "--", "true"], check=True, timeout=60)
    assert time.monotonic() - began < 10


def _runtime(tmp_path, name: str, script: str) -> Path:
    """A runtime's client, and the /proc and the cgroup tree of the container that it knows; gives /proc."""
    _program(tmp_path / "bin" / name, f"#!/bin/sh\n{script}\n")
    group = tmp_path / "fs" / "docker" / "abc"
    group.mkdir(parents=True)
    (group / "memory.current").write_text("1024\n")
    proc = tmp_path / "proc"
    for folder in ("self", "4711"):
        (proc / folder).mkdir(parents=True)
    (proc / "4711" / "cgroup").write_text("0::/docker/abc\n")
    (proc / "self" / "mountinfo").write_text(f"30 1 0:26 / {tmp_path / 'fs'} rw shared:4 - cgroup2 cgroup rw\n")
    return proc


def test_a_docker_containers_cgroup_is_found_by_its_first_process(tmp_path, monkeypatch):
    script = '[ "$1 $2 $3 $5" = "inspect --format {{.State.Pid}} cuzk-0" ] && echo 4711'
    proc = _runtime(tmp_path, "docker", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    assert containers.cgroup_of("cuzk-0", proc=proc) == tmp_path / "fs" / "docker" / "abc"


def test_a_kubernetes_containers_cgroup_is_found_by_crictl(tmp_path, monkeypatch):
    script = """case "$1" in ps) echo f00d ;; inspect) [ "$4" = f00d ] && echo '{"info": {"pid": 4711}}' ;; esac"""
    proc = _runtime(tmp_path, "crictl", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    monkeypatch.setattr(containers, "_CLIENTS", ())
    assert containers.cgroup_of("cuzk-0", proc=proc) == tmp_path / "fs" / "docker" / "abc"


def test_of_a_containers_state_only_its_end_is_kept(tmp_path, monkeypatch):
    state = (
        '{"Status":"exited","OOMKilled":true,"Pid":0,"ExitCode":137,"Env":"hidden","FinishedAt":"2026-03-13T14:02:11Z"}'
    )
    _program(tmp_path / "bin" / "docker", f"#!/bin/sh\necho '{state}'\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    kept = json.loads(containers.end_state("cuzk-0"))["State"]
    assert kept == {
        "Status": "exited",
        "OOMKilled": True,
        "ExitCode": 137,
        "FinishedAt": "2026-03-13T14:02:11Z",
    }


def test_a_containers_end_is_read_by_analyze(tmp_path):
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 137, "FinishedAt": "2026-03-13T14:02:11.5Z"}
    (tmp_path / "container.json").write_text(json.dumps({"State": state}) + "\n")
    found = postmortem.analyze(tmp_path)
    assert found.ending.how == "cgroup_limit"
    assert found.result.sources[0].unmatched == 0


def test_a_container_that_nobody_knows_is_said_with_the_way_out(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotFoundError, match="--cgroup"):
        containers.cgroup_of("cuzk-0")
    assert containers.end_state("cuzk-0") == ""


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _wait(done) -> None:
    for _ in range(100):
        if done():
            return
        time.sleep(0.05)
    pytest.fail("it did not come")


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
