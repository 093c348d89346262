"""Files that survive a kill -9 of the writer: one write(2) with O_APPEND a line, no buffer in the process.

What write(2) has taken is in the kernel's page cache and outlives the process and its container; only a crash of the
host itself can lose it, so there is no fsync after each line (it would block for seconds on a busy disk).
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Appender", "Table", "arrival", "arrivals_file"]


class Appender:
    """A file that is only ever appended to."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes) -> None:
        """Append; a full disk must not end the process that is recorded, so what cannot be written is dropped."""
        try:
            os.write(self._file, data)
        except OSError:
            return

    def close(self) -> None:
        """Push everything to the disk and close."""
        try:
            os.fsync(self._file)
        except OSError:
            pass  # the file system refuses: the data is as safe as it can be
        finally:
            os.close(self._file)


class Table:
    """A CSV file with a header, made with its first row; a row's missing values are empty cells."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path, self._columns = path, tuple(columns)
        self._file: Appender | None = None

    def add(self, row: dict[str, str | int]) -> None:
        """Append one row in a single write. Raises OSError where the file cannot be made."""
        if self._file is None:
            self._file = Appender(self._path)
            self._file.write((",".join(self._columns) + "\n").encode())
        self._file.write((",".join(str(row.get(name, "")) for name in self._columns) + "\n").encode())

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._file is not None:
            self._file.close()


def arrivals_file(folder: Path) -> Appender:
    """arrivals.csv of a run directory, with its header; several writers may share it."""
    path = folder / "arrivals.csv"
    file = Appender(path)
    if not path.stat().st_size:
        file.write(b"time,lines,file\n")
    return file


def arrival(lines: int, file: str) -> bytes:
    """A row of arrivals.csv: now, a file of the run directory holds so many lines."""
    return f"{time.time():.3f},{lines},{file}\n".encode()
