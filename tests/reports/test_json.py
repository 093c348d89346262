import datetime as dt
import json as library
import re

import jsonschema_lite
import msgspec
import pytest
from reports.hostile import mapped

from postmortem.result import Result
from postmortem_reports import json
from reports import factory

# Section 6 of the design: keys that others read.
KEYS = {
    "": "schema postmortem_version sources ending verdict arithmetic pool kills phases attempts survival evidence missing warnings",
    "sources.0": "path sha256 bytes lines parsers unmatched warnings",
    "ending": "how time time_uncertainty_s exit_code signal victim evidence against",
    "ending.victim": "name pid",
    "verdict": "cause confidence summary causes",
    "verdict.causes.0": "cause excess share for against",
    "verdict.causes.0.share": "low best high",
    "verdict.causes.0.excess": "low best high basis from",
    "arithmetic": (
        "at limit budget margin reserved slack charged reclaimable unreclaimable parts excess_sum discrepancy"
    ),
    "arithmetic.parts.0": "part provision actual excess",
    "pool": "buffers_alive buffers_in_use free_remaining total in_use idle uncovered peak failed_checkouts by_size",
    "pool.by_size.0": "size alive idle",
    "phases.0": "name start end peak jobs_done ended",
    "attempts.0": "number start end budget peak ending",
    "survival": "safe_budget margin_needed ladder pool_counted",
    "survival.ladder.0": "budget survives peak",
    "survival.pool_counted": "partitions_at_once proofs_per_hour",
    "evidence.0": "id source line text",
    "missing.0": "what why_it_matters how_to_record",
}


@pytest.fixture(scope="module")
def answer():
    return library.loads(json.render(factory.incident()))


@pytest.mark.parametrize("place", KEYS)
def test_the_keys_that_others_read_are_there(answer, place):
    value = answer
    for step in filter(None, place.split(".")):
        value = value[int(step)] if step.isdigit() else value[step]
    assert set(KEYS[place].split()) <= set(value)


def test_sizes_are_whole_bytes_and_times_iso_8601_with_z(answer):
    assert answer["arithmetic"]["limit"]["best"] == 367_219_703_808
    assert answer["ending"]["time"] == "2026-03-19T02:26:24.019501Z"
    assert re.fullmatch(r"2026-03-19T[\d:.]+Z", answer["phases"][0]["start"])


def test_a_time_in_another_zone_is_the_same_moment():
    local = factory.KILLED.astimezone(dt.timezone(dt.timedelta(hours=2)))
    result = factory.incident()
    moved = msgspec.structs.replace(result, ending=msgspec.structs.replace(result.ending, time=local))
    assert dt.datetime.fromisoformat(library.loads(json.render(moved))["ending"]["time"]) == factory.KILLED


def test_the_same_result_gives_the_same_bytes_and_reads_back_as_itself():
    result = factory.incident()
    assert json.render(result) == json.render(factory.incident())
    assert msgspec.json.decode(json.render(result), type=Result) == result
    assert json.render(result).endswith(b"}\n")


def test_a_file_name_that_is_no_utf8_does_not_stop_it():
    result = mapped(factory.finished(), lambda text: text + b"\xff".decode("utf-8", "surrogateescape"))
    assert library.loads(json.render(result))["name"] == "clean\ufffd"


@pytest.mark.parametrize("make", [factory.incident, factory.inconclusive, factory.finished])
def test_the_schema_describes_what_is_rendered(make):
    schema = library.loads(json.schema())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert jsonschema_lite.faults(library.loads(json.render(make())), schema) == []


def test_the_schema_refuses_what_is_no_result(answer):
    schema = library.loads(json.schema())
    wrong = {**answer, "ending": {**answer["ending"], "how": "bored"}, "warnings": "none"}
    del wrong["verdict"]
    assert sorted(fault.split(":")[0] for fault in jsonschema_lite.faults(wrong, schema)) == [
        *("$", "$.ending.how", "$.warnings")
    ]
