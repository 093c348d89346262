"""One-line endings: pattern, what it means, and a sample line that is its test.

Patterns begin at the line's beginning (after log heads are taken off), so that prose, source code and messages that
merely mention an ending do not match. Rust's and Python's regex both read them.
Not read: lines in which a watchdog guesses ("possible OOM").
"""

import dataclasses
import re

__all__ = ["RULES", "SIGNALS", "Rule"]

SIGNALS = {
    "HUP": 1,
    "INT": 2,
    "QUIT": 3,
    "ILL": 4,
    "TRAP": 5,
    "ABRT": 6,
    "IOT": 6,
    "BUS": 7,
    "FPE": 8,
    "KILL": 9,
    "SEGV": 11,
    "PIPE": 13,
    "TERM": 15,
}


@dataclasses.dataclass(frozen=True)
class Rule:
    """A pattern with groups from {code, signal, name, pid, cmd} and what its line means."""

    what: str
    by: str
    pattern: re.Pattern[str]
    sample: str
    signal: int | None = None


def _rule(what: str, by: str, pattern: str, sample: str, signal: int | None = None) -> Rule:
    return Rule(what, by, re.compile(pattern), sample, signal)


# `[benchmark] `, `[2026-02-12 17:23:40] `, `2026-03-03T14:02:11Z `; the parser reads the time from it.
_TAG = r"^(?:\[[^\]]{1,40}\]\s*)?"
_JOB = r"^(?:[\w./~-]+: (?:line )?\d+:\s+(?P<pid>\d+) )"
_CORE = r"(?:\s+\(core dumped\)\s*|\s{2,}|\s*$)"
_CMD = r"(?P<cmd>.*)$"
_PROMPT = r"^(?:[\w.@~:/\[\]() -]{0,60}\$ |[\w.-]+@[\w.-]+:\S*# |\++ )(?:sudo )?"


def _job(what: str, word: str, signal: int, sample: str) -> tuple[Rule, ...]:
    """A shell's message for a job that a signal ended: script, interactive, bare."""
    return (
        _rule(what, "shell", rf"{_JOB}{word}{_CORE}{_CMD}", f"./run.sh: line 212:  1877 {sample}", signal),
        _rule(what, "shell", rf"^\[\d+\][+-]?\s+(?:(?P<pid>\d+) )?{word}{_CORE}{_CMD}", f"[1]+  {sample}", signal),
        _rule(what, "shell", rf"^(?:zsh|bash|sh|fish): {word.lower()}{_CORE}{_CMD}", f"zsh: {sample.lower()}", signal),
    )


def _bare(what: str, word: str, signal: int) -> Rule:
    return _rule(what, "shell", rf"^{word}(?: \(core dumped\))?$", word, signal)


_SHELL = (
    *_job("killed_message", "Killed", 9, "Killed                  cuzk-daemon"),
    *_job("segfault", "Segmentation fault", 11, "Segmentation fault      (core dumped) cuzk-daemon"),
    *_job("abort", "Aborted", 6, "Aborted                 (core dumped) cuzk-daemon"),
    *_job("bus_error", "Bus error", 7, "Bus error               cuzk-daemon"),
    *_job("illegal_instruction", "Illegal instruction", 4, "Illegal instruction     cuzk-daemon"),
    *_job("stop_request", "Terminated", 15, "Terminated              cuzk-daemon"),
    _bare("killed_message", "Killed", 9),
    _bare("segfault", "Segmentation fault", 11),
    _bare("abort", "Aborted", 6),
    _bare("bus_error", "Bus error", 7),
    _rule(
        "operator_kill",
        "shell",
        _PROMPT + r"kill (?:-s )?-?(?P<signal>9|KILL|SIGKILL|15|TERM|SIGTERM|6|ABRT|11|SEGV) (?P<pid>\d+)",
        "$ kill -9 1877",
    ),
    _rule("operator_kill", "shell", _PROMPT + r"kill (?P<pid>\d+)\s*$", "$ kill 1877", 15),
    _rule(
        "operator_kill",
        "shell",
        _PROMPT + r"(?:pkill|killall)(?: -(?P<signal>9|KILL|SIGKILL|15|TERM|SIGTERM))?(?: -f)? (?P<name>[\w.-]+)",
        "$ pkill -9 cuzk-daemon",
    ),
)

