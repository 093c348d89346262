"""Printed sizes become whole bytes and the size of their last digit's step."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem_parsers.samples.sizes import with_sizes

GIB = 2**30


def sizes_of(*texts, unit=1, exact=False):
    frame = pl.DataFrame({"text": list(texts)}, schema={"text": pl.String})
    frame = frame.with_columns(unit=pl.lit(unit), exact=pl.lit(exact))
    return with_sizes(frame, "text", "unit", "exact").select("value", "value_ulp").rows()


@pytest.mark.parametrize(
    ("text", "value", "step"),
    [
        ("8352785044", 8352785044, 0),
        ("40.25 GiB", 40 * GIB + GIB // 4, 10737418),
        ("342 GiB", 342 * GIB, GIB),
        ("341.5GiB", 341 * GIB + GIB // 2, 107374182),
        ("341Gi", 341 * GIB, GIB),
        ("331G", 331 * GIB, GIB),
        ("512MiB", 512 * 2**20, 2**20),
        ("12 kB", 12288, 1024),
        ("17 bytes", 17, 0),
        ("3.66360710349e+11", 366360710349, 1),
        ("18446744073709551615", 2**63 - 1, 0),
        ("max", None, None),
        ("12x", None, None),
        ("", None, None),
    ],
)
def test_a_size_is_read(text, value, step):
    assert sizes_of(text) == [(value, step)]


def test_a_column_s_unit_holds_for_bare_numbers_only():
    assert sizes_of("2", "2 MiB", unit=1024, exact=True) == [(2048, 0), (2 * 2**20, 2**20)]


@given(st.lists(st.integers(0, 2**62)))
def test_whole_bytes_are_never_rounded(values):
    assert [value for value, _ in sizes_of(*map(str, values))] == values
