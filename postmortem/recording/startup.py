"""What is known at the start of a run: command, machine, limits, budgets, versions. Nothing secret is written (`scrub`)."""

import dataclasses
import datetime as dt
import json
import os
import re
import resource
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from postmortem.recording import budgets, scrub
from postmortem.recording.cgroups import Cgroup
from postmortem.recording.files import pairs, text

__all__ = ["Start", "host_text", "of_process", "start_json", "uname_text"]

_PROC = Path("/proc")
_DRIVER = Path("/proc/driver/nvidia/version")


@dataclasses.dataclass(frozen=True)
class Start:
    """What is run or watched, as it is: secrets are taken out on writing."""

    command: Sequence[str]
    pid: int | None
    group: Cgroup | None
    environment: Mapping[str, str]
    folder: Path | None = None
    """Its working directory, where that is not ours."""
    kernel_log: str = "readable"
    """Or why not: a log without a line is something else than none."""


def of_process(pid: int | None, group: Cgroup | None, kernel_log: str = "readable") -> Start:
    """A process that runs already; of another user's, command and cgroup are known, the environment is not."""
    if pid is None:
        return Start([], None, group, {}, kernel_log=kernel_log)
    words = text(_PROC / str(pid) / "cmdline").rstrip("\0").split("\0")
    variables = (pair.partition("=") for pair in text(_PROC / str(pid) / "environ").split("\0"))
    environment = {name: value for name, _, value in variables if name}
    return Start(words, pid, group, environment, _PROC / str(pid) / "cwd", kernel_log)


def uname_text() -> str:
    """`$ uname -a` and its answer."""
    machine = os.uname()
    return f"$ uname -a\nLinux {machine.nodename} {machine.release} {machine.version} {machine.machine} GNU/Linux\n"


def host_text(group: Cgroup | None) -> str:
    """The machine as a transcript that the parser of host descriptions reads."""
    now = dt.datetime.now(dt.UTC)
    meminfo = pairs(_PROC / "meminfo")
    lines = [
        "$ date -u; cat /proc/uptime",
        f"{now:%a %b %e %H:%M:%S UTC %Y}",
        f"{time.clock_gettime(time.CLOCK_BOOTTIME):.2f} 1.00",
        "$ head -3 /proc/meminfo",
        *(f"{name}:{meminfo.get(name, 0):>16} kB" for name in ("MemTotal", "MemFree", "MemAvailable")),
    ]
    limit = group.limiting().binding_limit() if group else None
    if group is not None and limit is not None:
        file = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
        lines += [f"$ cat {file}", str(limit)]
    return uname_text() + "\n".join(lines) + "\n"


def start_json(start: Start, version: str) -> str:
    """The start's configuration as one line of JSON. Limits and budgets in bytes, limits of every cgroup up to the root."""
    group = start.group
    lock_limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    known = {
        "postmortem": version,
        "started": dt.datetime.now(dt.UTC).isoformat(),
        "command": scrub.command(start.command),
        "pid": start.pid,
        "cgroup": str(group.path) if group else None,
        "cgroup_version": group.version if group else None,
        "limits": {str(one.path): one.limit() for one in group.lineage()} if group else {},
        "binding_limit": group.limiting().binding_limit() if group else None,
        "budgets": [dataclasses.asdict(one) for one in budgets.stated(start.command, start.environment, start.folder)],
        "kernel_log": start.kernel_log,
        "memlock_limit": None if lock_limit == resource.RLIM_INFINITY else lock_limit,
        "versions": {"kernel": os.uname().release, "nvidia_driver": _driver()},
        "environment": scrub.environment(start.environment),
    }
    return json.dumps(known) + "\n"


def _driver() -> str | None:
    found = re.search(r"Module\D*([0-9]+\.[0-9.]+)", text(_DRIVER))
    return found[1] if found else None
