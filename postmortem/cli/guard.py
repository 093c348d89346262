"""`postmortem guard`: run a command under a budget, and again under a smaller one when memory killed it."""

from pathlib import Path
from typing import Annotated

import typer

from postmortem.cli import options
from postmortem.errors import UsageError

__all__ = ["guard"]


def guard(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD…", help="The command, behind two dashes.")],
    *,
    budget: Annotated[
        str, typer.Option("--budget", metavar="SIZE|probe", help="The first attempt's budget, or measure it.")
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="ARG", help="Argument to append, such as '--budget={budget}'; can be given again."
        ),
    ] = None,
    variables: Annotated[
        list[str] | None, typer.Option("--set-env", metavar="NAME=TEXT", help="Variable such as BUDGET={budget_gib}.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--set-file", metavar="FILE:KEY[=TEXT]", help="Line of a TOML, YAML or JSON file to rewrite."),
    ] = None,
    retries: Annotated[int, typer.Option("--retries", metavar="N", min=0, help="Further attempts.")] = 3,
    step: Annotated[
        str | None, typer.Option("--step", metavar="PERCENT", help="Fixed step, 10% for the classic ladder.")
    ] = None,
    max_step: Annotated[str, typer.Option("--max-step", metavar="PERCENT", help="Largest step at once.")] = "25%",
    out: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where the attempts' run directories go.")
    ] = None,
    interval: Annotated[float, typer.Option("--interval", metavar="SECONDS", help="Time between samples.")] = 1.0,
) -> int:
    """Run a command under a memory budget; when it dies of memory, and only then, try again with less.

    Each attempt is recorded and analysed. The next budget is the safe budget of that post-mortem, at least 2 % and at
    most --max-step lower; with --step it is the fixed ladder. {budget} and {budget_bytes} stand for bytes,
    {budget_mib} and {budget_gib} for whole MiB and GiB, also inside the command itself.

    Output and signals pass through; the exit code is the last attempt's own (128 + N for signal N). A panic, an exit
    code of the command's own or a stop by signal to us is never retried. The report over all attempts goes to stderr.

    Example: postmortem guard --budget 331GiB --set '--budget={budget}' -- cuzk-daemon --config cuzk.toml
    """
    from postmortem.guarding import budget as budgets  # noqa: PLC0415
    from postmortem.guarding import loop  # noqa: PLC0415
    from postmortem.recording.session import new_folder  # noqa: PLC0415

    place = budgets.BudgetPlace(tuple(arguments or ()), _variables(variables or []), **_file(file))  # type: ignore[arg-type]  # names of its own fields
    plan = loop.Plan(
        command=command,
        place=place,
        budget=_budget(budget),
        folder=new_folder(out),
        retries=retries,
        step=_share("--step", step) if step else None,
        max_step=_share("--max-step", max_step),
        interval_s=interval,
    )
    done = loop.guard(plan, lambda text: typer.echo(f"postmortem: {text}", err=True))
    typer.echo(loop.summary(done), err=True, nl=False)
    return done.exit_code


def _budget(text: str) -> int:
    if text == "probe":
        from postmortem.probing.report import probe  # noqa: PLC0415

        return probe(["anon"]).budget
    found = options.size("--budget", text)
    assert found is not None
    return found


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


def _file(text: str | None) -> dict[str, object]:
    if text is None:
        return {}
    path, colon, rest = text.rpartition(":") if "=" not in text else _split_template(text)
    key, _, template = rest.partition("=")
    if not path or not colon or not key:
        msg = f"--set-file: {text!r} is not FILE:KEY or FILE:KEY=TEXT"
        raise UsageError(msg)
    return {"file": Path(path), "file_key": key, "file_template": template or "{budget}"}


def _split_template(text: str) -> tuple[str, str, str]:
    before, _, template = text.partition("=")
    path, colon, key = before.rpartition(":")
    return path, colon, f"{key}={template}"
