"""Going through many items at once where they are as expected, and one by one for a while where one is not."""

from collections.abc import Callable

__all__ = ["in_stretches"]


def in_stretches(
    count: int,
    at_once: Callable[[int, int], int],
    one_by_one: Callable[[int, int], None],
    *,
    shortest: int,
    longest: int,
) -> None:
    """Do items 0 … `count` in order.

    `at_once(start, stop)` does the items from `start` up to the first that is not as expected, and says how many;
    `one_by_one(start, stop)` does any. Both are given longer stretches, from `shortest` to `longest`, the better the
    first or the worse it gets on, so that neither a rare odd item nor nothing but odd ones costs much.
    """
    at, careful = 0, shortest
    while at < count:
        began, length = at, shortest
        while at < count:
            stop = min(at + length, count)
            at += at_once(at, stop)
            if at < stop:
                break
            length = min(2 * length, longest)
        careful = min(2 * careful, longest) if at - began < careful else shortest
        stop = min(at + careful, count)
        one_by_one(at, stop)
        at = stop
