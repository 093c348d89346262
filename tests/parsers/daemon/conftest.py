import io
import pathlib
import sys

import pytest

from postmortem.reading import read
from postmortem.sources import Stream
from postmortem_parsers.plain_lines import PlainLinesParser
from postmortem_parsers.profiles import load
from postmortem_parsers.status import StatusParser
from postmortem_parsers.timeline_csv import TimelineParser
from postmortem_parsers.tracing import TracingParser

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # for tracing_formatter

OURS = [TracingParser, TimelineParser, StatusParser, PlainLinesParser]


@pytest.fixture(scope="session")
def cuzk():
    return load("cuzk")


@pytest.fixture(scope="session")
def read_text(cuzk):
    """A text or bytes through the daemon's parsers."""

    def run(text, profile=cuzk):
        data = text.encode() if isinstance(text, str) else text
        return read([Stream("run.log", io.BytesIO(data))], OURS, profile)

    return run


@pytest.fixture(scope="session")
def rows_of(read_text):
    """One table of a text, as dicts without the empty columns."""

    def run(text, table):
        rows = read_text(text).tables[table].drop("source").to_dicts()
        return [{key: value for key, value in row.items() if value is not None} for row in rows]

    return run
