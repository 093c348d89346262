"""Container states as docker inspect and kubectl print them: JSON, YAML and `describe`, several lines an ending.

Reads `docker inspect` (whole, or `--format '{{json .State}}'`), `docker events --format json`, `kubectl get pod -o
yaml|json`, `kubectl describe pod`. Samples: `"OOMKilled": true, "ExitCode": 137`, `    Last State:  Terminated`.
A container that runs, or ended with code 0 without OOMKilled, is no death; restart counts are none either.
"""

import dataclasses
import re
from collections.abc import Iterable

__all__ = ["BLOCK_EVIDENCE", "BLOCK_LINE", "ContainerEnd", "read_blocks"]

BLOCK_EVIDENCE = r"\"OOMKilled\"\s*:|\"exitCode\"\s*:\s*\"?\d|^\s+(?:Last )?State:\s+(?:Terminated|Running|Waiting)|^\s+exitCode: \d|^\s*reason: OOMKilled"
_KEYS = (
    r"OOMKilled|ExitCode|exitCode|Exit Code|[Rr]eason|finishedAt|FinishedAt|Finished|startedAt|StartedAt|Started|"
    r"[Ss]ignal|Last State|State|lastState|state|terminated|Container ID|containerID|[Nn]ame|Running|Status|running|waiting|Error|execID|time|timeNano|status"
)
BLOCK_LINE = rf"^\s*[-{{]?\s*\"?(?:{_KEYS})\"?\s*:|^\s{{2,}}[\w.-]+:\s*$"
_ENTRY = re.compile(
    rf"(?<![\w-])\"?(?P<key>{_KEYS})\"?\s*:\s*(?P<value>\"(?:[^\"\\]|\\.)*\"|\{{|[^,{{}}\"]+(?:, \d[^,{{}}\"]*)?)?"
)
_DESCRIBED = re.compile(r"\s+(?:Last )?State:\s+[A-Z]")
_HEADING = re.compile(r"\s{2,6}(?P<name>[a-z0-9][a-z0-9.-]*):\s*$")
_WORDS = frozenset(
    {
        "state",
        "laststate",
        "env",
        "mounts",
        "limits",
        "requests",
        "containers",
        "conditions",
        "volumes",
        "environment",
        "args",
        "command",
    }
)
_NO_TIME = "0001-01-01"


@dataclasses.dataclass
class ContainerEnd:
    """One terminated state."""

    line: int
    text: str
    code: int | None = None
    oom: bool = False
    reason: str | None = None
    name: str | None = None
    finished: str | None = None
    signal: int | None = None
    running: bool = False
    docker: bool = False

    @property
    def what(self) -> str | None:
        """The ending in the table's words, None for a state that is none (running, or an init container's end)."""
        if self.oom:
            return "container_oom"
        if self.code not in (None, 0) and not self.running:
            return "container_exit"
        return "finished" if self.docker and self.code == 0 and self.finished and not self.running else None


class _Blocks:
    """Keys of one document, in their order; a state is full when its next key would be given twice."""

    def __init__(self) -> None:
        self.ends: list[ContainerEnd] = []
        self.name: str | None = None
        self.open: ContainerEnd | None = None
        self.unnamed: list[ContainerEnd] = []
        self.described = False

    def _state(self, line: int, text: str) -> ContainerEnd:
        if self.open is None:
            self.open = ContainerEnd(line, text.strip())
        return self.open

    def close(self) -> None:
        """End the open state; kubectl's YAML names it only afterwards."""
        if self.open is not None:
            if self.open.name is None:
                self.open.name = self.name
            self.ends.append(self.open)
            if self.open.name is None:
                self.unnamed.append(self.open)
        self.open = None

    def take(self, key: str, value: str, line: int, text: str) -> None:
        """One `key: value`."""
        key = key.lower().replace(" ", "")
        if key in ("state", "laststate", "terminated"):
            if value.strip() or key == "terminated":
                self.close()
            if value.strip() == "Terminated" or key == "terminated":
                self._state(line, text)
        elif key in ("running", "waiting"):
            if value == "true":
                self._state(line, text).running = True
        elif key in ("exitcode", "oomkilled", "reason", "finishedat", "finished", "signal"):
            self._detail(key, value, line, text)
        elif key in ("containerid", "execid"):
            return
        elif key == "name" and value:
            self._named(value.lstrip("/"))

    def _detail(self, key: str, value: str, line: int, text: str) -> None:
        if key == "exitcode":
            if self.open is not None and self.open.code is not None:
                self.close()
            self._state(line, text).code = int(value) if re.fullmatch(r"-?\d{1,4}", value) else None
        elif key == "oomkilled":
            state = self._state(line, text)
            state.docker, state.oom = True, value == "true"
        elif key == "reason" and self.open is not None:
            self.open.reason = value
            self.open.oom = self.open.oom or value == "OOMKilled"
        elif key == "reason" and value == "OOMKilled":
            self._state(line, text).reason = value
            self._state(line, text).oom = True
        elif key in ("finishedat", "finished") and self.open is not None:
            self.open.finished = None if value.startswith(_NO_TIME) else value
        elif key == "signal" and self.open is not None and value.isdecimal():
            self.open.signal = int(value)

    def _named(self, name: str) -> None:
        if self.open is not None and not self.described:
            self.open.name = name
            self.close()
        for end in self.unnamed:
            end.name = name
        self.unnamed.clear()


def read_blocks(lines: Iterable[tuple[int, str]]) -> list[ContainerEnd]:
    """Bad ends in `lines` (number, text), each once though `state` and `lastState` may repeat it."""
    blocks = _Blocks()
    pairs = list(lines)
    described = any(_DESCRIBED.match(text) for _, text in pairs)
    for number, text in pairs:
        heading = _HEADING.match(text) if described else None
        if heading and heading["name"] not in _WORDS:
            blocks.close()
            blocks.name, blocks.described = heading["name"], True
            continue
        for entry in _ENTRY.finditer(text):
            value = (entry["value"] or "").strip().strip('"').strip()
            if value != "{" or entry["key"] == "terminated":
                blocks.take(entry["key"], value, number, text)
    blocks.close()
    seen: set[tuple[object, ...]] = set()
    ends: list[ContainerEnd] = []
    for end in blocks.ends:
        key = (end.name, end.code, end.oom, end.finished)
        if end.what and key not in seen:
            seen.add(key)
            ends.append(end)
    return ends
