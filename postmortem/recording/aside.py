"""A thread beside the recording, from its start to its end, which never waits long for it."""

import threading
from typing import Self

__all__ = ["Aside"]


class Aside:
    """Runs `_run` while this lasts. It looks at `_stop`, and is left alone when it does not end in `patience_s`."""

    def __init__(self, name: str, patience_s: float) -> None:
        self._patience = patience_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(self._patience)

    def _run(self) -> None:
        raise NotImplementedError
