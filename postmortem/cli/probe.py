"""`postmortem probe`: how much memory this container can really give."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from postmortem.cli.output import emit
from postmortem.errors import UsageError

__all__ = ["probe"]

_KINDS = ("anon", "shared", "pinned")


def probe(
    *,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", metavar="anon|shared|pinned", help="What to allocate; can be given again [default: anon]."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read the limits only; allocate nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, sizes in bytes.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--evidence", metavar="FILE", help="Append the result as a line that `analyze` reads."),
    ] = None,
) -> int:
    """Measure how much memory this container can really give, and recommend a budget.

    Reads the limits of the cgroup (v1 and v2), of all its ancestors and of the host. Then a child process allocates
    for real, chunk by chunk, touching every page, and stops about 1 % short of the limit. The child is marked as the
    kernel's first victim and its memory is gone when it ends.

    The budget is the smaller of theory and measurement less a reserve of 5 % of the limit. --dry-run is for places
    where one may not allocate. Example: postmortem probe --kind shared --json
    """
    chosen = list(dict.fromkeys(kinds or ["anon"]))
    for kind in chosen:
        if kind not in _KINDS:
            msg = f"--kind: {kind!r} is not one of {', '.join(_KINDS)}"
            raise UsageError(msg)
    if "pinned" in chosen and not dry_run:
        raise UsageError(_no_pinned())
    from postmortem.probing import report  # noqa: PLC0415

    found = report.probe(chosen, dry_run=dry_run)  # type: ignore[arg-type]  # checked above
    if out is not None:
        _append(out, found.evidence())
    emit(json.dumps(found.to_dict(), indent=1) + "\n" if as_json else found.text())
    return 0


def _no_pinned() -> str:
    import ctypes.util  # noqa: PLC0415

    found: Any = ctypes.util.find_library("cudart")
    why = (
        "allocating through cudaHostAlloc is not built in yet"
        if found
        else "no CUDA runtime library (libcudart) was found here"
    )
    return f"--kind pinned: {why}; on native Linux pinned memory is charged as shared memory: use --kind shared"


def _append(path: Path, line: str) -> None:
    try:
        with path.open("a") as file:
            file.write(line + "\n")
    except OSError as error:
        msg = f"--evidence {path}: {error.strerror}"
        raise UsageError(msg) from error
