"""The daemon's status endpoint, polled once an interval: one JSON object a line in status.jsonl, its time in arrivals.csv."""

import http.client
import json
from pathlib import Path
from urllib.parse import urlsplit

from postmortem.errors import UsageError
from postmortem.recording.aside import Aside
from postmortem.recording.writer import Appender, arrival, arrivals_file

__all__ = ["StatusPoll"]

_PATIENCE_S = 2.0
_LARGEST = 1 << 20


class StatusPoll(Aside):
    """Polls until left; a daemon that does not answer leaves no line. Raises UsageError on other than http:// URLs."""

    def __init__(self, url: str, folder: Path, interval_s: float) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            msg = f"--status {url!r}: an http:// URL is needed, such as http://127.0.0.1:9821/status"
            raise UsageError(msg)
        self._host, self._port = parts.hostname, parts.port or 80
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._file = folder / "status.jsonl"
        self._arrivals = arrivals_file(folder)
        self._interval = interval_s
        super().__init__("status", _PATIENCE_S)

    def _run(self) -> None:
        file: Appender | None = None
        count = 0
        while not self._stop.is_set():
            line = self._poll()
            if line:
                file = file or Appender(self._file)
                file.write(line + b"\n")
                count += 1
                self._arrivals.write(arrival(count, self._file.name))
            self._stop.wait(self._interval)

    def _poll(self) -> bytes:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_PATIENCE_S)
        try:
            connection.request("GET", self._path)
            body = connection.getresponse().read(_LARGEST)
            return json.dumps(json.loads(body), separators=(",", ":")).encode()
        except (OSError, http.client.HTTPException, ValueError):
            return b""
        finally:
            connection.close()
