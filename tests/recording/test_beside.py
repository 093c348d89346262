"""What can run beside a recording: the copy at a second place, the status endpoint, containers' names."""

import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from postmortem.errors import NotFoundError
from postmortem.recording import containers

RECORD = [sys.executable, "-m", "postmortem", "record", "--no-report"]


def test_the_copy_is_equal_to_the_run_directory(tmp_path):
    run, copy = tmp_path / "run", tmp_path / "copy"
    command = ["sh", "-c", "echo one; sleep 1.3; echo two"]
    subprocess.run([*RECORD, "-o", str(run), "--sync", str(copy), "--", *command], check=True, timeout=60)
    assert _files(copy) == _files(run)


def test_the_status_endpoint_is_kept_one_answer_a_line(tmp_path):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{\n "uptime_secs": 3\n}')

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/status"
        run = [*RECORD, "-o", str(tmp_path / "run"), "--status", url, "--interval", "0.2", "--", "sleep", "0.7"]
        subprocess.run(run, check=True, timeout=60)
        server.shutdown()
    lines = (tmp_path / "run" / "status.jsonl").read_text().splitlines()
    assert len(lines) >= 2
    assert json.loads(lines[0]) == {"uptime_secs": 3}


def test_a_container_that_nobody_knows_is_said_with_the_way_out(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotFoundError, match="--cgroup"):
        containers.cgroup_of("cuzk-0")


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
