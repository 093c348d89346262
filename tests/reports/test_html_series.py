"""The page's series and texts: packing loses nothing, thinning keeps peaks, hidden characters show themselves."""

import base64
import datetime as dt
import struct
import unicodedata
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.schema import TIMELINE
from postmortem_reports.chips import chips, plain
from postmortem_reports.series import PAGE, in_order, pack, thin

START = dt.datetime(2026, 3, 19, tzinfo=dt.UTC)


def timeline(pages: list[int | None]) -> pl.DataFrame:
    """A row a second whose `unreclaimable` is so many pages."""
    rows = [
        {"time": START + dt.timedelta(seconds=at), "unreclaimable": None if n is None else n * PAGE}
        for at, n in enumerate(pages)
    ]
    return pl.DataFrame(rows, schema=TIMELINE)


def unpacked(series: dict[str, Any], name: str) -> list[int | None]:
    column = series["columns"].get(name)
    if column is None:
        return [None] * series["rows"]
    if isinstance(column, int):
        return [column] * series["rows"]
    values = struct.unpack(f"<{series['rows']}i", base64.b64decode(column))
    return [None if value == series["null"] else value for value in values]


@given(st.lists(st.none() | st.integers(0, 2**31 - 2), min_size=1, max_size=40))
def test_packed_sizes_unpack_to_the_same_pages(pages: list[int | None]) -> None:
    assert unpacked(pack(timeline(pages)), "unreclaimable") == pages


def test_packed_times_are_milliseconds_since_the_start() -> None:
    series = pack(timeline([1, 2, 3]))
    assert series["start_ms"] == START.timestamp() * 1000
    assert struct.unpack("<3d", base64.b64decode(series["time"])) == (0.0, 1000.0, 2000.0)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 4999), st.integers(0, 4999))
def test_thinning_keeps_the_peak_the_ends_and_the_kill(peak: int, kill: int) -> None:
    pages: list[int | None] = [100 + at % 7 for at in range(5000)]
    pages[peak] = 10**6
    whole = timeline(pages)
    moment = whole["time"][kill]
    thinned = thin(whole, 300, keep=(moment,))
    assert thinned.height <= 310
    assert thinned["unreclaimable"].max() == 10**6 * PAGE
    assert {whole["time"][0], whole["time"][-1], moment} <= set(thinned["time"])


def test_a_short_timeline_is_left_as_it_is() -> None:
    whole = timeline([1, 2, 3])
    assert thin(whole, 300).equals(whole)


def test_rows_without_a_time_are_dropped_and_the_others_put_in_order() -> None:
    rows = pl.DataFrame([{"time": None}, {"time": START}, {"time": START - dt.timedelta(1)}], schema=TIMELINE)
    assert in_order(rows)["time"].to_list() == [START - dt.timedelta(1), START]


@given(st.text())
def test_no_hidden_character_leaves_raw_and_none_is_lost(text: str) -> None:
    shown = plain(text, 10**6)
    hidden = [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"} and c != "\t"]
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}]
    assert shown.count("⟨U+") >= len(hidden)


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    assert chips("x" * 1000, 10) == 'xxxxxxxxxx<span class="cut"> … cut, 1,000 characters in all</span>'


def test_more_than_three_marks_on_a_letter_become_chips() -> None:
    assert plain("a" + "\u0301" * 5) == "a\u0301\u0301\u0301⟨U+0301⟩⟨U+0301⟩"
