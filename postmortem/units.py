"""Sizes: reading them as tools print them, and printing them as people read them.

All sizes in the project are whole bytes. GiB = 2^30 bytes.
"""

import re

__all__ = ["GIB", "KIB", "MIB", "format_duration", "format_fine", "format_gib", "parse_size"]

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

# Tools that report memory (free, docker, top, the kernel) use K, M, G for powers of 1024; only a
# spelled-out decimal unit would be decimal, and none of the tools that we read writes one.
_UNITS = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": 1 << 40, "p": 1 << 50}
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([kmgtp]?)(i?b?|bytes?)\s*", re.IGNORECASE)


def parse_size(text: str) -> int:
    """Bytes of a size such as `342GiB`, `331 G`, `512MiB`, `1024` (bytes).

    Raises ValueError when the text is no size.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        msg = f"not a size: {text!r} (write it like 342GiB, 512MiB or a number of bytes)"
        raise ValueError(msg)
    return round(float(match[1]) * _UNITS[match[2].lower()])


def format_gib(size_bytes: float, *, sign: bool = False) -> str:
    """A size in the project's one style: GiB with one decimal; MiB below a tenth of a GiB."""
    plus = "+" if sign and size_bytes > 0 else ""
    if size_bytes and abs(size_bytes) < GIB // 10:
        return f"{plus}{size_bytes / MIB:.1f} MiB"
    return f"{plus}{size_bytes / GIB:.1f} GiB"


def format_fine(size_bytes: float) -> str:
    """A size of which 2 % must be seen: whole MiB below 16 GiB (below a MiB: KiB), from there on GiB with one decimal."""
    if size_bytes >= 16 * GIB:
        return f"{size_bytes / GIB:,.1f} GiB"
    return f"{size_bytes / MIB:,.0f} MiB" if size_bytes >= MIB or not size_bytes else f"{size_bytes / KIB:,.0f} KiB"


def format_duration(seconds: float) -> str:
    """`4.2 s`, `8 min 38 s`, `2 h 05 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
