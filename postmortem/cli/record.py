"""`postmortem record`: run or watch a process, and leave a run directory that `analyze` reads."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postmortem.cli import options
from postmortem.errors import UsageError
from postmortem.units import MIB

if TYPE_CHECKING:
    from postmortem.recording.session import Recording

__all__ = ["record"]


def record(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- CMD…", help="The command to run, behind two dashes.")
    ] = None,
    *,
    pid: Annotated[
        int | None, typer.Option("--pid", metavar="PID", help="Watch a running process, and its descendants, instead.")
    ] = None,
    cgroup: Annotated[
        Path | None, typer.Option("--cgroup", metavar="PATH", help="Watch a cgroup (its directory) until it is gone.")
    ] = None,
    container: Annotated[
        str | None,
        typer.Option("--container", metavar="NAME", help="Watch a container of docker, podman, nerdctl or crictl."),
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
        str | None,
        typer.Option(
            "--sync", metavar="DIR|URL", help="Keep a copy there as it grows: on another mount, or at s3://…, gs://…"
        ),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Record only; do not analyse at the end.")] = False,
) -> int:
    """Run or watch a process and keep the evidence of its memory, whatever way it ends.

    The command runs as it would alone: its output and the signals pass through, and its exit code is ours (128 + N
    for signal N). Watching ends with the process or the cgroup, or with Ctrl-C or SIGTERM, and gives 0. At the end the
    run is analysed: the report goes to stderr, its page into the run directory.

    Pace: a sample a second; five a second while tasks wait for memory; one every 20 ms as the limit comes near. Each
    is written at once: a kill -9 of the recorder or of the whole container loses at most the last one. Where the
    container's files vanish with it, --sync keeps a copy elsewhere; it never delays the command.

    \b
    The run directory:
      run.log, arrivals.csv       the command's stdout and stderr; when each
                                  line came
      memory.csv, limits.csv      the cgroup whose limit counts; the limits
                                  of all its ancestors
      processes.csv, shares.csv   memory of each process by kind; its share
                                  of what it shares (PSS)
      host.csv, dmesg.txt         the host's memory and pinned pages; the
                                  kernel's log, where it may be read
      gpu.csv, status.jsonl       nvidia-smi, the status endpoint, and the
      container.json              container's end, where there are any
      start.json, host.txt        command, limits, budgets, versions; the
                                  machine
      exit.txt                    the end, exactly

    Nothing secret is kept of the command line and the environment. No root is needed for one's own processes; without
    root the kernel's log is usually not readable.

    \b
    Examples:
      postmortem record -o run-7 -- cuzk-daemon --config cuzk.toml
      postmortem record --pid 4711 --status http://127.0.0.1:9821/status
      postmortem record --container cuzk-0 --sync s3://incidents/run-7
    """  # noqa: D301 (click marks blocks that keep their lines by a real backspace)
    _check(command, pid, cgroup, container, interval)
    from postmortem.recording import containers, session  # noqa: PLC0415 (the other commands do not need it)

    if container is not None:
        cgroup = containers.cgroup_of(container)
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
            typer.echo(f"postmortem: watching, into {folder}; Ctrl-C ends it", err=True)
            done = session.watch(folder, pid=pid, path=cgroup, interval_s=interval)
        if container is not None and (state := containers.end_state(container)):
            (folder / "container.json").write_text(state)
    typer.echo(_closing(done), err=True)
    if not no_report:
        from postmortem.recording.report import write_report  # noqa: PLC0415

        write_report(folder)
    return done.exit_code


def _check(
    command: list[str] | None, pid: int | None, cgroup: Path | None, container: str | None, interval: float
) -> None:
    if sum([bool(command), pid is not None, cgroup is not None, container is not None]) != 1:
        msg = "give one of: a command behind --, --pid PID, --cgroup PATH, --container NAME"
        raise UsageError(msg)
    options.check_interval(interval)


def _closing(done: "Recording") -> str:
    charged = " (charged to this cgroup)" if done.inside else ""
    used = f"{done.peak_rss / MIB:.0f} MiB{charged}, {done.core_share:.1%} of a core"
    return f"postmortem: recorded in {done.folder}\npostmortem: the recorder used {used}"
