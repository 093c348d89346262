"""Telling the command its budget: in an argument, in the environment, or in a configuration file."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from postmortem.errors import UsageError
from postmortem.units import GIB, MIB

__all__ = ["BudgetPlace", "fill"]

_FIELDS = re.compile(r"\{(budget(?:_bytes|_mib|_gib)?)\}")


def fill(template: str, budget: int) -> str:
    """A template with `{budget}` and `{budget_bytes}` (bytes), `{budget_mib}`, `{budget_gib}` (rounded down) filled in."""
    values = {"budget": budget, "budget_bytes": budget, "budget_mib": budget // MIB, "budget_gib": budget // GIB}
    return _FIELDS.sub(lambda match: str(values[match[1]]), template)


@dataclasses.dataclass(frozen=True)
class BudgetPlace:
    """Where the budget goes; at least one of the three."""

    arguments: Sequence[str] = ()
    """Templates appended to the command; a template that is part of the command itself is filled in as well."""
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    file: Path | None = None
    file_key: str = ""
    file_template: str = "{budget}"

    def check(self, command: Sequence[str]) -> None:
        """Raise UsageError where the budget would reach nobody."""
        texts = [*command, *self.arguments, *self.variables.values()]
        if self.file is None and not any(_FIELDS.search(text) for text in texts):
            msg = "the budget would reach nobody: use --set '--budget={budget}', --set-env NAME={budget} or --set-file"
            raise UsageError(msg)

    def command(self, command: Sequence[str], budget: int) -> list[str]:
        """The command for one attempt."""
        return [fill(word, budget) for word in (*command, *self.arguments)]

    def environment(self, base: Mapping[str, str], budget: int) -> dict[str, str]:
        """The environment for one attempt."""
        return {**base, **{name: fill(text, budget) for name, text in self.variables.items()}}

    def write_file(self, budget: int) -> None:
        """Replace the key's value in its line of a TOML, YAML or JSON file; all else stays. Raises UsageError."""
        if self.file is None:
            return
        # A key at the beginning of its line, its sign (= or :), and a value up to a comma, comment or the line's end.
        pattern = re.compile(
            rf"""^(\s*"?{re.escape(self.file_key)}"?\s*[=:]\s*)("[^"\n]*"|'[^'\n]*'|[^,#\n]*?)(\s*(?:,|#.*)?\s*)$""",
            re.MULTILINE,
        )
        try:
            text = self.file.read_text()
        except OSError as error:
            msg = f"--set-file {self.file}: {error.strerror}"
            raise UsageError(msg) from error
        found = pattern.findall(text)
        if len(found) != 1:
            msg = f"--set-file {self.file}: {len(found)} lines set {self.file_key!r}; exactly one is needed"
            raise UsageError(msg)
        value = fill(self.file_template, budget)

        def replaced(match: re.Match[str]) -> str:
            quote = match[2][:1] if match[2][:1] in {'"', "'"} else ""
            return f"{match[1]}{quote}{value}{quote}{match[3]}"

        part = self.file.with_name(f".{self.file.name}.part")
        part.write_text(pattern.sub(replaced, text))
        part.chmod(self.file.stat().st_mode & 0o7777)
        part.replace(self.file)
