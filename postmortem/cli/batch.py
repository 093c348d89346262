"""`postmortem batch`: archives of runs in, tables and the fleet's page out."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postmortem.cli import options
from postmortem.cli.output import emit
from postmortem.errors import UsageError
from postmortem.units import format_duration

if TYPE_CHECKING:
    from postmortem.batch.batch import Tally
    from postmortem.batch.crew import Crew
    from postmortem.batch.work import Settings

__all__ = ["batch"]

_REPORTS = ("none", "failed", "all")
_UNREADABLE = 2
_EVERY_S = 0.2


def batch(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE", help="Directories, logs, globs, tar and zip archives, URLs (s3://…, https://…)."
        ),
    ],
    *,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Where tables, index.html and reports go; a URL too.")
    ] = "postmortem-batch",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be a run, and why; analyse nothing.")
    ] = False,
    run_glob: Annotated[
        list[str] | None, typer.Option("--run-glob", metavar="GLOB", help="Folders or files that are one run each.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", "-j", min=1, help="Processes [default: all cores].")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="ADDRESS", help="dask: tcp://scheduler:8786, or local:N.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="For one run.")] = 900.0,
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help="For one run [default: its share of the machine].")
    ] = None,
    reports: Annotated[
        str, typer.Option("--reports", metavar="none|failed|all", help="HTML reports: of deaths by memory, of all.")
    ] = "failed",
    limit: Annotated[
        str | None, typer.Option("--limit", metavar="SIZE", help="Memory limit where the evidence has none.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="SIZE", help="The daemon's budget where the evidence has none.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", metavar="NAME|FILE", help="The daemon's profile.")] = None,
    tz: Annotated[str | None, typer.Option("--tz", metavar="±HH:MM", help="Zone of clocks that state none.")] = None,
    redact: Annotated[bool, typer.Option("--redact", help="Aliases for hosts, users, secrets and paths.")] = False,
    formats: Annotated[
        str | None, typer.Option("--format", "-f", metavar="json", help="Print the fleet's figures as JSON.")
    ] = None,
) -> int:
    """Analyse archives of runs, and show what they have in common.

    Called again with the same --out it analyses only what is new or changed.
    """
    if reports not in _REPORTS:
        msg = f"--reports: {reports!r} is not one of {', '.join(_REPORTS)}"
        raise UsageError(msg)
    if formats not in {None, "json"}:
        msg = f"--format: {formats!r} is not known; batch prints only json (tables and index.html are always written)"
        raise UsageError(msg)
    from postmortem.archives.find import explain, find  # noqa: PLC0415 (polars loads only when there is work)
    from postmortem.archives.places import is_url  # noqa: PLC0415

    out = out.removeprefix("file://")
    out = out if is_url(out) else str(Path(out).resolve())
    found = find(sources, globs=run_glob or [], skip=out)
    if dry_run:
        emit("\n".join(map(_visible, explain(found))) + "\n")
        return 0
    from postmortem.batch.work import Settings  # noqa: PLC0415

    settings = Settings(
        out=out,
        limit=options.size("--limit", limit),
        budget=options.size("--budget", budget),
        profile=str(options.profile(profile)) if profile else None,
        tz=options.zone(tz),
        redact=redact,
        reports=reports,  # type: ignore[arg-type]  # checked above
        timeout_s=timeout,
        memory_bytes=options.size("--memory", memory),
    )
    return _run(found, settings, workers, cluster, as_json=formats == "json")


def _run(found: object, settings: Settings, workers: int | None, cluster: str | None, *, as_json: bool) -> int:
    from postmortem.archives.find import Found  # noqa: PLC0415
    from postmortem.batch.batch import run_batch  # noqa: PLC0415

    assert isinstance(found, Found)
    crew = _crew(workers, cluster)
    settings = _with_share(settings, crew)
    shown = _Shown()
    try:
        tally = run_batch(found, settings, crew, shown)
    except KeyboardInterrupt:
        shown.end()
        _write_page(settings)
        typer.echo(f"stopped: {shown.words()}; the same command goes on from here", err=True)
        raise
    shown.end()
    fleet = _write_page(settings)
    typer.echo(f"{shown.words()}; {settings.out}/index.html", err=True)
    if as_json:
        emit(fleet)
    return _UNREADABLE if tally.failed else 0


def _crew(workers: int | None, cluster: str | None) -> Crew:
    if cluster is not None:
        from postmortem.batch.cluster import Cluster  # noqa: PLC0415

        return Cluster(cluster)
    from postmortem.batch.crew import Processes  # noqa: PLC0415

    return Processes(workers)


def _with_share(settings: Settings, crew: Crew) -> Settings:
    """A run may take its worker's share of four fifths of the machine, where nothing else is said."""
    import dataclasses  # noqa: PLC0415
    import os  # noqa: PLC0415

    if settings.memory_bytes is not None:
        return settings
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    share = None if crew.retries_itself else machine * 4 // 5 // crew.workers
    return dataclasses.replace(settings, memory_bytes=share)


def _write_page(settings: Settings) -> bytes:
    """index.html, and the fleet's figures as JSON."""
    import io  # noqa: PLC0415

    import msgspec  # noqa: PLC0415

    from postmortem import fleet  # noqa: PLC0415
    from postmortem.batch.store import RUNS_FILE  # noqa: PLC0415
    from postmortem.batch.target import target_of  # noqa: PLC0415
    from postmortem_reports import fleet as page  # noqa: PLC0415

    target = target_of(settings.out)
    runs = target.read(RUNS_FILE)
    if runs is None:
        return b"{}\n"
    figures, table = fleet.figures(io.BytesIO(runs))
    target.write("index.html", page.render(figures, table).encode(errors="replace"))
    return msgspec.json.encode(figures) + b"\n"


class _Shown:
    """Progress on stderr, on terminals only."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._last = 0.0
        self._tty = sys.stderr.isatty()
        self._tally: Tally | None = None

    def __call__(self, tally: Tally) -> None:
        """Show how far it is, with rate and time left."""
        self._tally = tally
        now = time.monotonic()
        if not self._tty or now - self._last < _EVERY_S:
            return
        self._last = now
        rate = tally.finished / max(now - self._begun, 1e-3)
        left = format_duration((tally.total - tally.finished) / rate) if rate else "?"
        sys.stderr.write(
            f"\r\x1b[K{tally.finished:,} of {tally.total:,} runs, {rate:.1f}/s, {tally.failed:,} without a result, {left} left"
        )
        sys.stderr.flush()

    def end(self) -> None:
        """Clear the line."""
        if self._tty:
            sys.stderr.write("\r\x1b[K")

    def words(self) -> str:
        """`41 analysed, 3 unchanged, 2 without a result, in 12.3 s`."""
        tally, took = self._tally, format_duration(time.monotonic() - self._begun)
        if tally is None:
            return f"0 runs in {took}"
        return (
            f"{tally.analysed:,} analysed, {tally.unchanged:,} unchanged, {tally.failed:,} without a result, in {took}"
        )


def _visible(line: str) -> str:
    from postmortem_reports.safe import visible  # noqa: PLC0415

    return visible(line, 1_000)
