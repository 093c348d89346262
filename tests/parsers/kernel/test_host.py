"""Host descriptions become marks."""

import datetime as dt

TEXT = """\
$ uname -a
Linux gpu-host-38 6.11.0-26-generic #26~24.04.1-Ubuntu SMP PREEMPT_DYNAMIC Thu Apr 17 19:20:47 UTC 2 x86_64 x86_64 x86_64 GNU/Linux
$ nproc
48
$ date -u; cat /proc/uptime; grep btime /proc/stat
Tue Jun  2 18:21:10 UTC 2026
232760.84 811021.17
btime 1780191709
$ head -3 /proc/meminfo
MemTotal:       1056441344 kB
MemFree:        570478325 kB
MemAvailable:   665558046 kB
$ cat /sys/fs/cgroup/memory.max
550290587648
$ nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
NVIDIA GeForce RTX 5090, 570.133.07, 32607 MiB
"""


def test_a_description_gives_kernel_boot_memory_limit_and_gpu(read_text):
    tables, context = read_text(TEXT, "host.txt")
    marks = tables.get("marks")
    assert marks.select("what", "value").rows() == [
        ("kernel_version", None),
        ("boot_time", None),
        ("host_total_stated", 1056441344 * 1024),
        ("limit_stated", 550290587648),
        ("gpu", None),
    ]
    assert marks["time"][1] == dt.datetime(2026, 5, 31, 1, 41, 49, tzinfo=dt.UTC)
    assert context.skipped == []


def test_without_btime_the_boot_is_the_clock_less_the_uptime(read_text):
    tables, _ = read_text(TEXT.replace("btime 1780191709\n", ""), "host.txt")
    marks = tables.get("marks")
    (boot,) = marks.filter(marks["what"] == "boot_time")["time"].to_list()
    assert boot == dt.datetime(2026, 5, 31, 1, 41, 49, 160000, tzinfo=dt.UTC)


def test_no_limit_is_no_mark(read_text):
    tables, _ = read_text(TEXT.replace("550290587648", "max"), "host.txt")
    assert "limit_stated" not in tables.get("marks")["what"].to_list()


def test_a_loop_of_meminfo_is_left_to_the_samples(read_text):
    tables, _ = read_text(
        "Tue Jun  2 18:21:10 UTC 2026\nMemTotal: 1 kB\nTue Jun  2 18:21:15 UTC 2026\nMemTotal: 1 kB\n", "mem.txt"
    )
    assert tables.names() == []
