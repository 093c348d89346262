"""GPU memory by nvidia-smi's own loop into gpu.csv, and its driver's version in gpu.txt, where the tool is there."""

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

from postmortem.recording.startup import uname_text

__all__ = ["beside"]

_QUERY = "timestamp,index,memory.used,memory.total"
_DRIVER_QUERY = "--query-gpu=name,driver_version,memory.total"
_FASTEST_MS = 200
_PATIENCE_S = 10


@contextlib.contextmanager
def beside(folder: Path, interval_s: float) -> Generator[None]:
    """While this lasts, the loop runs. Without the tool, or when it fails, nothing is written."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        yield
        return
    threading.Thread(target=_driver, args=(tool, folder / "gpu.txt"), name="gpu", daemon=True).start()
    command = [tool, f"--query-gpu={_QUERY}", "--format=csv", f"-lms={max(_FASTEST_MS, int(interval_s * 1000))}"]
    with (folder / "gpu.csv").open("ab") as file:
        try:
            loop = subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL)  # noqa: S603
        except OSError:
            yield
            return
        try:
            yield
        finally:
            _end(loop)


def _end(loop: "subprocess.Popen[bytes]") -> None:
    """A driver that hangs, hangs nvidia-smi as well: it must not keep the recording from its end."""
    loop.terminate()
    try:
        loop.wait(1)
    except subprocess.TimeoutExpired:
        loop.kill()


def _driver(tool: str, file: Path) -> None:
    """Asked once, aside: nvidia-smi takes seconds where the driver is not kept loaded."""
    command = [tool, _DRIVER_QUERY, "--format=csv,noheader"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, check=True, timeout=_PATIENCE_S)  # noqa: S603
        file.write_bytes(f"{uname_text()}$ nvidia-smi {_DRIVER_QUERY} --format=csv,noheader\n".encode() + done.stdout)
