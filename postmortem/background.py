"""Work beside the main thread: hashing what was read, and making pieces before they are asked for.

Both spend their time in C without the interpreter's lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Hasher", "ahead"]

_INLINE_BYTES = 1 << 20
_MOST_WAITING = 3
_STEP_BYTES = 1 << 20


class Hasher:
    """SHA-256 and length of bytes that come one after the other."""

    def __init__(self) -> None:
        self.bytes = 0
        self._digest = hashlib.sha256()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[Future[None]] = deque()

    def update(self, data: bytes) -> None:
        """Take `data` in; large data is hashed later, and at most three of them are held."""
        self.bytes += len(data)
        if len(data) <= _INLINE_BYTES and not self._waiting:
            self._digest.update(data)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="sha256")
        while len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(self._digest.update, data))

    def close(self) -> str:
        """The digest in hexadecimal."""
        while self._waiting:
            self._waiting.popleft().result()
        if self._pool is not None:
            self._pool.shutdown()
        return self._digest.hexdigest()


def ahead(pieces: Iterator[bytes], most: int = 16) -> Generator[bytes, None, None]:
    """The same bytes in pieces of about a MiB, made on a thread of its own, at most `most` pieces before they are used.

    What `pieces` raises is raised here. When this iterator is closed early, so is `pieces`.
    """
    made: queue.Queue[bytes | BaseException | None] = queue.Queue(most)
    stopped = threading.Event()
    thread = threading.Thread(target=_make, args=(pieces, made, stopped), name="ahead", daemon=True)
    thread.start()
    try:
        while (piece := made.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece
    finally:
        stopped.set()
        while thread.is_alive():  # It may be waiting for room.
            with contextlib.suppress(queue.Empty):
                made.get(timeout=0.01)


def _make(pieces: Iterator[bytes], made: queue.Queue[bytes | BaseException | None], stopped: threading.Event) -> None:
    try:
        for piece in _gathered(pieces):
            if stopped.is_set():
                return
            made.put(piece)
        made.put(None)
    except BaseException as error:  # noqa: BLE001 (raised again where the pieces are used)
        made.put(error)


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    length = 0
    for piece in pieces:
        # A decompression bomb's piece can be very large: cut up, so that the queue stays small.
        for start in range(0, len(piece), _STEP_BYTES):
            held.append(piece[start : start + _STEP_BYTES])
            length += len(held[-1])
            if length >= _STEP_BYTES:
                yield b"".join(held)
                held, length = [], 0
    if held:
        yield b"".join(held)
