"""What is known at the start of a run: command, machine, limits, versions. Secrets are left out before anything is written."""

import datetime as dt
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from postmortem.recording.cgroups import Cgroup
from postmortem.recording.files import pairs

__all__ = ["environment", "host_text", "start_json", "without_secrets"]

_SECRET = re.compile(r"key|token|secret|pass|credential|auth|cookie|session|private|dsn", re.IGNORECASE)
_KEPT = re.compile(r"^(?:CUDA|CUZK|NVIDIA|MALLOC|RUST_LOG|RAYON|OMP|FIL_|BELLMAN|POSTMORTEM)", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/@\s]+@")
_HIDDEN = "[left out]"


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that shape memory use, by their prefixes; all others are left out, and of these what may be secret."""
    kept = {name: value for name, value in variables.items() if _KEPT.match(name) and not _SECRET.search(name)}
    return {name: _USERINFO.sub("", value) for name, value in kept.items()}


def without_secrets(command: Sequence[str]) -> list[str]:
    """The command with the values of options such as `--token` and of URLs' user parts taken out."""
    shown: list[str] = []
    hide_next = False
    for word in command:
        name, equals, _ = word.partition("=")
        if hide_next and not word.startswith("-"):
            shown.append(_HIDDEN)
        elif equals and _SECRET.search(name):
            shown.append(f"{name}={_HIDDEN}")
        else:
            shown.append(_USERINFO.sub("", word))
        hide_next = not equals and word.startswith("-") and _SECRET.search(word) is not None
    return shown


def host_text(group: Cgroup | None) -> str:
    """The machine as a transcript that the parser of host descriptions reads."""
    machine = os.uname()
    now = dt.datetime.now(dt.UTC)
    lines = [
        "$ uname -a",
        f"Linux {machine.nodename} {machine.release} {machine.version} {machine.machine} GNU/Linux",
        "$ date -u; cat /proc/uptime",
        f"{now:%a %b %e %H:%M:%S UTC %Y}",
        f"{time.clock_gettime(time.CLOCK_BOOTTIME):.2f} 1.00",
        "$ head -3 /proc/meminfo",
        *(
            f"{name}:{pairs(Path('/proc/meminfo')).get(name, 0):>16} kB"
            for name in ("MemTotal", "MemFree", "MemAvailable")
        ),
    ]
    limit = group.limiting().limit() if group else None
    if group is not None and limit is not None:
        file = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
        lines += [f"$ cat {file}", str(limit)]
    return "\n".join(lines) + "\n"


def start_json(command: Sequence[str], pid: int | None, group: Cgroup | None, version: str) -> str:
    """The start's configuration as JSON; limits in bytes, of every cgroup up to the root that has one."""
    limits = {str(one.path): one.limit() for one in group.lineage()} if group else {}
    known = {
        "postmortem": version,
        "command": without_secrets(command),
        "pid": pid,
        "started": dt.datetime.now(dt.UTC).isoformat(),
        "cgroup": str(group.path) if group else None,
        "cgroup_version": group.version if group else None,
        "limits": limits,
        "environment": environment(os.environ),
    }
    return json.dumps(known, indent=1) + "\n"
