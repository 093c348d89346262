"""Each sample line of the shipped profiles gives the rows that stand beside it."""

import polars as pl
import pytest

from postmortem_parsers.profiles import load, names


def samples(kind):
    return [
        pytest.param(profile, entry, sample, id=f"{profile.name}: {sample[:80]}")
        for profile in map(load, names())
        for entry in getattr(profile, kind)
        for sample in entry.sample
    ]


def assert_gives(rows, reading, *, optional=()):
    info = reading.sources[0]
    assert (info.unmatched, info.skipped) == (0, 0), info
    for row in rows:
        frame = reading.tables[row.table]
        for column, value in row.constants().items():
            frame = frame.filter(pl.col(column) == value)
        assert frame.height >= 1, (row, reading.tables[row.table])
        empty = [column for column in row.fields if frame[column].null_count() and column not in optional]
        assert not empty, (row, frame)


@pytest.mark.parametrize(("profile", "event", "sample"), samples("event"))
def test_event_sample_gives_its_rows(profile, event, sample, read_text):
    # A sample may lack a field that other builds or spans carry: at least one of each row's fields is there.
    reading = read_text(sample + "\n", profile)
    lacking = {column for row in event.rows for column, source in row.fields.items() if not has(source, sample)}
    rows = [row for row in event.rows if not lacking & set(row.needs)]
    assert_gives(rows, reading, optional=lacking)


def has(source, sample):
    field = source.rpartition(":")[0]
    return field == "*" or f"{field}=" in sample or f'"{field}":' in sample


@pytest.mark.parametrize(("profile", "line", "sample"), samples("line"))
def test_line_sample_gives_its_rows(profile, line, sample, read_text):
    optional = {"value"} if any(row.needs for row in line.rows) else set()
    rows = [row for row in line.rows if not (row.needs and optional and row.what in {"restart", "phase_peak"})]
    assert_gives(rows, read_text(sample + "\n", profile), optional=optional)


@pytest.mark.parametrize("block", load("cuzk").block, ids=lambda block: block.begins)
def test_block_sample_gives_one_row_with_every_column(block, read_text):
    reading = read_text("\n".join(block.sample) + "\n")
    assert_gives([block.row], reading)
    assert reading.tables[block.row.table].height == 1


def test_every_known_pattern_has_a_sample():
    for name in names():
        profile = load(name)
        assert all(entry.sample for entry in (*profile.event, *profile.line, *profile.block))
