"""From a container's name to its cgroup, and to how it ended: both by asking the runtime's own client."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, cast

from postmortem.errors import NotFoundError
from postmortem.recording import cgroups

__all__ = ["cgroup_of", "end_state"]

_CLIENTS = ("docker", "podman", "nerdctl")
_KUBERNETES = "crictl"
_PATIENCE_S = 10
# Of all that `inspect` tells, environment and mounts above all, only what the end is about is kept.
_KEPT = ("Status", "OOMKilled", "ExitCode", "StartedAt", "FinishedAt")


def cgroup_of(name: str, *, proc: Path = Path("/proc")) -> Path:
    """The container's cgroup directory. Raises NotFoundError where no runtime here knows the container."""
    asked = [client for client in (*_CLIENTS, _KUBERNETES) if shutil.which(client)]
    for client in asked:
        pid = _first_process(client, name)
        found = cgroups.of_process(pid, proc=proc) if pid else None
        if found is not None:
            return found.path
    clients = ", ".join((*_CLIENTS, _KUBERNETES))
    why = f"{', '.join(asked)} know no such running container" if asked else f"none of {clients} is here"
    msg = f"--container {name}: {why}; give its cgroup's directory with --cgroup"
    raise NotFoundError(msg)


def end_state(name: str) -> str:
    """How the container ended, as the runtime's `State` in JSON; empty where nobody knows it any more (`--rm`)."""
    for client in _CLIENTS:
        state = _json(_ask(client, "inspect", "--format", "{{json .State}}", "--", name))
        kept = {key: state[key] for key in _KEPT if key in state}
        if "ExitCode" in kept:
            return json.dumps({"State": kept}) + "\n"
    return ""


def _first_process(client: str, name: str) -> int:
    if client != _KUBERNETES:
        text = _ask(client, "inspect", "--format", "{{.State.Pid}}", "--", name).strip()
        return int(text) if text.isdigit() else 0
    ids = _ask(client, "ps", "--quiet", "--state", "Running", "--name", f"^{name}$").split() or [name]
    info = _json(_ask(client, "inspect", "--output", "json", ids[0])).get("info")
    pid = cast("dict[str, Any]", info).get("pid") if isinstance(info, dict) else None
    return pid if isinstance(pid, int) else 0


def _ask(client: str, *arguments: str) -> str:
    """What the client prints; empty where it is not here, fails or hangs."""
    tool = shutil.which(client)
    if tool is None:
        return ""
    try:
        done = subprocess.run([tool, *arguments], capture_output=True, check=False, timeout=_PATIENCE_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
