"""Event lines in CSV that a daemon prints on stderr, with milliseconds since its start as their only clock.

    TIMELINE,109250,SYNTH_END,ps-8364-62898-1,partition=1,synth_ms=59698
    TIMELINE,410399,GPU_QUEUE,f16e5155,monolithic
    CUZK_TIMING: gpu_tid=0 ntt_msm_h_ms=812

All builds of cuzk-daemon; the prefix and the events stand in the profile. CUDA-side timing is claimed and not read.
"""

from __future__ import annotations

import re
from typing import ClassVar

import polars as pl

from postmortem_parsers.interface import Context, Head, Tables
from postmortem_parsers.profiles import Profile, Timeline
from postmortem_parsers.record_format import literal
from postmortem_parsers.records import skip

__all__ = ["TimelineParser"]

_DETAILS = {"partition": "partition", "worker": "worker"}


class TimelineParser:
    """The profile's timeline lines."""

    name: ClassVar[str] = "timeline"
    reads: ClassVar[str] = "cuzk-daemon's TIMELINE events and CUZK_TIMING lines"
    example: ClassVar[str] = "TIMELINE,414917,GPU_END,f16e5155,worker=0,partition=3,gpu_ms=4312"
    priority: ClassVar[int] = 12
    whole: ClassVar[bool] = False

    def sniff(self, head: Head) -> float:
        """They may begin anywhere in a captured file."""
        return 0.8 if head.share(re.compile(r"TIMELINE,|CUZK_TIMING:")) > 0 else 0.1

    def claim(self, lines: pl.DataFrame, context: Context) -> pl.Series:
        """Lines that begin with the profile's prefixes."""
        timeline = _timeline_of(context)
        if timeline is None:
            return pl.Series([False] * lines.height)
        prefixes = [f"{timeline.prefix},", *timeline.other]
        return lines["text"].str.contains("^(?:" + "|".join(map(literal, prefixes)) + ")")

    def parse(self, lines: pl.DataFrame, context: Context) -> Tables:
        """Rows of `work` with `offset_ms`."""
        tables, timeline = Tables(), _timeline_of(context)
        assert timeline is not None
        lines = skip(lines, _cut(lines, context), "cut at the end of the file", context)
        events = lines.filter(lines["text"].str.starts_with(f"{timeline.prefix},"))
        if events.is_empty():
            return tables
        parts = events["text"].str.splitn(",", 5).struct.unnest()
        offset = parts["field_1"].cast(pl.Int64, strict=False)
        broken = offset.is_null() | (parts["field_2"].fill_null("") == "") | parts["field_3"].is_null()
        skip(events, broken, "no `ms,event,job` behind the prefix", context)
        frame = events.select("line", source=pl.lit(context.source)).with_columns(
            parts["field_2"].replace_strict(timeline.events, default=None, return_dtype=pl.String).alias("op"),
            parts["field_3"].alias("job"),
            offset.alias("offset_ms"),
            *_details(parts["field_4"].fill_null("")),
        )
        tables.add("work", frame.filter(~broken & pl.col("op").is_not_null()))
        return tables


def _details(detail: pl.Series) -> list[pl.Series]:
    numbers = [
        detail.str.extract(rf"(?:^|,){name}=(?:Some\()?([0-9]+)").cast(pl.Int64, strict=False).alias(column)
        for name, column in _DETAILS.items()
    ]
    took = detail.str.extract(r"(?:^|,)(?:synth_ms|gpu_ms|ms)=([0-9]+)").cast(pl.Int64, strict=False).alias("ms")
    return [*numbers, took, detail.str.extract(r"(?:^|,)kind=([^,]+)").alias("proof_kind")]


def _cut(lines: pl.DataFrame, context: Context) -> pl.Series:
    return lines["line"] == (context.cut_line or 0)


def _timeline_of(context: Context) -> Timeline | None:
    assert isinstance(context.profile, Profile)
    return context.profile.timeline
