"""Results and timelines to draw: the incident of 342 GiB, an inconclusive death, a clean finish.

The incident's figures are those of its published truth (342.2 GiB at the end, of it 70 resident, 112 reserved and used by
live partitions, 77.5 pinned and uncovered, 82.7 overhead); between them the timeline is made up smoothly.
"""

import datetime as dt
import math

import polars as pl

from postmortem.result import (
    Arithmetic,
    Attempt,
    Basis,
    BySize,
    Cause,
    Ending,
    Evidence,
    Finding,
    Fit,
    FitTerm,
    Ladder,
    Missing,
    Part,
    PartitionLife,
    Phase,
    Pool,
    PoolCounted,
    Quantity,
    Result,
    Share,
    Source,
    Survival,
    Verdict,
    Victim,
)
from postmortem.schema import TIMELINE
from postmortem.units import GIB

START = dt.datetime(2026, 3, 19, 2, 16, 7, 519502, tzinfo=dt.UTC)
KILLED = dt.datetime(2026, 3, 19, 2, 26, 24, 19501, tzinfo=dt.UTC)
LIMIT, BUDGET = 342 * GIB, 331 * GIB
BUFFER = 4168883376  # 130,278,869 constraints × 32 bytes, rounded to the daemon's field


def gib(value: float) -> int:
    return round(value * GIB)


def q(
    best: float, low: float | None = None, high: float | None = None, basis: Basis = "derived", *lines: str
) -> Quantity:
    """A quantity in GiB."""
    return Quantity(
        low=gib(best if low is None else low),
        best=gib(best),
        high=gib(best if high is None else high),
        basis=basis,
        lines=lines,
    )


def at(seconds: float) -> dt.datetime:
    """So many seconds after the daemon's start."""
    return START + dt.timedelta(seconds=seconds)


def lives() -> list[PartitionLife]:
    """Fifty partitions of phase 1, eight at a time, and the eight that were alive at the kill."""
    made: list[PartitionLife] = []
    for number in range(50):
        wave, lane = divmod(number, 8)
        begin = 49.5 + wave * 76 + lane * 2.5
        gpu = begin + 44 + lane * 3.2
        made.append(
            PartitionLife(
                job=f"ps-{8364 + number // 10}-62898-{1 + number // 10}",
                partition=number % 10,
                circuit="porep-32g",
                attempt=1,
                queued=at(2 + wave),
                synth_start=at(begin),
                synth_end=at(begin + 34 + lane),
                gpu_start=at(gpu),
                prove_returned=at(gpu + 2.6),
                gpu_end=at(gpu + 4.4),
                pinned=wave > 0,
            )
        )
    for number in range(8):
        begin = at(562 + number * 0.25)
        made.append(
            PartitionLife(
                job="ps-3256-22625-6",
                partition=number,
                circuit="porep-32g",
                attempt=1,
                queued=at(560),
                synth_start=begin,
                synth_end=at(609 + number) if number < 2 else None,
                pinned=True,
                alive_at_end=True,
            )
        )
    return made


def incident_timeline(step: float = 1.0) -> pl.DataFrame:
    """A row every `step` seconds from the start to the kill."""
    partitions = lives()
    span = (KILLED - START).total_seconds()
    rows = [_row(second * step, span, partitions) for second in range(int(span / step) + 1)]
    return pl.DataFrame([*rows, _row(span, span, partitions)], schema=TIMELINE, orient="row")


