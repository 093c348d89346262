"""Endings in the words of shells, wrappers, programs, clients, systemd, runtimes and OOM daemons."""

import datetime as dt

import pytest

from postmortem_parsers.endings.killers import KILLER_RULES
from postmortem_parsers.endings.rules import RULES


def ends(tables):
    frame = tables.get("ends")
    return [] if frame is None else list(frame.iter_rows(named=True))


def brief(rows):
    return [(row["what"], row["by"], row["code"], row["signal"], row["name"], row["pid"]) for row in rows]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.sample[:50])
def test_each_rules_sample_line_is_read_as_what_the_rule_says(rule, read_text):
    tables, _ = read_text(f"\n{rule.sample}\n")
    assert [(row["what"], row["by"]) for row in ends(tables)] == [(rule.what, rule.by)]


@pytest.mark.parametrize("rule", KILLER_RULES, ids=lambda rule: rule.sample[:50])
def test_each_killers_sample_line_becomes_a_kill_of_that_killer(rule, read_text):
    tables, _ = read_text(rule.sample)
    kills = tables.get("kills")
    assert kills["killer"].to_list() == [rule.killer]
    assert kills["constraint"].to_list() == ["userspace"]
    assert kills["victim"][0] in ("cuzk.service", "cuzk-daemon", "prod/cuzk-0", "cuzk")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("./benchmark.sh: line 212:  1877 Killed                  cuzk-daemon --config /etc/cuzk.toml", ("killed_message", "shell", None, 9, "cuzk-daemon", 1877)),
        ("./benchmark.sh: line 212:  1877 Segmentation fault      (core dumped) cuzk-daemon --config c", ("segfault", "shell", None, 11, "cuzk-daemon", 1877)),
        ("/usr/local/bin/b.sh: line 203: 77197 Terminated              /opt/bin/cuzk-daemon -c x", ("stop_request", "shell", None, 15, "cuzk-daemon", 77197)),
        ("x.sh: line 9:    12 Aborted                 (core dumped) RUST_LOG=info ./prover", ("abort", "shell", None, 6, "prover", 12)),
        ("x.sh: line 9:    12 Bus error               ./prover", ("bus_error", "shell", None, 7, "prover", 12)),
        ("[1]+  Killed                  ./prover --all", ("killed_message", "shell", None, 9, "prover", None)),
        ("Killed", ("killed_message", "shell", None, 9, None, None)),
        ("$ kill -9 1877", ("operator_kill", "shell", None, 9, None, 1877)),
        ("root@gpu-07:~# kill -TERM 1877", ("operator_kill", "shell", None, 15, None, 1877)),
        ("daemon exited with code 137", ("exit_code", "daemon", 137, 9, "daemon", None)),
        ("[benchmark] daemon exited with code 0", ("exit_code", "daemon", 0, None, "daemon", None)),
        ("[benchmark] daemon exited with code 137 (OOM). Reducing budget 331 -> 297 GiB, retry 1/3", ("exit_code", "daemon", 137, 9, "daemon", None)),
        ("cuzk-daemon (pid 1877) exited with status 101", ("exit_code", "daemon", 101, None, "cuzk-daemon", 1877)),
        ("[2026-01-15 06:03:06] phase failed (exit code 0), see log", ("exit_code", "wrapper", 0, None, None, None)),
        ("exit code: 137", ("exit_code", "wrapper", 137, 9, None, None)),
        ("[benchmark] received SIGTERM, stopping daemon", ("stop_request", "wrapper", None, 15, None, None)),
        ("thread 'tokio-runtime-worker' panicked at cuzk-core/src/engine.rs:1432:41:", ("panic", "daemon", None, None, "tokio-runtime-worker", None)),
        ("CUDA error: an illegal memory access was encountered (700)", ("cuda_error", "daemon", 700, None, None, None)),
        ("Mar  3 14:02:11 gpu-07 systemd[1]: cuzk.service: Main process exited, code=killed, status=9/KILL", ("signal", "runtime", None, 9, "cuzk.service", None)),
        ('Error: status: DeadlineExceeded, message: "Timeout expired"', ("client_timeout", "client", None, None, None, None)),
    ],
)  # fmt: skip
def test_a_line_gives_its_code_signal_name_and_pid(line, expected, read_text):
    tables, _ = read_text(line)
    assert brief(ends(tables)) == [expected]


