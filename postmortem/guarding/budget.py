"""Telling the command its budget: in an argument, in the environment, or in a configuration file."""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from postmortem.errors import UsageError
from postmortem.guarding.configfile import ConfigFile
from postmortem.units import GIB, MIB

__all__ = ["BudgetPlace", "fill"]

_FIELDS = re.compile(r"\{(budget(?:_bytes|_mib|_gib)?)\}")
_UNITS = {"budget_mib": MIB, "budget_gib": GIB}


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
    file: ConfigFile | None = None
    file_template: str = "{budget}"

    def unit(self, command: Sequence[str]) -> int:
        """The coarsest unit in which the budget is told, in bytes: steps finer than it would reach nobody.

        Raises UsageError where the budget itself would reach nobody.
        """
        texts = [*command, *self.arguments, *self.variables.values(), *([self.file_template] if self.file else [])]
        fields = {field for text in texts for field in _FIELDS.findall(text)}
        if not fields:
            msg = "the budget would reach nobody: use --set '--budget={budget}', --set-env NAME={budget} or --set-file"
            raise UsageError(msg)
        return max(_UNITS.get(field, 1) for field in fields)

    def check(self) -> None:
        """Raise UsageError where the file or the key is not there."""
        if self.file is not None:
            self.file.check()

    def command(self, command: Sequence[str], budget: int) -> list[str]:
        """The command for one attempt."""
        return [fill(word, budget) for word in (*command, *self.arguments)]

    def environment(self, base: Mapping[str, str], budget: int) -> dict[str, str]:
        """The environment for one attempt."""
        return {**base, **{name: fill(text, budget) for name, text in self.variables.items()}}

    def write_file(self, budget: int) -> None:
        """Set the key in the file. Raises UsageError."""
        if self.file is not None:
            self.file.set(fill(self.file_template, budget))

    def restore_file(self) -> None:
        """Put the file back as it was."""
        if self.file is not None:
            self.file.restore()
