"""The partitions' lives as a picture: synthesis, wait, GPU, one row a partition, those alive at the end marked."""

import datetime as dt

from markupsafe import Markup

from postmortem.result import PartitionLife
from postmortem_reports.chips import plain
from postmortem_reports.format import duration, utc
from postmortem_reports.svg import Scale, element, pct, text, time_ticks

__all__ = ["MOST_PARTITIONS", "partition_name", "partitions_svg", "shown_partitions"]

MOST_PARTITIONS = 48
"""Rows of the picture; those alive at the end come first, then the latest."""

_ROW = 17
_TOP = 6


def shown_partitions(lives: list[PartitionLife]) -> list[PartitionLife]:
    """The partitions that the page shows, in order of their start."""
    dated = [life for life in lives if _start(life) is not None]
    latest = sorted(dated, key=lambda life: (life.alive_at_end, _sort(life)))[-MOST_PARTITIONS:]
    return sorted(latest, key=_sort)


def partition_name(life: PartitionLife, most: int = 15) -> str:
    """`…22625-6 p7`: the end of the job's name tells jobs apart."""
    job = plain(life.job, 200)
    short = job if len(job) <= most else "…" + job[1 - most :]
    return short if life.partition is None else f"{short} p{life.partition}"


def partitions_svg(lives: list[PartitionLife], end: dt.datetime | None, description: str, *, killed: bool) -> Markup:
    """The picture, or nothing without partitions."""
    starts = [start for life in lives if (start := _start(life)) is not None]
    if not starts:
        return Markup("")
    ends = [moment for life in lives for moment in (life.gpu_end, life.gpu_start, life.synth_end, end) if moment]
    scale = Scale(min(starts), max([utc(moment) for moment in ends] + starts))
    bottom = _TOP + len(lives) * _ROW + 4
    rows = [part for number, life in enumerate(lives) for part in _row(life, scale, _TOP + number * _ROW)]
    mark = [] if end is None else [_end_mark(scale(end), bottom, killed=killed)]
    picture = element(
        "svg",
        element("title", description),
        *rows,
        *mark,
        *_time_axis(scale, bottom),
        class_="plot",
        width="100%",
        height=bottom + 26,
        role="img",
    )
    return _names(lives, bottom) + picture


def _end_mark(at: float, bottom: int, *, killed: bool) -> Markup:
    return element("line", x1=pct(at), x2=pct(at), y1=0, y2=bottom, class_="kill" if killed else "guide")


def _start(life: PartitionLife) -> dt.datetime | None:
    times = (life.queued, life.synth_start, life.synth_end, life.gpu_start, life.gpu_end)
    return next((utc(time) for time in times if time is not None), None)


def _sort(life: PartitionLife) -> dt.datetime:
    return (utc(life.synth_start) if life.synth_start else _start(life)) or dt.datetime.min.replace(tzinfo=dt.UTC)


def _row(life: PartitionLife, scale: Scale, y: int) -> list[Markup]:
    last = scale.end if life.alive_at_end else None
    stages = (
        ("queued", life.queued, life.synth_start),
        ("synthesis", life.synth_start, life.synth_end or last),
        ("waiting", life.synth_end, life.gpu_start or (last if life.synth_end else None)),
        ("gpu", life.gpu_start, life.gpu_end or (last if life.gpu_start else None)),
    )
    drawn: list[Markup] = []
    spoken: list[str] = []
    for name, start, end in stages:
        if start is not None and end is not None and utc(end) > utc(start):
            spoken.append(f"{name} {duration(start, end)}")
            drawn.append(_stage(name, scale(start), scale(end), y, alive=life.alive_at_end))
    return [element("g", element("title", f"{partition_name(life, 40)}: {', '.join(spoken)}"), *drawn)]


def _stage(name: str, start: float, end: float, y: int, *, alive: bool) -> Markup:
    """A stage's bar; waiting in the queue holds no memory and is only a thin line."""
    top, height = (y + 6, 3) if name == "queued" else (y + 2, _ROW - 5)
    css = f"stage {name}{' alive' if alive and name != 'queued' else ''}"
    return element("rect", x=pct(start), width=pct(max(end - start, 0.002)), y=top, height=height, class_=css)


def _names(lives: list[PartitionLife], bottom: int) -> Markup:
    drawn = [
        text(
            "100%", _TOP + number * _ROW + 12, partition_name(life), dx=-8, text_anchor="end", class_=_name_class(life)
        )
        for number, life in enumerate(lives)
    ]
    drawn.append(text("100%", bottom + 20, "UTC", dx=-8, text_anchor="end", class_="tick unit"))
    return element("svg", *drawn, class_="axis-column", width="128", height=bottom + 26, aria_hidden="true")


def _name_class(life: PartitionLife) -> str:
    return "tick strong" if life.alive_at_end else "tick"


def _time_axis(scale: Scale, bottom: int) -> list[Markup]:
    drawn = [element("line", x1=0, x2="100%", y1=bottom, y2=bottom, class_="axis")]
    for number, (fraction, label) in enumerate(time_ticks(scale, 5)):
        anchor = "end" if fraction > 0.95 else "start" if fraction < 0.05 else "middle"
        drawn.append(
            text(pct(fraction), bottom + 20, label, text_anchor=anchor, class_=f"tick{' wide-only' * (number % 2)}")
        )
    return drawn
