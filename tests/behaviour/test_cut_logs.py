"""A log that was cut anywhere: never a crash, and never a death that reads as a finish."""

import gzip
import io
import re

import pytest
from behaviour.runs import BUNDLED, INCIDENT
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import postmortem
from postmortem.errors import PostmortemError

DEATH = (BUNDLED["misdetected-limit"] / "run.log").read_bytes()
LOAD = (BUNDLED["transient-load"] / "run.log").read_bytes()
LONG = (INCIDENT / "run.log").read_bytes()
SAMPLES = (INCIDENT / "mem.txt").read_bytes()

# Each example is a whole analysis; the examples that matter most stand by name below.
few = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def named(data, name):
    """Bytes as a file with a name."""
    file = io.BytesIO(data)
    file.name = name
    return file


def ending_of(*files):
    """How the run ended; None where nothing in it is evidence, which is one line and no crash."""
    try:
        return postmortem.analyze([named(data, name) for name, data in files]).ending.how
    except PostmortemError:
        return None


@given(st.integers(0, len(DEATH)))
@example(0)
@example(1)
@example(len(DEATH) - 1)
@few
def test_a_death_cut_at_any_byte_is_no_finish(position):
    assert ending_of(("run.log", DEATH[:position])) != "finished"


@given(st.integers(0, len(DEATH)))
@example(len(DEATH) - 2)
@few
def test_a_death_whose_beginning_is_lost_is_no_finish(position):
    assert ending_of(("run.log", DEATH[position:])) != "finished"


@given(st.integers(0, len(LOAD)))
@few
def test_a_death_logged_as_json_cut_at_any_byte_is_no_finish(position):
    assert ending_of(("run.log", LOAD[:position])) != "finished"


def after(pattern):
    """The position just behind the first match in the incident's log."""
    found = re.search(pattern, LONG)
    assert found, pattern
    return found.end()


@pytest.mark.parametrize(
    "position",
    [
        after(rb"Batch Summary ===\n"),
        after(rb"completed: +5"),
        after(rb"failed: +0\n"),
        after(rb"throughput:[^\n]*\n"),
        LONG.index(b"Phase 2"),
        after(rb"Phase 2[^\n]*\n"),
    ],
)
def test_the_incident_cut_between_its_two_phases_is_no_finish(position):
    assert ending_of(("run.log", LONG[:position]), ("mem.txt", SAMPLES)) != "finished"


@given(st.data())
@few
def test_a_compressed_log_cut_at_any_byte_is_read_as_far_as_it_goes(data):
    packed = gzip.compress(DEATH, mtime=0)
    assert ending_of(("run.log.gz", packed[: data.draw(st.integers(0, len(packed)))])) != "finished"


@given(st.integers(0, len(DEATH) - 1), st.binary(min_size=1, max_size=40))
@example(len(DEATH) // 2, b"\0" * 40)
@few
def test_junk_anywhere_in_the_log_is_no_finish(position, junk):
    assert ending_of(("run.log", DEATH[:position] + junk + DEATH[position + len(junk) :])) != "finished"


DIGITS = [found.span() for found in re.finditer(rb"\d+", DEATH)]
FIGURES = st.sampled_from([b"-1", b"0", b"9" * 19, b"9" * 400, b"1e308", b"NaN", b"", b"18446744073709551616"])


@given(
    st.lists(st.tuples(st.sampled_from(DIGITS), FIGURES), min_size=1, max_size=30, unique_by=lambda change: change[0])
)
@few
def test_figures_that_cannot_be_do_not_raise(changes):
    text = DEATH
    for (start, end), figure in sorted(changes, reverse=True):
        text = text[:start] + figure + text[end:]
    ending_of(("run.log", text))