def _row(second: float, span: float, partitions: list[PartitionLife]) -> dict[str, object]:
    moment = at(second)
    alive = [
        life
        for life in partitions
        if life.synth_start and life.synth_start <= moment and (life.gpu_end or KILLED) >= moment
    ]
    heap = sum(12.0 * min(1.0, (moment - (life.synth_start or moment)).total_seconds() / 30) for life in alive)
    in_use = 3 * sum(life.pinned is True for life in alive)
    buffers = min(24, max(in_use, 0 if second < 128 else 24))
    srs = 44 * min(1.0, max(0.0, (second - 2) / 40))
    resident = srs + (26 if second > 49 else 0)
    transient = 44 - srs if 2 < second < 42 else 0.0
    final = second >= span - 1
    overhead = 82.72 if final else 8 + 74.7 * (1 - math.exp(-second / 180)) * (1 if alive else 0.82)
    working = 112.0 if final else heap + 0.65 * in_use
    uncovered = max(0.0, buffers * BUFFER / GIB - 0.65 * in_use) if final or in_use == buffers else in_use * 2.8
    if final:
        uncovered = 77.48
    idle = (buffers - in_use) * BUFFER / GIB
    used = resident + transient + working + uncovered + idle + overhead
    if used > 341.6 and not final:  # phase 1 lived at the limit
        overhead -= used - 341.6
        used = 341.6
    cache = 0.0 if final else max(0.0, min(12.0, 341.9 - used))
    sampled = second % 5 < 1
    return {
        "time": moment,
        "attempt": 1,
        "resident": gib(resident),
        "working_set": gib(working),
        "pinned_uncovered_in_use": gib(uncovered),
        "pool_idle": gib(idle),
        "transient": gib(transient),
        "overhead": gib(overhead),
        "neighbour": 0,
        "reclaimable": gib(cache),
        "unreclaimable": gib(resident) + gib(working) + gib(uncovered) + gib(idle) + gib(transient) + gib(overhead),
        "charged": gib(min(342.0, used + cache)) if sampled or final else None,
        "limit": LIMIT,
        "budget": BUDGET,
        "reserved": gib(resident + 14 * len(alive)),
        "pool_total": buffers * BUFFER,
        "pool_in_use": in_use * BUFFER,
        "buffers_alive": buffers,
        "free_remaining": buffers - in_use,
        "live_partitions": len(alive),
        "jobs_done": sum(
            all(life.gpu_end and life.gpu_end <= moment for life in partitions[j * 10 : j * 10 + 10]) for j in range(5)
        ),
    }


EVIDENCE = [
    (
        "run.log",
        5,
        "2026-03-19T02:16:07.519506Z  INFO cuzk_core::engine: memory budget initialized total_budget_gib=331",
    ),
    (
        "run.log",
        42,
        "2026-03-19T02:16:50.019537Z  INFO cuzk_core::srs_manager: SRS loaded successfully circuit_id=porep-32g elapsed_ms=40248 budget_used_gib=44 budget_available_gib=287",
    ),
    (
        "run.log",
        45,
        "2026-03-19T02:16:57.019540Z  INFO cuzk_core::pipeline: PCE loaded from disk circuit_id=porep-32g size_gib=26 budget_used_gib=70",
    ),
    ("run.log", 1157, "[benchmark] Phase 2 (timed): 10 proofs, concurrency 4"),
    (
        "run.log",
        1233,
        "2026-03-19T02:25:30.020345Z  INFO cuzk_core::pinned_pool: pinned pool: checkout (reuse) size_gib=3.882612854242325 free_remaining=0",
    ),
    (
        "run.log",
        1238,
        'Error: status: Unknown, message: "h2 protocol error: error reading a body from connection: stream closed because of a broken pipe"',
    ),
    ("run.log", 1239, "Error: transport error"),
    ("mem.txt", 123, "02:26:22 342.0 GiB / 342 GiB"),
]


def _evidence() -> list[Evidence]:
    made: list[Evidence] = []
    for number, (source, line, text) in enumerate(EVIDENCE, 1):
        around = [(line - 2, f"{text[:28]} (a line before)"), (line - 1, "another line before"), (line, text)]
        made.append(Evidence(id=f"E{number}", source=source, line=line, text=text, around=around))
    return made


