"""Time stamps as tools print them become UTC, or say that their zone or day is not known."""

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem_parsers.samples.clocks import with_times

FIRST, LAST = (datetime.fromisoformat(day) for day in ("2001-09-10", "2099-01-01"))
STAMPS = {
    "1773886571": (datetime(2026, 3, 19, 2, 16, 11, tzinfo=UTC), False, False),
    "1773886571.520": (datetime(2026, 3, 19, 2, 16, 11, 520000, tzinfo=UTC), False, False),
    "1773886571520": (datetime(2026, 3, 19, 2, 16, 11, 520000, tzinfo=UTC), False, False),
    "1773886571520123": (datetime(2026, 3, 19, 2, 16, 11, 520123, tzinfo=UTC), False, False),
    "2026-03-19T02:16:10+00:00": (datetime(2026, 3, 19, 2, 16, 10, tzinfo=UTC), False, False),
    "2026-03-19T02:16:10-0530": (datetime(2026, 3, 19, 7, 46, 10, tzinfo=UTC), False, False),
    "2026-02-22T00:21:56.742Z": (datetime(2026, 2, 22, 0, 21, 56, 742000, tzinfo=UTC), False, False),
    "2026-03-19T02:16:10,123456789+00:00": (datetime(2026, 3, 19, 2, 16, 10, 123456, tzinfo=UTC), False, False),
    "2026-03-19 02:16:10": (datetime(2026, 3, 19, 2, 16, 10, tzinfo=UTC), True, False),
    "2026/03/19 02:16:10.123": (datetime(2026, 3, 19, 2, 16, 10, 123000, tzinfo=UTC), True, False),
    "Wed Jul 15 03:29:46 UTC 2026": (datetime(2026, 7, 15, 3, 29, 46, tzinfo=UTC), False, False),
    "Thu May  7 18:11:23 EST 2026": (datetime(2026, 5, 7, 18, 11, 23, tzinfo=UTC), True, False),
    "Thu May  7 06:11:23 PM UTC 2026": (datetime(2026, 5, 7, 18, 11, 23, tzinfo=UTC), False, False),
    "Thu 07 May 2026 12:11:23 AM EST": (datetime(2026, 5, 7, 0, 11, 23, tzinfo=UTC), True, False),
    "Thu, 07 May 2026 18:11:23 +0200": (datetime(2026, 5, 7, 16, 11, 23, tzinfo=UTC), False, False),
    "02:16:12": (datetime(2000, 1, 1, 2, 16, 12, tzinfo=UTC), True, True),
}


def times_of(*texts):
    return with_times(pl.DataFrame({"stamp": list(texts)}, schema={"stamp": pl.String}), "stamp").drop("stamp").rows()


@pytest.mark.parametrize("text", STAMPS)
def test_a_stamp_is_read(text):
    assert times_of(text) == [STAMPS[text]]


@pytest.mark.parametrize("text", ["2026-02-30 10:10:10", "25:61:00", "8352785044", "123", "", "yesterday", None])
def test_what_is_no_time_is_null(text):
    assert times_of(text) == [(None, None, None)]


@given(st.lists(st.datetimes(FIRST, LAST), min_size=1), st.integers(-14 * 4, 14 * 4))
def test_iso_stamps_with_any_offset_come_back(moments, quarters):
    zone = timezone(timedelta(minutes=15 * quarters))
    read = times_of(*(m.replace(tzinfo=zone).isoformat() for m in moments))
    assert [time for time, _, _ in read] == [m.replace(tzinfo=zone).astimezone(UTC) for m in moments]