_CODE = r"(?P<code>-?\d{1,3})\b"
_DAEMON = (
    r"(?:the )?(?P<name>[\w.-]*(?:[Dd]aemon|server|process|engine|prover)[\w.-]*)(?: \(?pid[ =:]?(?P<pid>\d+)\)?)?"
)
_EXITS = (
    _rule(
        "exit_code",
        "daemon",
        rf"{_TAG}{_DAEMON} (?:has )?(?:exited|died|terminated|stopped)(?: unexpectedly)?,? \(?(?:with )?(?:exit )?(?:code|status)[ =:]+{_CODE}",
        "[benchmark] daemon exited with code 137",
    ),
    _rule(
        "signal",
        "daemon",
        rf"{_TAG}{_DAEMON} (?:was )?(?:killed|terminated|died) (?:by|with|on) signal (?P<signal>\d+|SIG[A-Z]+)",
        "[benchmark] daemon killed by signal 9",
    ),
    _rule(
        "exit_code",
        "wrapper",
        rf"{_TAG}(?:phase|step|run|batch|bench\w*|script|command|cmd|job|attempt|client)\b[^(]{{0,60}}?(?:\((?:exit(?: code| status)?|rc)[ =:]+|(?:exited|failed|died|finished) with (?:exit )?(?:code|status)[ =:]+|exit (?:code|status)[ =:]+){_CODE}",
        "[2026-01-15 06:03:06] phase failed (exit code 0), see log",
    ),
    _rule(
        "exit_code",
        "wrapper",
        rf"^(?:exit(?:ed)?[ _]?(?:code|status)?|EXIT(?:[ _](?:CODE|STATUS))?|rc)\s*[:=]\s*{_CODE}\s*$",
        "exit code: 137",
    ),
    _rule(
        "stop_request",
        "wrapper",
        rf"{_TAG}(?:received|caught|got) (?P<signal>SIG(?:TERM|INT|HUP|QUIT))\b.{{0,80}}$",
        "[benchmark] received SIGTERM, stopping daemon",
    ),
    _rule(
        "stop_request",
        "runtime",
        rf"{_TAG}.{{0,60}}(?:spot (?:instance )?(?:interruption|termination)(?: notice| warning)?|(?:instance|VM|node) (?:will be|is being) (?:preempted|evicted|terminated)|preemption notice)\b.{{0,120}}$",
        "[agent] spot instance interruption notice: terminate at 2026-03-03T14:04:00Z",
    ),
)

_PROGRAM = (
    _rule(
        "panic",
        "daemon",
        r"^thread '(?P<name>.*?)' (?:\(\d+\) )?panicked at ",
        "thread 'tokio-runtime-worker' panicked at src/engine.rs:1432:41:",
    ),
    _rule(
        "abort",
        "daemon",
        r"^(?:memory allocation of \d+ bytes failed|fatal runtime error: )",
        "memory allocation of 34359738368 bytes failed",
    ),
    _rule(
        "panic",
        "daemon",
        r"^(?:panic: |fatal error: (?:runtime|out of memory|concurrent|all goroutines|stack)|runtime: out of memory: |SIG[A-Z]+: .*\bPC=0x)",
        "panic: runtime error: index out of range [3] with length 3",
    ),
    _rule("panic", "daemon", r"^Traceback \(most recent call last\):$", "Traceback (most recent call last):"),
    _rule(
        "panic",
        "daemon",
        r"^Exception in thread \"(?P<name>[^\"]+)\" [\w.$]+(?:: |$)",
        'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
    ),
    _rule(
        "panic",
        "daemon",
        r"^# (?:A fatal error has been detected by the Java Runtime Environment:|There is insufficient memory for the Java Runtime Environment to continue)",
        "# A fatal error has been detected by the Java Runtime Environment:",
    ),
    _rule(
        "abort",
        "daemon",
        r"^Terminating due to java\.lang\.OutOfMemoryError",
        "Terminating due to java.lang.OutOfMemoryError: Java heap space",
    ),
    _rule(
        "abort",
        "daemon",
        r"^(?:terminate called (?:after throwing an instance of|without an active exception|recursively)|libc\+\+abi: terminating)",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        6,
    ),
    _rule(
        "abort",
        "daemon",
        r"^(?:\S+: )?\S+:\d+: .{1,300}: Assertion [`'].*' failed\.",
        "cuzk: pool.cpp:42: void f(): Assertion `n > 0' failed.",
        6,
    ),
    _rule(
        "abort",
        "daemon",
        r"^(?:free\(\): |double free or corruption|malloc\(\): |corrupted (?:size|double-linked)|munmap_chunk\(\): |\*\*\* stack smashing detected)",
        "free(): invalid pointer",
        6,
    ),
    _rule(
        "segfault",
        "daemon",
        r"^==\d+==ERROR: AddressSanitizer: SEGV|^\*\*\* (?:SIGSEGV|Process received signal)",
        "*** SIGSEGV received at time=1772546531 on cpu 3 ***",
        11,
    ),
)