def test_a_wrappers_stamp_is_local_time(read_text):
    tables, _ = read_text("[2026-02-12 17:23:40] daemon exited with code 137")
    (row,) = ends(tables)
    assert row["time"] == dt.datetime(2026, 2, 12, 17, 23, 40, tzinfo=dt.UTC)
    assert row["local_time"] is True


def test_an_error_with_its_causes_is_one_client_error(read_text):
    tables, _ = read_text(
        "Error: Prove RPC failed\n\nCaused by:\n"
        '    0: status: Unavailable, message: "error reading a body from connection", details: []\n'
        "    1: transport error\n    2: connection error\n    3: Connection reset by peer (os error 104)\n"
    )
    (row,) = ends(tables)
    assert (row["what"], row["by"], row["line"]) == ("client_error", "client", 1)
    assert "error reading a body" in row["text"]


def test_an_exit_file_with_a_signal_is_the_daemons_own_status(read_text):
    tables, _ = read_text(
        "cmd=cuzk-daemon --config c\nexit_status=137\nsignal=9\nstarted=2026-02-22T00:21:51Z\nended=2026-02-22T00:22:58.245827Z\nwall_s=67.1\n"
    )
    (row,) = ends(tables)
    assert brief([row]) == [("exit_code", "daemon", 137, 9, "cuzk-daemon", None)]
    assert row["time"] == dt.datetime(2026, 2, 22, 0, 22, 58, 245827, tzinfo=dt.UTC)


def test_an_exit_file_without_a_signal_can_be_a_masked_status(read_text):
    tables, _ = read_text("cmd=cuzk-daemon\nexit_status=0\nended=2026-01-12T00:38:09.790493Z\n")
    assert brief(ends(tables)) == [("exit_code", "wrapper", 0, None, "cuzk-daemon", None)]


DESCRIBE = """\
Containers:
  cuzk:
    Container ID:   containerd://3f1c
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       OOMKilled
      Exit Code:    137
      Started:      Tue, 03 Mar 2026 14:00:00 +0100
      Finished:     Tue, 03 Mar 2026 14:02:11 +0100
    Ready:          False
    Restart Count:  7
  sidecar:
    State:          Terminated
      Reason:       Error
      Exit Code:    137
      Finished:     Tue, 03 Mar 2026 14:05:00 +0100
    Ready:          False
"""


def test_kubectl_describe_tells_oomkilled_from_error_137(read_text):
    tables, _ = read_text(DESCRIBE, "describe.txt")
    rows = ends(tables)
    assert brief(rows) == [
        ("container_oom", "runtime", 137, 9, "cuzk", None),
        ("container_exit", "runtime", 137, 9, "sidecar", None),
    ]
    assert rows[0]["time"] == dt.datetime(2026, 3, 3, 13, 2, 11, tzinfo=dt.UTC)


POD_YAML = """\
status:
  initContainerStatuses:
  - containerID: containerd://aaaa
    name: init
    state:
      terminated:
        exitCode: 0
        finishedAt: "2026-03-03T13:00:00Z"
        reason: Completed
  containerStatuses:
  - containerID: containerd://3f1c
    lastState:
      terminated:
        containerID: containerd://3f1c
        exitCode: 137
        finishedAt: "2026-03-03T14:02:11Z"
        reason: OOMKilled
    name: cuzk
    restartCount: 1
    state:
      running:
        startedAt: "2026-03-03T14:02:20Z"
"""


def test_pod_yaml_gives_the_container_that_was_killed_not_the_init_container(read_text):
    tables, _ = read_text(POD_YAML, "pod.yaml")
    (row,) = ends(tables)
    assert brief([row]) == [("container_oom", "runtime", 137, 9, "cuzk", None)]
    assert row["time"] == dt.datetime(2026, 3, 3, 14, 2, 11, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"Status":"exited","Running":false,"OOMKilled":true,"Dead":false,"Pid":0,"ExitCode":137,"Error":"","StartedAt":"2026-01-10T22:06:16Z","FinishedAt":"2026-01-10T22:14:27Z"}', ("container_oom", 137)),
        ('{"Status":"exited","Running":false,"OOMKilled":false,"ExitCode":137,"FinishedAt":"2026-01-10T22:14:27Z"}', ("container_exit", 137)),
        ('{"Status":"exited","Running":false,"OOMKilled":false,"ExitCode":0,"FinishedAt":"2026-01-10T22:14:27Z"}', ("finished", 0)),
        ('{"Status":"running","Running":true,"OOMKilled":false,"ExitCode":0,"FinishedAt":"0001-01-01T00:00:00Z"}', None),
    ],
)  # fmt: skip
def test_docker_inspect_state(text, expected, read_text):
    tables, _ = read_text(text)
    assert [(row["what"], row["code"]) for row in ends(tables)] == ([expected] if expected else [])


