"""Running the command: its output into run.log and on to ours, signals passed on, its end exactly as it was."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence

from postmortem.errors import InputError
from postmortem.recording.signals import handled
from postmortem.recording.writer import Appender, arrival

__all__ = ["Child", "exit_code", "passed_on"]

_PASSED = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LONGEST_LINE = 1 << 16
_AFTER_END_S = 0.5  # how long a descendant that kept the pipe open is listened to


def exit_code(returncode: int) -> int:
    """What a shell would report: 128 + N for signal N."""
    return 128 - returncode if returncode < 0 else returncode


class Child:
    """One command with stdout and stderr captured line by line in the order of arrival."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        try:
            self.process = subprocess.Popen(  # noqa: S603 (running the user's command is the purpose)
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, bufsize=0
            )
        except OSError as error:
            msg = f"cannot run {command[0]}: {error.strerror}"
            raise InputError(msg) from error

    @property
    def pid(self) -> int:
        """The command's process."""
        return self.process.pid

    def pump(self, log: Appender, arrivals: Appender) -> int:
        """Copy the output until the command ends; its return code, negative for a signal."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        streams = {self.process.stdout.fileno(): _Stream(1), self.process.stderr.fileno(): _Stream(2)}
        count = 0
        ended_at: float | None = None
        with selectors.DefaultSelector() as waiting:
            for descriptor in streams:
                waiting.register(descriptor, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(0.1)
                for key, _ in ready:
                    stream = streams[key.fd]
                    data = os.read(key.fd, _LONGEST_LINE)
                    lines = stream.lines(data)
                    count += _keep(lines, count, log, arrivals)
                    if not data:
                        waiting.unregister(key.fd)
                if self.process.poll() is None:
                    continue
                ended_at = ended_at or time.monotonic()
                if not ready or time.monotonic() - ended_at > _AFTER_END_S:
                    break
        for stream in streams.values():
            count += _keep(stream.lines(b""), count, log, arrivals)
        return self.process.wait()


def _keep(lines: bytes, before: int, log: Appender, arrivals: Appender) -> int:
    """Append whole lines, and beside them when the log had how many; gives how many they are."""
    if not lines:
        return 0
    log.write(lines)
    count = lines.count(b"\n")
    arrivals.write(arrival(before + count, "run.log"))
    return count


class _Stream:
    """Bytes of one stream: whole lines go on, the rest waits for its end."""

    def __init__(self, ours: int) -> None:
        self._rest = b""
        self._ours: int | None = ours

    def lines(self, data: bytes) -> bytes:
        self._pass(data)
        self._rest += data
        cut = self._rest.rfind(b"\n") + 1 if data and len(self._rest) < _LONGEST_LINE else len(self._rest)
        whole, self._rest = self._rest[:cut], self._rest[cut:]
        if whole and not whole.endswith(b"\n"):
            whole += b"\n"  # the two streams share a file: the other's line must not run on
        return whole

    def _pass(self, data: bytes) -> None:
        """On to our own stream; a reader that has gone must not end the recording."""
        while data and self._ours is not None:
            try:
                data = data[os.write(self._ours, data) :]
            except OSError:
                self._ours = None


@contextlib.contextmanager
def passed_on(child: Child) -> Generator[list[int]]:
    """While this lasts, signals sent to us go to the child; the list collects them.

    From a terminal SIGINT reaches the child by itself, because it is in our process group.
    """
    sent: list[int] = []

    def forward(number: int) -> None:
        sent.append(number)
        if number == signal.SIGINT and os.isatty(0):
            return
        with contextlib.suppress(ProcessLookupError):
            child.process.send_signal(number)

    with handled((*_PASSED, signal.SIGINT), forward):
        yield sent
