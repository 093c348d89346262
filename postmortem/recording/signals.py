"""Signals handled for a while, and as they were before afterwards."""

import contextlib
import signal
from collections.abc import Callable, Generator, Iterable

__all__ = ["handled", "noted"]


@contextlib.contextmanager
def handled(numbers: Iterable[int], act: Callable[[int], None]) -> Generator[None]:
    """While this lasts, each of these signals calls `act` with its number. For the main thread only."""
    before = {number: signal.signal(number, lambda sent, _frame: act(sent)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def noted(*numbers: int) -> Generator[list[int]]:
    """While this lasts, these signals do not end us; the list collects them."""
    told: list[int] = []
    with handled(numbers, told.append):
        yield told
