"""Errors of the project, as a tree.

    PostmortemError          anything that we raise on purpose; carries the exit code
    ├── UsageError           wrong use: an option's value, an unknown profile
    └── InputError           unreadable or unusable input
        ├── NotFoundError    the path is not there
        └── NoEvidenceError  readable, but holds nothing that we can use

The command line catches `PostmortemError` in one place and prints one line.
"""

__all__ = ["InputError", "NoEvidenceError", "NotFoundError", "PostmortemError", "UsageError"]


class PostmortemError(Exception):
    """What went wrong, where, and how to mend it, in one line."""

    exit_code: int = 2


class UsageError(PostmortemError):
    """An option or argument that cannot be used as given."""


class InputError(PostmortemError):
    """An input that cannot be read."""


class NotFoundError(InputError):
    """An input path that does not exist."""


class NoEvidenceError(InputError):
    """Inputs that were read and hold no evidence that any parser knows."""