_ERROR = r"^(?:\[[^\]]{1,40}\]\s*)?(?:[Ee]rror: |ERROR:? |fatal: |FATAL:? |E\d{4} .*\] )?"
_DEVICE = (
    _rule(
        "cuda_oom",
        "daemon",
        rf"{_ERROR}(?:CUDA error: |RuntimeError: CUDA error: |cuda\w+ failed: |CUDA driver error: )?(?:out of memory \(2\)|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation)",
        "CUDA error: out of memory (2)",
    ),
    _rule(
        "cuda_oom",
        "daemon",
        r"^(?:RuntimeError: |CUDA error: )?out of memory(?: \(2\))?$|^(?:RuntimeError: |CUDA error: |Error: CUDA error: )out of memory",
        "RuntimeError: out of memory",
    ),
    _rule(
        "cuda_oom",
        "daemon",
        r"^(?:[\w.]*(?:OutOfMemoryError|RuntimeError): )?CUDA out of memory\. Tried to allocate ",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.65 GiB",
    ),
    _rule(
        "cuda_error",
        "daemon",
        rf"{_ERROR}(?:RuntimeError: )?CUDA error:? (?P<code>\d{{1,4}}): ",
        "CUDA error 700: an illegal memory access was encountered",
    ),
    _rule(
        "cuda_error",
        "daemon",
        rf"{_ERROR}(?:RuntimeError: )?CUDA error: (?:.{{3,160}} \((?P<code>\d{{1,4}})\)|an? [a-z].{{3,160}}|[a-z].{{3,160}})$",
        "CUDA error: an illegal memory access was encountered (700)",
    ),
    _rule(
        "no_space",
        "daemon",
        rf"{_ERROR}(?:.{{0,160}}: )?(?:\[Errno 28\] )?No space left on device(?: \(os error 28\)|: .{{0,200}})?$",
        "Error: No space left on device (os error 28)",
    ),
    _rule(
        "memlock",
        "daemon",
        rf"{_ERROR}.{{0,160}}(?:RLIMIT_MEMLOCK|memlock limit|mlock(?:all|2)?\(?\)? failed|io_uring_(?:setup|register\w*|queue_init)\b.{{0,80}}(?:Cannot allocate memory|ENOMEM)|ibv_reg_mr\b.{{0,80}}(?:Cannot allocate memory|ENOMEM)).{{0,160}}$",
        "error: io_uring_setup failed: Cannot allocate memory (os error 12)",
    ),
)

_TRANSPORT = r"(?:transport error|broken pipe|[Bb]roken pipe|[Cc]onnection refused|[Cc]onnection reset|h2 protocol error|connection error|stream closed|error reading a body from connection|tcp connect error|error trying to connect|Unavailable)"
_CLIENT = (
    _rule(
        "client_timeout",
        "client",
        r"^(?:Error: |\s*\d+: )?(?:status: (?:DeadlineExceeded|Cancelled), message: .*(?:Timeout|timeout|[Dd]eadline)|status: DeadlineExceeded|Timeout expired|deadline has elapsed|operation timed out)",
        'Error: status: DeadlineExceeded, message: "Timeout expired"',
    ),
    _rule(
        "client_error",
        "client",
        rf"^(?:Error: |\s*\d+: )(?:status: \w+, message: \".*{_TRANSPORT}|{_TRANSPORT})",
        "Error: transport error",
    ),
    _rule("client_error", "client", r"^Error: [A-Z]\w* RPC failed", "Error: Prove RPC failed"),
    _rule(
        "client_error",
        "client",
        r"^(?:ssh: |client_loop: |kex_exchange_identification: |packet_write_wait: )?(?:connect to (?:host|address) \S+(?: port \d+)?: Connection (?:refused|timed out)|send disconnect: Broken pipe|Connection (?:reset|closed) by (?:peer|remote host)|Connection to \S+ closed(?: by remote host)?)",
        "ssh: connect to host 10.0.0.7 port 22: Connection refused",
    ),
)

_UNIT = r"^(?P<name>[\w@.\\:-]+\.(?:service|scope|slice)): "
_SYSTEMD = (
    _rule(
        "signal",
        "runtime",
        rf"{_UNIT}(?:Main|Control) process exited, code=(?:killed|dumped), status=(?P<signal>\d+)/[A-Z0-9]+",
        "cuzk.service: Main process exited, code=killed, status=9/KILL",
    ),
    _rule(
        "exit_code",
        "runtime",
        rf"{_UNIT}Main process exited, code=exited, status=(?P<code>\d+)",
        "cuzk.service: Main process exited, code=exited, status=101/n/a",
    ),
    _rule(
        "unit_oom", "runtime", rf"{_UNIT}Failed with result 'oom-kill'", "cuzk.service: Failed with result 'oom-kill'."
    ),
    _rule(
        "unit_oom",
        "runtime",
        rf"{_UNIT}(?:A|The main) process of this unit has been killed by the OOM killer",
        "cuzk.service: A process of this unit has been killed by the OOM killer.",
    ),
    _rule(
        "unit_oom",
        "runtime",
        rf"{_UNIT}systemd-oomd killed \d+ process\(es\) in this unit",
        "cuzk.service: systemd-oomd killed 23 process(es) in this unit.",
    ),
    _rule(
        "unit_failed",
        "runtime",
        rf"{_UNIT}Failed with result '(?:signal|core-dump|exit-code|timeout|watchdog)'",
        "cuzk.service: Failed with result 'signal'.",
    ),
    _rule("unit_oom", "runtime", r"^Result=oom-kill$", "Result=oom-kill"),
    _rule(
        "stop_request",
        "runtime",
        r"^Stopping (?P<name>[\w@.-]+\.service) - ",
        "Stopping cuzk.service - Proving daemon...",
    ),
)

