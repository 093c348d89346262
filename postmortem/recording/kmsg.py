"""The kernel's log from now on, as dmesg prints it, kept up in dmesg.txt. Needs the right to read /dev/kmsg (root, or dmesg_restrict=0)."""

import contextlib
import os
from pathlib import Path

__all__ = ["KernelLog"]

_RECORD = 8192  # the longest record that /dev/kmsg hands out


class KernelLog:
    """Opened at the start of a run; what comes until the next read, the kernel keeps."""

    def __init__(self, device: Path = Path("/dev/kmsg")) -> None:
        self._file: int | None = None
        self.reason = ""
        try:
            self._file = os.open(device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            self.reason = f"{device}: {error.strerror}"

    def lines(self) -> list[str]:
        """Records since the last call, with the kernel's seconds since boot."""
        found: list[str] = []
        while self._file is not None:
            try:
                record = os.read(self._file, _RECORD)
            except BrokenPipeError:  # records were overwritten before they were read
                continue
            except OSError:
                break
            if not record:
                break
            head, _, message = record.decode("utf-8", "replace").partition(";")
            fields = head.split(",")
            if len(fields) > 2 and fields[2].isdecimal():
                found.append(f"[{int(fields[2]) / 1e6:12.6f}] {message.splitlines()[0] if message else ''}")
        return found

    def append_to(self, file: Path) -> None:
        """Add what is new to a file; none is made as long as there is nothing. What a full disk refuses is lost."""
        new = self.lines()
        if new:
            with contextlib.suppress(OSError), file.open("a") as out:
                out.write("\n".join(new) + "\n")

    def close(self) -> None:
        """Give the device back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
