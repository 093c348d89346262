"""`postmortem record`: run or watch a process, and leave a run directory that `analyze` reads."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer

from postmortem.errors import UsageError

__all__ = ["record"]


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- CMD…", help="The command to run, behind two dashes.")
    ] = None,
    *,
    pid: Annotated[int | None, typer.Option("--pid", metavar="PID", help="Watch a running process instead.")] = None,
    cgroup: Annotated[
        Path | None, typer.Option("--cgroup", metavar="PATH", help="Watch a cgroup (its directory) until it is gone.")
    ] = None,
    container: Annotated[
        str | None, typer.Option("--container", metavar="NAME", help="Watch a docker, podman or nerdctl container.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="The run directory [default: postmortem-run-TIME]."),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="Time between samples while nothing moves.")
    ] = 1.0,
    status: Annotated[
        str | None, typer.Option("--status", metavar="URL", help="The daemon's status endpoint (http), polled.")
    ] = None,
    sync: Annotated[
        Path | None, typer.Option("--sync", metavar="DIR", help="Keep a copy there, on another mount, as it grows.")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Record only; do not analyse at the end.")] = False,
) -> int:
    """Run or watch a process and keep the evidence of its memory, whatever way it ends.

    Samples are taken every second, and every 20 ms as the limit comes near. Each is written at once, so a kill -9 of
    the recorder or of the whole container loses at most the last one.

    The run directory holds run.log (stdout and stderr of the command), memory.csv (the cgroup whose limit counts),
    processes.csv, host.csv, gpu.csv where nvidia-smi is there, dmesg.txt where the kernel's log may be read,
    host.txt and exit.txt. Environment variables and options that may hold secrets are not stored.

    The command's output and signals pass through, and its exit code is ours (128 + N for signal N). Watching needs no
    root for one's own processes. Example: postmortem record -o run-7 -- cuzk-daemon --config cuzk.toml
    """
    given = [bool(command), pid is not None, cgroup is not None, container is not None]
    if sum(given) != 1:
        msg = "give one of: a command behind --, --pid PID, --cgroup PATH, --container NAME"
        raise UsageError(msg)
    if not 0.02 <= interval <= 3600:
        msg = f"--interval {interval}: between 0.02 and 3600 seconds"
        raise UsageError(msg)
    from postmortem.recording import session  # noqa: PLC0415 (the other commands do not need it)
    from postmortem.units import MIB  # noqa: PLC0415

    if container is not None:
        from postmortem.recording.containers import cgroup_of  # noqa: PLC0415

        cgroup = cgroup_of(container)
    folder = session.new_folder(out)
    with contextlib.ExitStack() as beside:
        if sync is not None:
            from postmortem.recording.sync import Copy  # noqa: PLC0415

            beside.enter_context(Copy(folder, sync))
        if status is not None:
            from postmortem.recording.status import StatusPoll  # noqa: PLC0415

            beside.enter_context(StatusPoll(status, folder, interval))
        if command:
            done = session.record(command, folder, interval_s=interval)
        else:
            done = session.watch(folder, pid=pid, path=cgroup, interval_s=interval)
    typer.echo(f"postmortem: recorded in {folder}; the recorder used {done.peak_rss / MIB:.0f} MiB", err=True)
    if not no_report:
        from postmortem.recording.report import write_report  # noqa: PLC0415

        write_report(folder)
    return done.exit_code
