"""The same records in tracing's JSON format and in its full format are the same rows."""

import io
import re

import pytest
from polars.testing import assert_frame_equal

from benchmarks.generate import write
from postmortem.reading import read
from postmortem.sources import find
from postmortem_parsers.profiles import combined, load, names
from postmortem_parsers.registry import load_parsers

LINES = 4000


def tables(data):
    reading = read(find([io.BytesIO(data)]), load_parsers()[0], combined([load(name) for name in names()]))
    (source,) = reading.sources
    assert (source.lines, source.skipped, source.unmatched) == (LINES, 0, 0)
    return reading.tables


def written(path, form, seed):
    write(path, 1 << 21, share=0.6, form=form, seed=seed)
    return b"".join(path.read_bytes().splitlines(keepends=True)[:LINES])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_json_records_give_the_rows_that_the_full_format_gives(tmp_path, seed):
    plain = tables(written(tmp_path / "plain.log", "plain", seed))
    # tracing writes whole numbers without a fraction.
    whole = re.sub(rb":(-?\d+)\.0([,}])", rb":\1\2", written(tmp_path / "json.log", "json", seed))
    json = tables(whole)
    for name, table in plain.items():
        assert_frame_equal(json[name], table)
    assert plain["pool"].height > 500
