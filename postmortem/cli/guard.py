"""`postmortem guard`: run a command under a budget, and again under a smaller one when memory killed it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from postmortem.cli import options
from postmortem.cli.output import write
from postmortem.errors import PostmortemError, UsageError

if TYPE_CHECKING:
    from postmortem.guarding.budget import BudgetPlace
    from postmortem.guarding.outcome import Guarded

__all__ = ["guard"]

_LEAST_STEP_PERCENT = 2


def guard(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD…", help="The command, behind two dashes.")],
    *,
    budget: Annotated[
        str, typer.Option("--budget", metavar="SIZE|probe", help="The first attempt's budget; `probe` measures it.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ARG", help="Argument to append: '--budget={budget}'; can be given again."),
    ] = None,
    variables: Annotated[
        list[str] | None,
        typer.Option("--set-env", metavar="NAME=TEXT", help="Variable to set: BUDGET={budget_gib}; likewise."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--set-file", metavar="FILE:KEY[=TEXT]", help="Value in a TOML, YAML, JSON or INI file."),
    ] = None,
    retries: Annotated[int, typer.Option("--retries", metavar="N", min=0, help="Further attempts.")] = 3,
    step: Annotated[
        str | None, typer.Option("--step", metavar="PERCENT", help="Fixed step; 10% is the classic ladder.")
    ] = None,
    max_step: Annotated[
        str, typer.Option("--max-step", metavar="PERCENT", help="Largest step at once; at least 2%.")
    ] = "25%",
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME|FILE", help="The daemon's profile, shipped or your own.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Where all goes [default: postmortem-run-TIME]."),
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="Time between samples while nothing moves.")
    ] = 1.0,
) -> int:
    """Run a command under a memory budget; when it dies of memory, and only then, try again with less.

    Each attempt is recorded and analysed. The next budget is the safe budget of that post-mortem, at least 2 % and at
    most --max-step lower; where it knows none, 10 %. A death counts as one of memory when the command was killed by
    SIGKILL and the evidence says why. A panic, an exit code of its own, any other signal, and a stop by a signal to
    us are never retried.

    Output and signals pass through, and the exit code is the last attempt's own (128 + N for signal N).

    \b
    Telling the command its budget, in one or more of these ways:
      '--budget={budget}'     in the command itself, or appended by --set
      NAME={budget_gib}       in its environment, by --set-env
      FILE:KEY[=TEXT]         in a file, by --set-file: KEY is a name, or its
                              whole path (memory.total_budget); all else in
                              the file stays as it is

    {budget} stands for bytes, {budget_mib} and {budget_gib} for whole MiB and GiB. The file keeps the budget of a last
    attempt that did not die of memory; where all did, it is put back as it was.

    --budget probe measures first (shared memory, see `postmortem probe`) and takes the smaller of theory and
    measurement, less the reserve.

    \b
    The directory:
      attempt-N/                   the recording of each attempt
      attempt-N.postmortem.html    its post-mortem; .json beside it
      guard.postmortem.html        the report over all attempts; .json
                                   beside it; the table goes to stderr too

    No root is needed.

    \b
    Examples:
      postmortem guard --budget 331GiB --set '--budget={budget}' \\
          -- cuzk-daemon --config cuzk.toml
      postmortem guard --budget probe -o /evidence/run-7 \\
          --set-file 'cuzk.toml:total_budget={budget_gib}GiB' \\
          -- cuzk-daemon --config cuzk.toml
    """  # noqa: D301 (click marks blocks that keep their lines by a real backspace)
    place = _place(arguments or [], variables or [], file)
    options.check_interval(interval)
    fixed, most = _share("--step", step) if step else None, _share("--max-step", max_step)
    if most < _LEAST_STEP_PERCENT / 100:
        msg = f"--max-step {max_step}: at least {_LEAST_STEP_PERCENT}%, which is the least step"
        raise UsageError(msg)
    size = None if budget == "probe" else options.size("--budget", budget)
    if isinstance(wanted := options.profile(profile), Path) and not wanted.is_file():
        msg = f"--profile {profile}: no such file"
        raise UsageError(msg)
    place.unit(command)
    place.check()
    from postmortem.guarding import loop, report  # noqa: PLC0415
    from postmortem.guarding.attempt import Plan  # noqa: PLC0415
    from postmortem.recording.say import say  # noqa: PLC0415
    from postmortem.recording.session import new_folder  # noqa: PLC0415

    folder = new_folder(out)
    first, evidence = (size, None) if size is not None else _probed()
    plan = Plan(command, place, first, folder, retries, fixed, most, interval, profile, evidence)
    done = loop.guard(plan, say)
    say(f"the report over all attempts\n{report.summary(done).rstrip()}")
    _write(done, folder)
    return done.exit_code


def _write(done: "Guarded", folder: Path) -> None:
    """Both files. What goes wrong is said: the command's exit code must come out."""
    from postmortem.recording.say import say  # noqa: PLC0415

    try:
        from postmortem import __version__  # noqa: PLC0415
        from postmortem_reports import attempts  # noqa: PLC0415 (loads only when the command has ended)

        write(folder / "guard.postmortem.json", json.dumps(done.to_dict(), indent=1) + "\n")
        write(folder / "guard.postmortem.html", attempts.html(done, __version__))
    except (PostmortemError, ImportError) as error:
        say(str(error))
    else:
        say(f"wrote {folder / 'guard.postmortem.html'}")


def _probed() -> tuple[int, str]:
    """The budget that a probe recommends, and its result as evidence."""
    from postmortem.probing.report import probe  # noqa: PLC0415
    from postmortem.recording.say import say  # noqa: PLC0415

    # Shared memory: it is what pinned pools are charged as, and costs more page tables than anonymous memory.
    found = probe(["shared"])
    say(f"the probe\n{found.text().rstrip()}")
    if found.budget <= 0:
        msg = "--budget probe: nothing is left beyond the reserve (`postmortem probe` shows why)"
        raise UsageError(msg)
    return found.budget, json.dumps(found.to_dict(), indent=1) + "\n"


def _place(arguments: list[str], variables: list[str], file: str | None) -> "BudgetPlace":
    from postmortem.guarding.budget import BudgetPlace  # noqa: PLC0415
    from postmortem.guarding.configfile import ConfigFile  # noqa: PLC0415

    path, key, template = _file(file) if file is not None else ("", "", "{budget}")
    return BudgetPlace(arguments, _variables(variables), ConfigFile(Path(path), key) if path else None, template)


def _share(option: str, text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        msg = f"{option}: {text!r} is no percentage between 0 and 100 (write it like 10%)"
        raise UsageError(msg)
    return value


def _variables(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            msg = f"--set-env: {pair!r} is not NAME=TEXT"
            raise UsageError(msg)
        found[name] = text
    return found


def _file(text: str) -> tuple[str, str, str]:
    """Path, key and template of FILE:KEY[=TEXT]; the path may hold colons, the template anything."""
    before, equals, template = text.partition("=")
    path, colon, key = before.rpartition(":")
    if not path or not colon or not key:
        msg = f"--set-file: {text!r} is not FILE:KEY or FILE:KEY=TEXT"
        raise UsageError(msg)
    return path, key, template if equals else "{budget}"