def parts() -> list[Part]:
    pool = ("run.log:1233",)
    return [
        Part(
            part="resident:srs:porep-32g",
            provision=q(44, 44, 45, "measured", "run.log:42"),
            actual=q(44, 44, 45, "measured", "run.log:42"),
            excess=q(0),
        ),
        Part(
            part="resident:pce:porep-32g",
            provision=q(26, 26, 27, "measured", "run.log:45"),
            actual=q(26, 26, 27, "measured", "run.log:45"),
            excess=q(0),
        ),
        Part(
            part="working_set",
            provision=q(112, None, None, "modelled"),
            actual=q(112, 104, 112, "modelled"),
            excess=q(0, -8, 0, "modelled"),
            note="8 live partitions, 14 GiB reserved for each",
        ),
        Part(
            part="pinned_uncovered",
            provision=q(0),
            actual=q(77.48, 74.1, 81.2, "derived", *pool),
            excess=q(77.48, 74.1, 81.2, "derived", *pool),
            note="24 buffers of 3.9 GiB, all in use",
        ),
        Part(
            part="overhead",
            provision=q(11, None, None, "derived", "run.log:5"),
            actual=q(82.72, 76, 88, "derived", "mem.txt:123"),
            excess=q(71.72, 65, 77, "derived", "mem.txt:123"),
            split={
                "allocator fragmentation": q(75, 68, 81, "derived"),
                "driver": q(6, 5, 7, "assumed"),
                "process": q(1.2, 1, 2, "assumed"),
                "page tables": q(0.52, 0.5, 0.6, "modelled"),
            },
        ),
    ]


def _causes() -> list[Cause]:
    return [
        Cause(
            cause="untracked_pinned",
            excess=q(77.48, 74.1, 81.2, "derived", "run.log:1233"),
            share=Share(low=0.49, best=0.52, high=0.55),
            evidence=[
                Finding(
                    text="All 24 buffers of the pool were checked out when the log ends: free_remaining = 0, 93.2 GiB.",
                    lines=["run.log:1233"],
                    weight=0.9,
                ),
                Finding(
                    text="Measured heap of a pinned partition: 12.0 ± 0.3 GiB. Its reservation of 14 GiB leaves 2.0 GiB for 11.6 GiB of pinned buffers.",
                    lines=["mem.txt:123"],
                    weight=0.8,
                ),
            ],
            against=[
                Finding(
                    text="The same 24 buffers were alive in phase 1, which passed at the limit.",
                    lines=["run.log:1157"],
                    weight=0.4,
                )
            ],
            advice="Count the pool in the budget. Until then set the budget to 93 GiB or less.",
        ),
        Cause(
            cause="overhead",
            excess=q(71.72, 65, 77, "derived", "mem.txt:123"),
            share=Share(low=0.45, best=0.48, high=0.51),
            evidence=[
                Finding(
                    text="82.7 GiB are left over after all known parts, 71.7 GiB more than the margin of 11 GiB.",
                    lines=["mem.txt:123", "run.log:5"],
                    weight=0.7,
                )
            ],
            against=[
                Finding(
                    text="No per-process samples: the overhead is a remainder, its kind is not measured.",
                    lines=[],
                    weight=0.3,
                )
            ],
            advice="A margin of at least 83 GiB on this build.",
        ),
    ]


