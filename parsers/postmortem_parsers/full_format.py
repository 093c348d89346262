"""How tracing-subscriber's full format dresses a line, without and with colours.

    2026-03-13T14:02:11.123456Z  INFO cuzk_core::pinned_pool: pinned pool: checkin size_gib=3.88
    ␛[2m2026-03-13T14:02:11.123456Z␛[0m ␛[32m INFO␛[0m ␛[2mcuzk_core::pinned_pool␛[0m␛[2m:␛[0m … ␛[3msize_gib␛[0m␛[2m=␛[0m3.88

Written by tracing-subscriber 0.2 and 0.3 to files and terminals. Not read here: other levels than TRACE, DEBUG and INFO
(warnings and errors become marks), other clocks.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from postmortem_parsers.timestamps import FIXED_STAMP

__all__ = ["COLOURED", "PLAIN", "Dress"]

_CODE = re.compile(r"\x1b\[[0-9;]*m")
_TARGET_END = 3


class Dress(NamedTuple):
    """What stands around time, target, message and values."""

    head: str
    """Expression for the part that is alike in all lines that surely are records."""
    clock: int
    """Characters before the time."""
    lead: int
    """Characters before spans and target."""
    before_target: str
    before_message: str
    before_value: str

    def screen(self, pattern: str) -> str:
        """What is searched for, where the careful way looks for `pattern` (`target: message`, or ` field=`).

        The target's last bytes make it rare, and its first byte so common a letter that the search does not stop at
        each of many first bytes. Between colours a message alone is found fastest.
        """
        target, colon, message = pattern.partition(": ")
        if self.before_value:
            return message if colon else pattern.strip(" =")
        return f"{target[-_TARGET_END:]}{colon}{message}" if colon else pattern

    def before(self, pattern: str) -> int:
        """Bytes between the beginning of all that is alike in an event's lines and what `screen` finds."""
        target, colon, _ = pattern.partition(": ")
        if not colon:
            return 0
        if self.before_value:
            whole = f"{self.before_target}{target}{self.before_message}" if target else self.before_message
            return len(whole.encode())
        return len(target[:-_TARGET_END].encode()) + 1 if len(target) > _TARGET_END else 0

    def bare(self, text: str) -> str:
        """Text without colours."""
        return _CODE.sub("", text) if self.before_value else text


PLAIN = Dress(
    head=rf"^{FIXED_STAMP} (?:TRACE|DEBUG| INFO) ",
    clock=0,
    lead=34,
    before_target="",
    before_message=": ",
    before_value="",
)
COLOURED = Dress(
    head=rf"^\x1b\[2m{FIXED_STAMP}\x1b\[0m \x1b\[3[0-9]m(?:TRACE|DEBUG| INFO)\x1b\[0m ",
    clock=4,
    lead=51,
    before_target="\x1b[2m",
    before_message="\x1b[0m\x1b[2m:\x1b[0m ",
    before_value="\x1b[0m",
)