INSPECT = """\
[
    {
        "Id": "3f1c9a",
        "State": {
            "Status": "exited",
            "Running": false,
            "OOMKilled": true,
            "Pid": 0,
            "ExitCode": 137,
            "FinishedAt": "2026-03-03T14:02:11.5Z"
        },
        "Name": "/cuzk",
        "RestartCount": 0
    }
]
"""


def test_docker_inspect_over_several_lines_names_the_container(read_text):
    tables, _ = read_text(INSPECT, "inspect.json")
    (row,) = ends(tables)
    assert brief([row]) == [("container_oom", "runtime", 137, 9, "cuzk", None)]
    assert row["time"] == dt.datetime(2026, 3, 3, 14, 2, 11, 500000, tzinfo=dt.UTC)


def test_systemd_oomd_names_the_killed_cgroup_and_the_one_under_pressure(read_text):
    tables, _ = read_text(
        "Mar 03 14:02:11 gpu-07 systemd-oomd[700]: Killed /system.slice/cuzk.service due to memory pressure for "
        "/system.slice being 82.11% > 60.00% for > 20s with reclaim activity\n"
        "Mar 03 14:02:11 gpu-07 systemd[1]: cuzk.service: systemd-oomd killed 23 process(es) in this unit.\n"
    )
    (kill,) = tables.get("kills").iter_rows(named=True)
    assert (kill["victim"], kill["task_memcg"], kill["oom_memcg"]) == (
        "cuzk.service",
        "/system.slice/cuzk.service",
        "/system.slice",
    )
    assert (kill["hostname"], kill["local_time"], kill["no_year"]) == ("gpu-07", True, True)
    assert brief(ends(tables)) == [("unit_oom", "runtime", None, None, "cuzk.service", None)]


def test_systemd_oomd_that_could_kill_nothing_kills_nobody(read_text):
    tables, _ = read_text(
        "Mar 03 14:02:11 gpu-07 systemd-oomd[700]: Failed to kill any cgroup(s) based on swap: No such process\n"
    )
    assert tables.get("kills") is None


def test_earlyooms_second_signal_is_not_a_second_kill(read_text):
    line = 'earlyoom: sending {} to process 1877 uid 0 "cuzk-daemon": oom_score 900, VmRSS 354321 MiB, cmdline "x"'
    tables, _ = read_text(
        "\n".join(
            f"2026-03-03T14:02:{second}Z host earlyoom[9]: {line.format(signal).removeprefix('earlyoom: ')}"
            for second, signal in ((11, "SIGTERM"), (16, "SIGKILL"))
        )
    )
    kills = tables.get("kills")
    assert kills.select("killer", "victim", "pid").rows() == [("earlyoom", "cuzk-daemon", 1877)]


def test_device_memory_is_not_host_memory(read_text):
    tables, _ = read_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has 23.65 GiB\nCUDA error: out of memory (2)\n"
    )
    assert [row["what"] for row in ends(tables)] == ["cuda_oom", "cuda_oom"]


@pytest.mark.parametrize(
    "line",
    [
        '{"log":"thread \'main\' panicked at src/main.rs:3:5:\\n","stream":"stderr","time":"2026-03-03T14:02:11.5Z"}',
        "2026-03-03T14:02:11.500000000Z stderr F thread 'main' panicked at src/main.rs:3:5:",
        "2026-03-03T14:02:11.5Z thread 'main' panicked at src/main.rs:3:5:",
    ],
)
def test_a_shipped_line_has_its_shippers_time(line, read_text):
    tables, _ = read_text(line)
    (row,) = ends(tables)
    assert (row["what"], row["name"]) == ("panic", "main")
    assert row["time"] == dt.datetime(2026, 3, 3, 14, 2, 11, 500000, tzinfo=dt.UTC)