_RUNTIME = (
    _rule(
        "container_exit",
        "runtime",
        r"^(?:\S+ )?container die [0-9a-f]{12,64} \((?:.*, )?exitCode=(?P<code>\d+)(?:, .*?name=(?P<name>[^,)]+))?.*\)",
        "2026-03-03T14:02:11.123456789Z container die 3f1c9a3f1c9a (execDuration=51, exitCode=137, image=cuzk:1, name=cuzk)",
    ),
    _rule(
        "oom_event",
        "runtime",
        r"^(?:\S+ )?container oom [0-9a-f]{12,64} \((?:.*?name=(?P<name>[^,)]+))?.*\)",
        "2026-03-03T14:02:11.123456789Z container oom 3f1c9a3f1c9a (image=cuzk:1, name=cuzk)",
    ),
    _rule(
        "operator_kill",
        "runtime",
        r"^(?:\S+ )?container kill [0-9a-f]{12,64} \((?:.*?name=(?P<name>[^,)]+))?.*?signal=(?P<signal>\d+).*\)",
        "2026-03-03T14:02:11.123456789Z container kill 3f1c9a3f1c9a (image=cuzk:1, name=cuzk, signal=9)",
    ),
    _rule(
        "oom_event",
        "runtime",
        r"^time=\"[^\"]+\" level=\w+ msg=\"TaskOOM event ",
        'time="2026-03-03T14:02:11.123456789Z" level=info msg="TaskOOM event container_id:\\"3f1c\\""',
    ),
    _rule(
        "container_exit",
        "runtime",
        r"^time=\"[^\"]+\" level=\w+ msg=\"TaskExit event .*exit_status:(?P<code>[1-9]\d*)",
        'time="2026-03-03T14:02:11.123456789Z" level=info msg="TaskExit event container_id:\\"3f1c\\" pid:1877 exit_status:137"',
    ),
    _rule(
        "system_oom",
        "runtime",
        r"^(?:\s*Warning\s+SystemOOM\s.*)?System OOM encountered, victim process: (?P<name>.+?), pid: (?P<pid>\d+)",
        "System OOM encountered, victim process: cuzk-daemon, pid: 1877",
    ),
    _rule(
        "system_oom",
        "runtime",
        r"^\s*Warning\s+SystemOOM\s.*victim process: (?P<name>.+?), pid: (?P<pid>\d+)",
        "  Warning  SystemOOM  2m  kubelet  System OOM encountered, victim process: cuzk-daemon, pid: 1877",
    ),
    _rule(
        "system_oom",
        "runtime",
        r"^\s*Warning\s+OOMKilling\s.*Killed process (?P<pid>\d+) \((?P<name>.*?)\)",
        "  Warning  OOMKilling  2m  kernel-monitor  Memory cgroup out of memory: Killed process 1877 (cuzk-daemon)",
    ),
    _rule(
        "stop_request",
        "runtime",
        r"^\s*(?:Normal\s+Killing\s.*)?(?:Container (?P<name>[\w.-]+) failed (?:liveness|startup) probe, will be restarted)",
        "  Normal  Killing  2m  kubelet  Container cuzk failed liveness probe, will be restarted",
    ),
    _rule(
        "stop_request",
        "runtime",
        r"^\s*Normal\s+Killing\s.*Stopping container (?P<name>[\w.-]+)",
        "  Normal  Killing  2m  kubelet  Stopping container cuzk",
    ),
    _rule(
        "slurm_oom",
        "runtime",
        r"^slurmstepd: error: (?:Detected \d+ oom[-_]kill event|\S+ .*\boom-kill event)",
        "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=77.batch. Some of your processes may have been killed by the cgroup out-of-memory handler.",
    ),
)

RULES = (*_SHELL, *_EXITS, *_PROGRAM, *_DEVICE, *_CLIENT, *_SYSTEMD, *_RUNTIME)
