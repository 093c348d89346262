"""`postmortem formats`: what can be read, with an example line each."""

import textwrap
from collections.abc import Iterator

import typer

from postmortem.cli.output import emit

__all__ = ["formats"]


def formats() -> None:
    """List the parsers and profiles, with an example line each."""
    from postmortem_parsers import registry  # noqa: PLC0415 (parsers load polars)

    parsers, warnings = registry.load_parsers()
    lines = ["Parsers (told apart by content; one file can hold several):", ""]
    for parser in parsers:
        lines += [*_entry(parser.name, parser.reads, parser.example), ""]
    lines += ["Profiles (--profile NAME or a TOML file of your own):", ""]
    for name, about, example in _profiles():
        lines += [*_entry(name, about, example), ""]
    emit("\n".join(lines))
    for warning in warnings:
        typer.echo(f"postmortem: {warning}", err=True)


def _entry(name: str, about: str, example: str) -> Iterator[str]:
    yield from textwrap.wrap(f"{name}: {about}", width=80, initial_indent="  ", subsequent_indent="      ")
    shown = [line for line in example.splitlines() if line.strip()]
    yield from (f"      | {line}" for line in shown[:2])


def _profiles() -> Iterator[tuple[str, str, str]]:
    """Name, purpose and a sample line of each shipped profile."""
    from postmortem_parsers import profiles  # noqa: PLC0415

    for name in profiles.names():
        profile = profiles.load(name)
        samples = [
            sample for kind in (profile.event, profile.line, profile.block) for one in kind for sample in one.sample
        ]
        yield name, profile.about, samples[0] if samples else ""
