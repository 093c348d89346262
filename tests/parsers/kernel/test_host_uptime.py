"""What our own warning tells people to save must be read."""

import polars as pl

from postmortem_parsers.host import HostParser
from postmortem_parsers.interface import Context, Head


def test_date_and_uptime_alone_give_the_boot_time():
    lines = ["Tue Jun  2 18:21:10 UTC 2026", "232760.84 811021.17"]
    parser = HostParser()
    assert parser.sniff(Head(lines=lines, name="uptime.txt")) > 0
    frame = pl.DataFrame({"line": [1, 2], "text": lines})
    marks = parser.parse(frame, Context(source=0, name="uptime.txt", profile=None)).get("marks")
    assert marks is not None
    # 2026-06-02 18:21:10 less 232760.84 s = 2 days, 16 h 39 min 20.84 s before.
    assert marks.row(0, named=True)["time"].isoformat() == "2026-05-31T01:41:49.160000+00:00"
