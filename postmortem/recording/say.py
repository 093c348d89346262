"""Messages of a recording, on stderr at once: what goes wrong beside the command must neither wait nor end it."""

import contextlib
import sys

__all__ = ["say"]


def say(message: str) -> None:
    """One line on stderr; a reader that has gone is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"postmortem: {message}\n")
        sys.stderr.flush()
