"""One kill told several times (dmesg beside kern.log, a line printed twice) becomes one row."""

import datetime as dt

import polars as pl

__all__ = ["dedupe_kills"]

_SIZES = ("total_vm", "anon_rss", "file_rss", "shmem_rss")
_SAME_UPTIME_S = 2.0
_SAME_TIME_S = 5.0
_REPEAT_S = 60.0
Row = dict[str, object]


def _uptimes_apart(one: Row, other: Row) -> float | None:
    """Seconds between two uptimes, None when either is missing."""
    first, second = one["uptime_s"], other["uptime_s"]
    return abs(first - second) if isinstance(first, float) and isinstance(second, float) else None


def _times_apart(one: Row, other: Row) -> float | None:
    """Seconds between two wall-clock times, None when they cannot be compared.

    A local clock differs by whole quarters of an hour from UTC, and a yearless stamp by whole days.
    """
    first, second = one["time"], other["time"]
    if not isinstance(first, dt.datetime) or not isinstance(second, dt.datetime):
        return None
    if one["no_year"] or other["no_year"]:
        first, second = first.replace(year=2000), second.replace(year=2000)
    apart = abs((first - second).total_seconds())
    if bool(one["local_time"]) != bool(other["local_time"]) and apart <= 14 * 3600 + _SAME_TIME_S:
        rest = apart % 900
        apart = min(rest, 900 - rest)
    return apart


def _same_place(one: Row, other: Row) -> bool:
    return None in (one["hostname"], other["hostname"]) or one["hostname"] == other["hostname"]


def _same(one: Row, other: Row) -> bool:
    """Whether two rows tell of one death."""
    if one["killer"] != other["killer"] or one["pid"] != other["pid"] or one["pid"] is None:
        return False
    if None not in (one["victim"], other["victim"]) and one["victim"] != other["victim"]:
        return False
    if not _same_place(one, other):
        return False
    sized = [(one[name], other[name]) for name in _SIZES if one[name] is not None and other[name] is not None]
    equal = bool(sized) and all(first == second for first, second in sized)
    uptime, time = _uptimes_apart(one, other), _times_apart(one, other)
    if uptime is not None:
        same_clock = uptime <= (_SAME_UPTIME_S if equal else _REPEAT_S)
        # Two boots can show one uptime, but not the same sizes and the same day.
        return same_clock and (time is None or time <= _REPEAT_S)
    if time is not None:
        return time <= (_SAME_TIME_S if equal else _REPEAT_S)
    return equal or not sized


def _merged(kept: Row, other: Row) -> Row:
    """The fuller row, with gaps filled from the poorer one."""
    if sum(value is not None for value in other.values()) > sum(value is not None for value in kept.values()):
        kept, other = other, kept
    merged = {name: other[name] if value is None else value for name, value in kept.items()}
    better_clock = kept["time"] is None or (kept["no_year"] and not other["no_year"] and other["time"] is not None)
    if better_clock:
        merged |= {name: other[name] for name in ("time", "local_time", "no_year")}
    merged["oom_group"] = bool(kept["oom_group"]) or bool(other["oom_group"])
    merged["complete"] = bool(kept["complete"]) or bool(other["complete"])
    return merged


def dedupe_kills(frame: pl.DataFrame) -> pl.DataFrame:
    """`kills` rows with each death once: same host, pid and name, at one moment, or with the same sizes.

    Works within a stream and across streams; of two rows for one death the fuller stays and the other fills its gaps.
    """
    kept: list[Row] = []
    by_pid: dict[object, list[int]] = {}
    for row in frame.iter_rows(named=True):
        places = by_pid.setdefault(row["pid"], [])
        place = next((number for number in places if _same(kept[number], row)), None)
        if place is None:
            places.append(len(kept))
            kept.append(row)
        else:
            kept[place] = _merged(kept[place], row)
    return pl.DataFrame(kept, schema=frame.schema)
