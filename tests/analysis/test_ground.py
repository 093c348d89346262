"""Machines on which the arithmetic was not tested are named, with what may differ."""

import pytest

import postmortem

SAMPLES = "time,memory.current,memory.max,anon,swap\n" + "".join(
    f"2026-03-13T14:02:{second:02}Z,3000000000,64000000000,2000000000,{{swap}}\n" for second in range(20)
)


def warnings(tmp_path, *, host="", swap=0):
    (tmp_path / "memory.csv").write_text(SAMPLES.format(swap=swap))
    if host:
        (tmp_path / "host.txt").write_text(host)
    return " ".join(postmortem.analyze(tmp_path).result.warnings)


def test_a_plain_host_gets_none(tmp_path):
    host = "$ uname -a\nLinux gpu-01 6.8.0-45-generic #45-Ubuntu SMP PREEMPT_DYNAMIC x86_64 GNU/Linux\n"
    assert "gpu-01" not in warnings(tmp_path, host=host)
    assert "swap was in use" not in warnings(tmp_path, host=host)


@pytest.mark.parametrize(
    ("release", "says"),
    [("5.15.153.1-microsoft-standard-WSL2", "is WSL2"), ("4.4.0", "gVisor")],
)
def test_a_kernel_that_charges_otherwise_is_named(release, says, tmp_path):
    host = f"$ uname -a\nLinux box {release} #1 SMP Sun Jan 10 15:06:54 PST 2026 x86_64 GNU/Linux\n"
    assert says in warnings(tmp_path, host=host)


def test_a_gpu_that_shares_the_hosts_memory_is_named(tmp_path):
    host = (
        "$ uname -a\nLinux spark 6.11.0-1016-nvidia #16 SMP PREEMPT aarch64 GNU/Linux\n"
        "$ nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader\nNVIDIA GB10, 580.95, 122880 MiB\n"
    )
    assert "shares memory with the host" in warnings(tmp_path, host=host)


def test_swap_that_holds_something_is_named_with_its_size(tmp_path):
    assert "swap was in use (2.0 GiB)" in warnings(tmp_path, swap=2 << 30)
