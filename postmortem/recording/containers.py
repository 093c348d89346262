"""From a container's name to its cgroup: asks the runtime's own client for the container's first process."""

import shutil
import subprocess
from pathlib import Path

from postmortem.errors import NotFoundError
from postmortem.recording import cgroups

__all__ = ["cgroup_of"]

_CLIENTS = ("docker", "podman", "nerdctl")
_PATIENCE_S = 10


def cgroup_of(name: str) -> Path:
    """The container's cgroup directory. Raises NotFoundError where no runtime here knows the container."""
    asked = [client for client in _CLIENTS if shutil.which(client)]
    for client in asked:
        pid = _first_process(client, name)
        found = cgroups.of_process(pid) if pid else None
        if found is not None:
            return found.path
    why = f"{', '.join(asked)} know no such running container" if asked else f"none of {', '.join(_CLIENTS)} is here"
    msg = f"--container {name}: {why}; give its cgroup's directory with --cgroup"
    raise NotFoundError(msg)


def _first_process(client: str, name: str) -> int:
    command = [client, "inspect", "--format", "{{.State.Pid}}", "--", name]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_PATIENCE_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return 0
    text = done.stdout.strip()
    return int(text) if text.isdigit() else 0
