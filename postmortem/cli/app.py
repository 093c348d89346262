"""The command `postmortem`: its commands, and the one place where errors become a line and an exit code.

Exit codes: 0 done, 1 done and `--fail-on` met, 2 wrong use or unreadable input.
"""

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from postmortem.cli import analyze, batch, compare, demo, formats, guard, probe, record, schema
from postmortem.cli.output import OutputClosedError
from postmortem.errors import PostmortemError

__all__ = ["app", "main", "run"]

_FAULT = 2
_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_PIPE_CLOSED = 141  # 128 + SIGPIPE

app = typer.Typer(
    name="postmortem",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        from postmortem import __version__  # noqa: PLC0415

        typer.echo(f"postmortem {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def options(
    context: typer.Context,
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Take a process that died of memory apart: how it ended, why, and the arithmetic that proves it."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(_FAULT)


app.command("analyze")(analyze.analyze)
app.command("batch")(batch.batch)
app.command("compare")(compare.compare)
app.command("demo")(demo.demo)
app.command("formats")(formats.formats)
app.command("guard")(guard.guard)
app.command("probe")(probe.probe)
app.command("record")(record.record)
app.command("schema")(schema.schema)


def main() -> None:
    """Entry point of the command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments and give its exit code."""
    debug = "--debug" in arguments  # also behind a command's name, where people add it when they need it
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a replaced stream
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a report never fails on a poor encoding
    try:
        code = app([word for word in arguments if word != "--debug"], standalone_mode=False, prog_name="postmortem")
        sys.stdout.flush()
    except (OutputClosedError, BrokenPipeError):
        _forget_stdout()
        return _PIPE_CLOSED
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except Exception as error:
        if debug:
            raise
        return _report(error)
    return code if isinstance(code, int) else 0


def _forget_stdout() -> None:
    """Python flushes stdout at its end once more: let that go nowhere, without a message."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(error: Exception) -> int:
    """One line on stderr; the exit code."""
    from postmortem_reports.safe import visible  # noqa: PLC0415

    if isinstance(error, PostmortemError):
        text, code = str(error), error.exit_code
    elif wrong_use := getattr(error, "format_message", None):  # typer's and, before 0.20, click's own errors
        text, code = f"{wrong_use().rstrip('.')} (see postmortem --help)", _FAULT
    else:
        text = f"internal error: {type(error).__name__}: {error} (run again with --debug, and please report it)"
        code = _FAULT
    typer.echo(f"postmortem: {visible(text, 1_000)}", err=True)
    return code
