"""`postmortem probe`: how much memory this container can really give."""

import json
from pathlib import Path
from typing import Annotated

import typer

from postmortem.cli.output import emit
from postmortem.errors import UsageError

__all__ = ["probe"]

_KINDS = ("anon", "shared", "pinned")


def probe(
    *,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="anon, shared or pinned; can be given again [default: anon]."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read the limits only; allocate nothing.")] = False,
    to_the_kill: Annotated[
        bool, typer.Option("--to-the-kill", help="Allocate until the kernel kills the child, and only it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, sizes in bytes.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="FILE", help="Append the result as a line that `analyze` reads."),
    ] = None,
) -> int:
    """Measure how much memory this container can really give, and recommend a budget.

    Theory: the limits of the cgroup (v1 and v2), of all its ancestors and of the host, and what is used of each.
    Measurement: a child process allocates chunk by chunk, touching every page, until 1 % of the limit is left. It
    stops by the counters, so nothing is killed; should something go wrong, it is the kernel's first victim.

    The budget is the smaller of theory and measurement, less a reserve of 5 % of the limit. Run it before the daemon:
    what is in use already is not there to be allocated.

    \b
    Kinds of memory:
      anon     what malloc gives
      shared   shared mappings, charged as cache and shmem
      pinned   page-locked through CUDA's cudaHostAlloc; needs libcudart and
               a device. On native Linux it is charged as shared memory, so
               `shared` tells nearly the same without either

    With --to-the-kill the child allocates until it is killed: in a child cgroup with a limit of its own where one can
    be made, else in this one. It says on stderr which, before it begins, and refuses where a kill could take others
    with it.

    The object of --json, kept in a file, is evidence that `analyze` reads, as the line of --evidence is. No root is
    needed, except where --to-the-kill makes a cgroup.

    \b
    Examples:
      postmortem probe
      postmortem probe --kind shared --json | jq .budget
      postmortem probe --dry-run --json > run-7/probe.json
    """  # noqa: D301 (click marks blocks that keep their lines by a real backspace)
    chosen = list(dict.fromkeys(kinds or ["anon"]))
    for kind in chosen:
        if kind not in _KINDS:
            msg = f"--kind: {kind!r} is not one of {', '.join(_KINDS)}"
            raise UsageError(msg)
    if dry_run and to_the_kill:
        raise UsageError("--dry-run allocates nothing, --to-the-kill all there is: give one of them")
    from postmortem.probing import report  # noqa: PLC0415

    found = report.probe(chosen, dry_run=dry_run, to_the_kill=to_the_kill)  # type: ignore[arg-type]  # checked above
    if out is not None:
        _append(out, found.evidence())
    emit(json.dumps(found.to_dict(), indent=1) + "\n" if as_json else found.text())
    return 0


def _append(path: Path, line: str) -> None:
    try:
        with path.open("a") as file:
            file.write(line + "\n")
    except OSError as error:
        msg = f"--evidence {path}: {error.strerror}"
        raise UsageError(msg) from error