def incident() -> Result:
    """Killed at the cgroup's limit at the start of phase 2; pool and overhead share the blame."""
    return Result(
        postmortem_version="0.1.0",
        name="incident-342",
        profile="cuzk",
        sources=[
            Source(
                path="run.log",
                sha256="8f0c" * 16,
                bytes=159004,
                lines=1239,
                parsers=["tracing", "timeline", "lines"],
                unmatched=31,
                unmatched_examples=[
                    "2026-03-19T02:16:10.019531Z  INFO bellperson::groth16::prover::supraseal: Synthesizing circuit took 11.39s a=58"
                ],
                clock="UTC in each tracing line; TIMELINE offsets aligned to ± 2 ms",
            ),
            Source(
                path="mem.txt",
                sha256="1b7e" * 16,
                bytes=3558,
                lines=123,
                parsers=["samples_loop"],
                unmatched=0,
                warnings=["The lines carry no date: the day was taken from run.log."],
                clock="time of day, UTC assumed, ± 5 s",
                columns=["first figure: charged memory of the cgroup", "second figure: the cgroup's limit"],
            ),
        ],
        ending=Ending(
            how="cgroup_limit_probable",
            time=KILLED,
            time_uncertainty_s=4.0,
            exit_code=None,
            signal=None,
            victim=Victim(name="cuzk-daemon", pid=None),
            evidence=[
                Finding(text="The last samples stand at 342.0 GiB of 342 GiB.", lines=["mem.txt:123"], weight=0.9),
                Finding(
                    text="The log stops without a shutdown message; the client reports a broken pipe.",
                    lines=["run.log:1238", "run.log:1239"],
                    weight=0.8,
                ),
            ],
            against=[Finding(text="There is no kernel report and no exit code that would prove it.", weight=0.5)],
            certainty="probable",
        ),
        verdict=Verdict(
            cause="untracked_pinned",
            confidence=0.82,
            summary="cuzk-daemon was probably killed by the cgroup limit of 342 GiB at 02:26:24 UTC, at the start of phase 2: "
            "77.5 GiB of pinned pool and 71.7 GiB of overhead that the budget of 331 GiB did not count used up the 149 GiB that it believed free.",
            causes=_causes(),
        ),
        arithmetic=Arithmetic(
            at=KILLED,
            limit=q(342, None, None, "measured", "mem.txt:123"),
            budget=q(331, 331, 331.99, "measured", "run.log:5"),
            margin=q(11, 10.01, 11, "derived", "mem.txt:123", "run.log:5"),
            reserved=q(182, None, None, "modelled"),
            slack=q(149, 149, 149.99, "modelled"),
            charged=q(342, 341.95, 342, "measured", "mem.txt:123"),
            reclaimable=q(0.0, 0, 0.5, "assumed"),
            unreclaimable=q(342.2, 341.5, 342.3, "derived", "mem.txt:123"),
            parts=parts(),
            excess_sum=q(149.2, 131.1, 158.2, "modelled"),
            discrepancy=q(0.2, -18.9, 9.2, "modelled"),
            fit=Fit(
                terms=[
                    FitTerm(
                        name="heap per pinned partition",
                        best=12.04 * GIB,
                        half_width=0.31 * GIB,
                        unit="GiB each",
                        meaning="the accounting assumes 1.1",
                    ),
                    FitTerm(
                        name="constant overhead",
                        best=8.2 * GIB,
                        half_width=1.4 * GIB,
                        unit="GiB",
                        meaning="there from the start",
                    ),
                ],
                samples_used=71,
                samples_as_bounds=52,
                residual_std=gib(0.8),
            ),
        ),
        pool=Pool(
            buffers_alive=24,
            buffers_in_use=24,
            free_remaining=0,
            total=q(93.18, None, None, "derived", "run.log:1233"),
            in_use=q(93.18, None, None, "derived", "run.log:1233"),
            idle=q(0),
            uncovered=q(77.48, 74.1, 81.2),
            peak=q(93.18),
            failed_checkouts=0,
            by_size=[BySize(size=BUFFER, alive=24, idle=0)],
            buffers_ever=24,
        ),
        kills=[],
        phases=[
            Phase(
                name="Phase 1 (warmup)",
                start=at(2),
                end=at(555.5),
                peak=q(341.6, None, None, "measured"),
                jobs_done=5,
                ended="complete",
                count=5,
                lines=["run.log:13"],
            ),
            Phase(
                name="Phase 2 (timed)",
                start=at(561.5),
                end=KILLED,
                peak=q(342.0, None, None, "measured"),
                jobs_done=0,
                ended="cut",
                count=10,
                lines=["run.log:1157"],
            ),
        ],
        attempts=[
            Attempt(
                number=1,
                start=START,
                end=KILLED,
                budget=q(331),
                peak=q(342),
                ending="cgroup_limit_probable",
                jobs_done=5,
                pool_peak=gib(93.18),
                analysed=True,
            )
        ],
        survival=Survival(
            safe_budget=q(165, 158, 172, "modelled"),
            margin_needed=q(177, 170, 184, "modelled"),
            ladder=[
                Ladder(budget=BUDGET, survives=False, peak=q(358, 350, 366, "modelled")),
                Ladder(budget=gib(297.9), survives=False, peak=q(351, 343, 358, "modelled")),
                Ladder(budget=gib(268.1), survives=None, peak=q(342, 335, 349, "modelled")),
                Ladder(budget=gib(241.3), survives=True, peak=q(331, 325, 338, "modelled")),
            ],
            pool_counted=PoolCounted(partitions_at_once=5, proofs_per_hour={"now": 32.5, "then": 27.0}),
            reserve=gib(6.8),
            note="First order: the largest use above the reservations that the run shows, plus a reserve of 2 % of the limit.",
        ),
        evidence=_evidence(),
        missing=[
            Missing(
                what="The kernel's report of the kill",
                why_it_matters="It would prove the ending and split the memory by kind.",
                how_to_record="journalctl -k --since '2026-03-19 02:20' > kernel.log",
            ),
            Missing(
                what="DEBUG lines of the budget",
                why_it_matters="Reservations are modelled from the profile's rules.",
                how_to_record="RUST_LOG=cuzk_core::memory=debug",
            ),
            Missing(
                what="memory.stat of the cgroup",
                why_it_matters="It would split the overhead into kernel, anonymous and shared memory.",
                how_to_record="postmortem record --cgroup /sys/fs/cgroup --every 1s",
            ),
        ],
        warnings=["mem.txt has no date: the day was taken from run.log."],
        partitions=lives(),
    )


