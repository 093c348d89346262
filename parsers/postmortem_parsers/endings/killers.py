"""Userland OOM daemons: systemd-oomd, earlyoom, Meta's oomd, nohang, and kubelet's eviction.

Samples: `Killed /system.slice/a.service due to memory pressure for /system.slice being 82.11% > 60.00% …`,
`sending SIGTERM to process 1877 uid 0 "cuzk-daemon": oom_score 900, …`. Not read: their periodic status lines.
A line that says that nothing could be killed gives no row; the cgroup under pressure is not the one that was killed.
"""

import dataclasses
import re

__all__ = ["KILLER_RULES", "KillerRule"]


@dataclasses.dataclass(frozen=True)
class KillerRule:
    """A pattern with groups from {victim, pid, uid, killed, pressed}."""

    killer: str
    pattern: re.Pattern[str]
    sample: str


def _rule(killer: str, pattern: str, sample: str) -> KillerRule:
    return KillerRule(killer, re.compile(pattern), sample)


KILLER_RULES = (
    _rule(
        "systemd-oomd",
        r"^Killed (?P<killed>/\S+) due to memory pressure for (?P<pressed>/\S*) being ",
        "Killed /system.slice/cuzk.service due to memory pressure for /system.slice being 82.11% > 60.00% for > 20s with reclaim activity",
    ),
    _rule(
        "systemd-oomd",
        r"^Killed (?P<killed>/\S+) due to memory used \(\d+\) / total \(\d+\) and swap used ",
        "Killed /system.slice/cuzk.service due to memory used (128849018880) / total (137438953472) and swap used (9663676416) / total (10737418240) being more than 90.00%",
    ),
    _rule(
        "earlyoom",
        r"^(?:earlyoom: )?sending SIG(?:TERM|KILL) to process (?P<pid>\d+)(?: uid (?P<uid>\d+))? \"(?P<victim>.*?)\": (?:oom_score|badness) ",
        'sending SIGTERM to process 1877 uid 0 "cuzk-daemon": oom_score 900, oom_score_adj 0, VmRSS 354321 MiB, cmdline "cuzk-daemon"',
    ),
    _rule(
        "oomd",
        r"^.{0,60}?oomd kill: [\d.]+ [\d.]+ [\d.]+ (?P<killed>\S+) \d+ ruleset:",
        "oomd kill: 12.30 8.10 2.00 system.slice/cuzk.service 366503875584 ruleset:[protect] detectorgroup:[mem] killer:kill_by_memory_size_or_growth v2",
    ),
    _rule(
        "nohang",
        r"^(?:\[[^\]]+\]\s*)?(?:Sending|Send) SIG(?:TERM|KILL) to (?:the victim )?(?:process )?(?P<victim>[^\s,]+) \[?\(?(?:PID:? ?)?(?P<pid>\d+)\]?\)?",
        "Sending SIGTERM to cuzk-daemon [1877]",
    ),
    _rule(
        "nohang",
        r"^(?:\[[^\]]+\]\s*)?(?:Found a victim|Process with highest badness) \(found in [\d.]+ ms\):?\s*PID: (?P<pid>\d+), [Nn]ame: (?P<victim>.+?), ",
        "Process with highest badness (found in 12 ms): PID: 1877, Name: cuzk-daemon, badness: 900",
    ),
    _rule(
        "kubelet",
        r"^(?:[EIW]\d{4} \S+\s+\d+ eviction_manager\.go:\d+\] )?\"?Eviction manager: pod is evicted successfully\"? pod=\"(?P<victim>[^\"]+)\"",
        'I0303 14:02:11.123456    1234 eviction_manager.go:626] "Eviction manager: pod is evicted successfully" pod="prod/cuzk-0"',
    ),
    _rule(
        "kubelet",
        r"^\s*(?:Warning\s+Evicted\s.*)?The node was low on resource: memory\. .*?[Cc]ontainer (?P<victim>[\w.-]+) was using ",
        "  Warning  Evicted  2m  kubelet  The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container cuzk was using 354Gi, request is 0, has larger consumption of memory.",
    ),
)
