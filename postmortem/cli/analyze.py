"""`postmortem analyze`: one run in, the answer on the terminal, a report beside it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postmortem.cli import options
from postmortem.cli.output import beside, check_writable, default_path, emit, write
from postmortem.errors import UsageError

if TYPE_CHECKING:
    from postmortem.api import Postmortem

__all__ = ["analyze", "present"]

_MEMORY_DEATHS = {"cgroup_limit", "cgroup_limit_probable", "host_oom", "userland_oom"}
_PLOTLY = ("inline", "cdn", "file")
_SPOKEN = ("json", "md", "text")
"""Formats that go to stdout when they are asked for alone."""
_STDOUT = "-"


def analyze(
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Files, or a directory that is one run; - is standard input."),
    ],
    *,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", "-f", metavar="FORMAT", help="html, json, md, text, perfetto; several with commas."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The report's file [default: NAME.postmortem.html]."),
    ] = None,
    limit: Annotated[
        str | None, typer.Option("--limit", metavar="SIZE", help="Memory limit where the evidence has none: 342GiB.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="SIZE", help="The daemon's budget where the evidence has none.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME|FILE", help="The daemon's profile, shipped or your own.")
    ] = None,
    tz: Annotated[
        str | None, typer.Option("--tz", metavar="±HH:MM", help="Zone of clocks that state none [default: UTC].")
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="Leave out what is earlier.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Leave out what is later.")] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Aliases for hosts, addresses, users, secrets, containers and paths.")
    ] = False,
    fail_on: Annotated[
        str | None, typer.Option("--fail-on", metavar="memory", help="Exit with 1 when memory ended the run.")
    ] = None,
    plotly_js: Annotated[
        str, typer.Option("--plotly-js", metavar="inline|cdn|file", help="Where the page takes its chart code from.")
    ] = "inline",
    open_page: Annotated[bool, typer.Option("--open", help="Open the HTML report in the browser.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is no report of ours.")] = False,
) -> int:
    """Analyse one run: how it ended, why, and what would have survived.

    Without --format the answer is printed and the HTML report written. A single json, md or text goes to stdout.
    """
    chosen = options.chosen_formats(formats or [])
    _check_choices(chosen, fail_on, plotly_js, to_stdout=str(out) == _STDOUT, open_page=open_page)
    tz = options.zone(tz)
    if out is not None and str(out) != _STDOUT:
        _check_targets(chosen or ["html"], out, force=force)
    moments = options.moment("--since", since, tz), options.moment("--until", until, tz)
    if moments[0] and moments[1] and moments[0] >= moments[1]:
        msg = f"--since {since} is not before --until {until}"
        raise UsageError(msg)

    limit_bytes, budget_bytes = options.size("--limit", limit), options.size("--budget", budget)
    from postmortem import api  # noqa: PLC0415 (polars and scipy load only when there is something to analyse)

    with _busy():
        found = api.analyze(
            paths,
            limit=limit_bytes,
            budget=budget_bytes,
            profile=options.profile(profile),
            tz=tz,
            since=moments[0],
            until=moments[1],
            redact=redact,
        )
    present(found, chosen, out, plotly_js=plotly_js, open_page=open_page, force=force)
    return 1 if fail_on and found.result.ending.how in _MEMORY_DEATHS else 0


def _check_choices(chosen: list[str], fail_on: str | None, plotly_js: str, *, to_stdout: bool, open_page: bool) -> None:
    if fail_on not in {None, "memory"}:
        msg = f"--fail-on: {fail_on!r} is not known; there is only `memory`"
        raise UsageError(msg)
    if plotly_js not in _PLOTLY:
        msg = f"--plotly-js: {plotly_js!r} is not one of {', '.join(_PLOTLY)}"
        raise UsageError(msg)
    if to_stdout and len(chosen) != 1:
        msg = "-o - needs one --format: only one report can go to standard output"
        raise UsageError(msg)
    if open_page and (to_stdout or (chosen and "html" not in chosen)):
        msg = "--open needs the HTML report in a file: add html to --format"
        raise UsageError(msg)


class _busy:  # noqa: N801 (used like a function)
    """A sign of life on stderr while the analysis runs, on terminals only."""

    def __enter__(self) -> None:
        self._shown = sys.stderr.isatty()
        if self._shown:
            sys.stderr.write("reading and analysing …")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _targets(chosen: list[str], out: Path) -> dict[str, Path]:
    """The file of each format: `out` for HTML or for the only one, the others beside it."""
    only = len(chosen) == 1
    return {kind: out if kind == "html" or only else beside(out, kind) for kind in chosen}


def _check_targets(chosen: list[str], out: Path, *, force: bool) -> dict[str, Path]:
    targets = _targets(chosen, out)
    for kind, path in targets.items():
        check_writable(path, kind, force=force)
    return targets


def present(
    found: "Postmortem", chosen: list[str], out: Path | None, *, plotly_js: str, open_page: bool, force: bool
) -> None:
    """Print and write what was asked for; nothing chosen means the terminal report and the HTML file."""
    if len(chosen) == 1 and (str(out) == _STDOUT or (out is None and chosen[0] in _SPOKEN)):
        emit(_rendered(found, chosen[0], plotly_js))
        return
    kinds = chosen or ["html"]
    page = out or default_path(found.result.name)
    if out is None and kinds == ["perfetto"]:
        page = beside(page, "perfetto")
    targets = _check_targets(kinds, page, force=force)
    for kind, path in targets.items():
        write(path, _rendered(found, kind, plotly_js))
    if "html" in targets and plotly_js == "file":
        _write_plotly(targets["html"].parent)
    if not chosen:
        _print_report(found, [str(path) for path in targets.values()])
    else:
        for path in targets.values():
            typer.echo(f"wrote {path}", err=True)
    if open_page:
        typer.launch(targets["html"].resolve().as_uri())


def _rendered(found: "Postmortem", kind: str, plotly_js: str) -> str | bytes:
    result, timeline = found.result, found.timeline
    if kind == "json":
        from postmortem_reports import json  # noqa: PLC0415

        return json.render(result)
    if kind == "md":
        from postmortem_reports import markdown  # noqa: PLC0415

        return markdown.render(result)
    if kind == "text":
        from postmortem_reports import terminal  # noqa: PLC0415

        return terminal.render_text(result, timeline)
    if kind == "perfetto":
        from postmortem_reports import perfetto  # noqa: PLC0415

        return perfetto.render(result, timeline)
    from postmortem_reports import html, markdown  # noqa: PLC0415

    return html.render(result, timeline, plotly_js=plotly_js, markdown=markdown.render(result))  # type: ignore[arg-type]  # checked by _check_choices


def _write_plotly(folder: Path) -> None:
    from postmortem_reports.html import PLOTLY_FILE, plotly_source  # noqa: PLC0415

    if not (folder / PLOTLY_FILE).exists():
        write(folder / PLOTLY_FILE, plotly_source())


def _print_report(found: "Postmortem", written: list[str]) -> None:
    from rich.console import Console  # noqa: PLC0415

    from postmortem_reports import terminal  # noqa: PLC0415

    console = Console()
    with console.capture() as captured:  # rich would turn a closed pipe into exit code 1
        terminal.render(found.result, found.timeline, console, written=written)
    emit(captured.get())
