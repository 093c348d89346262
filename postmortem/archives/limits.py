"""What an archive may ask of us: bounds on size, ratio, count and nesting, and what was refused."""

from __future__ import annotations

import dataclasses
import tarfile
import zipfile
import zlib

__all__ = ["DAMAGE", "Limits", "RefusedError"]


DAMAGE = (tarfile.TarError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError)
"""What readers of archives raise on damaged ones."""


class RefusedError(OSError):
    """A member that is not read, with the reason. An OSError, so that readers treat it like a failing disk."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds on what is read of archives. Sizes in bytes."""

    member_bytes: int = 16 << 30
    """One member, decompressed."""
    held_bytes: int = 1 << 30
    """What one run's members may take of memory; they are held compressed."""
    members: int = 1_000_000
    """Members of one outermost archive, nested ones included."""
    nesting: int = 4
    """Archives within archives."""
    ratio: float = 500.0
    """Decompressed to compressed. Repetitive logs reach 200; zeros in a gzip reach 1,030."""
    ratio_from_bytes: int = 64 << 20
    """Below this the ratio does not matter."""