def inconclusive() -> Result:
    """Sudden silence, no samples, no limit stated: nothing separates the causes."""
    return Result(
        postmortem_version="0.1.0",
        name="silence",
        profile="cuzk",
        sources=[Source(path="run.log", sha256="00ff" * 16, bytes=1200, lines=14, parsers=["tracing"], unmatched=2)],
        ending=Ending(
            how="unknown",
            time=None,
            time_uncertainty_s=None,
            exit_code=None,
            signal=None,
            victim=None,
            evidence=[],
            against=[],
        ),
        verdict=Verdict(
            cause="inconclusive",
            confidence=0.2,
            summary="The log of cuzk-daemon stops without a reason; neither a limit nor memory samples are at hand, so the cause cannot be told.",
            causes=[],
        ),
        arithmetic=Arithmetic(
            at=None,
            limit=None,
            budget=q(331),
            margin=None,
            reserved=None,
            slack=None,
            charged=None,
            reclaimable=None,
            unreclaimable=None,
            parts=[],
            excess_sum=None,
            discrepancy=None,
        ),
        pool=None,
        kills=[],
        phases=[],
        attempts=[],
        survival=Survival(safe_budget=None, margin_needed=None, ladder=[], pool_counted=None),
        evidence=[],
        missing=[
            Missing(
                what="The memory limit",
                why_it_matters="Without it no arithmetic is possible.",
                how_to_record="cat /sys/fs/cgroup/memory.max",
            )
        ],
        warnings=[],
    )


def finished() -> Result:
    """Phase 1 alone, in peace."""
    whole = incident()
    ending = Ending(
        how="finished",
        time=at(555.5),
        time_uncertainty_s=0.0,
        exit_code=0,
        signal=None,
        victim=None,
        evidence=[Finding(text="The daemon says that it stopped; exit code 0.", lines=["run.log:5"])],
        against=[],
        certainty="proven",
    )
    verdict = Verdict(
        cause="not_memory",
        confidence=0.98,
        summary="cuzk-daemon finished at 02:25:23 UTC after 5 proofs; memory peaked at 341.6 GiB of 342 GiB.",
        causes=[],
    )
    return Result(
        postmortem_version=whole.postmortem_version,
        name="clean",
        profile="cuzk",
        sources=whole.sources,
        ending=ending,
        verdict=verdict,
        arithmetic=whole.arithmetic,
        pool=whole.pool,
        kills=[],
        phases=whole.phases[:1],
        attempts=[],
        survival=whole.survival,
        evidence=whole.evidence,
        missing=[],
        warnings=[],
        partitions=[life for life in whole.partitions if not life.alive_at_end],
    )


def no_timeline() -> pl.DataFrame:
    return pl.DataFrame(schema=TIMELINE)
