"""`postmortem compare A B`: what differs between two runs, and whether it means anything."""

from pathlib import Path
from typing import Annotated

import typer

from postmortem.cli.output import check_writable, emit, write
from postmortem.errors import UsageError

__all__ = ["compare"]

_FORMATS = ("text", "md", "json", "html")


def compare(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="A run, one attempt of it (run.log#2), or a result that --format json wrote."),
    ],
    b: Annotated[str, typer.Argument(metavar="B", help="The run to compare with it.")],
    *,
    kind: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text, md, json or html.")] = "text",
    out: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is no report of ours.")] = False,
) -> int:
    """Compare two runs: did the fix work?

    Figures are said to differ when their intervals do not touch.
    """
    if kind not in _FORMATS:
        msg = f"--format: {kind!r} is not one of {', '.join(_FORMATS)}"
        raise UsageError(msg)
    target = out if out is not None or kind != "html" else Path("comparison.postmortem.html")
    if target is not None:
        check_writable(target, kind, force=force)
    answer = _rendered(a, b, kind)
    if target is None:
        emit(answer)
    else:
        write(target, answer)
        typer.echo(f"wrote {target}", err=True)
    return 0


def _rendered(a: str, b: str, kind: str) -> str | bytes:
    import msgspec  # noqa: PLC0415 (polars loads only when there is something to compare)

    from postmortem import sides  # noqa: PLC0415
    from postmortem.compare import compare as compared  # noqa: PLC0415
    from postmortem_reports import comparison  # noqa: PLC0415

    one, other = sides.load(a), sides.load(b)
    made = compared(one.result, other.result)
    if kind == "json":
        return msgspec.json.encode(made) + b"\n"
    if kind == "md":
        return comparison.markdown(made)
    if kind == "html":
        return comparison.html(made, one, other)
    from rich.console import Console  # noqa: PLC0415

    console = Console()
    with console.capture() as captured:
        comparison.terminal(made, console)
    return captured.get()
