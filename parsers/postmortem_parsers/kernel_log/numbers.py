"""Whole numbers out of kernel text, where a cut or a garbled one is no number."""

import re

__all__ = ["KIB", "as_int", "kib", "limit_bytes"]

KIB = 1024
_MOST = (1 << 63) - 1
# "No limit" is the largest page-aligned count: 2^63 less a page of any size, 2^64 on 3.x. Nothing real is near it.
_NO_LIMIT = 1 << 60


def as_int(text: str | None) -> int | None:
    """The number, or None when it is no number or cannot be a 64-bit one."""
    if text is None or not re.fullmatch(r"-?\d{1,20}", text):
        return None
    value = int(text)
    return value if -_MOST <= value <= _MOST else None


def kib(text: str | None) -> int | None:
    """Bytes of a count of kB, which in the kernel's words are KiB."""
    value = as_int(text)
    return value * KIB if value is not None and value * KIB <= _MOST else None


def limit_bytes(text: str | None) -> int | None:
    """Bytes of a `limit` field (kB), None for "none" in any of its spellings."""
    value = kib(text)
    return None if value is None or value >= _NO_LIMIT else value
