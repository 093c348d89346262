"""When the next sample is due: as the use nears its limit, as it moves, and as tasks begin to wait for memory."""

__all__ = ["Pace"]

_PEEK_S = 0.1
_FAST_S = 0.02
_PRESSED_S = 0.2  # under pressure that can last for hours: dense enough to see a death, and still cheap
_MOVED = 0.005  # of the limit: a step that deserves a sample of its own
_NEAR_S = 3.0  # time to the limit at the present slope, below which every peek is fast
_STALLED = 0.02  # share of the time in which some task waited for memory that counts as pressure


class Pace:
    """Decides from a few numbers when the next full sample is due. Times in seconds, sizes in bytes."""

    def __init__(self, interval_s: float) -> None:
        self._interval = interval_s
        self._sampled_at = float("-inf")
        self._sampled_use = 0
        self._last: tuple[float, int] | None = None
        self._stalled: tuple[float, int] | None = None
        self.wait_s = min(_PEEK_S, interval_s)
        """Seconds until the next look."""
        self.calm = True
        """Whether the last sample was due by the clock alone."""

    def due(self, now: float, use: int | None, limit: int | None, *, stalled_us: int | None = None) -> bool:
        """Whether to take a full sample now; sets `wait_s` and `calm`.

        `stalled_us`: time that tasks have waited for memory so far, as the kernel's pressure files count it.
        """
        slope = self._slope(now, use)
        near = limit is not None and use is not None and slope > 0 and (limit - use) / slope < _NEAR_S
        self.wait_s = _FAST_S if near else min(_PEEK_S, self._interval)
        moved = limit is not None and use is not None and abs(use - self._sampled_use) >= _MOVED * limit
        longest = min(_PRESSED_S, self._interval) if self._pressed(now, stalled_us) else self._interval
        if not (near or moved or now - self._sampled_at >= longest):
            return False
        self._sampled_at, self._sampled_use = now, use or 0
        self.calm = not (near or moved)
        return True

    def _slope(self, now: float, use: int | None) -> float:
        last, self._last = self._last, self._last if use is None else (now, use)
        return (use - last[1]) / (now - last[0]) if use is not None and last is not None and now > last[0] else 0.0

    def _pressed(self, now: float, stalled_us: int | None) -> bool:
        if stalled_us is None:
            return False
        last, self._stalled = self._stalled, (now, stalled_us)
        return last is not None and (stalled_us - last[1]) / 1e6 > _STALLED * (now - last[0])
