"""From the tables of one run to the result: clock, replays, timeline, ending, arithmetic, verdict, survival.

The analysis knows tables and no formats; what it returns are plain values.
"""

from postmortem.analysis.analyse import analyse

__all__ = ["analyse"]
