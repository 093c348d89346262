"""The host's memory and pinned pages, from recorded files."""

import os

from postmortem.recording import host

PAGE = os.sysconf("SC_PAGE_SIZE")


def _proc(tmp_path, vmstat: str):
    (tmp_path / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 10 kB\nMemAvailable: 500 kB\nAnonPages: 7 kB\n")
    (tmp_path / "vmstat").write_text(vmstat)
    return tmp_path


def test_pinned_is_what_was_acquired_and_not_yet_released(tmp_path):
    found = host.sample(_proc(tmp_path, "nr_mlock 3\nnr_foll_pin_acquired 1000\nnr_foll_pin_released 900\n"))
    assert found["host_pinned"] == 100 * PAGE
    assert found["host_locked"] == 3 * PAGE
    assert (found["host_total"], found["host_anon"]) == (1000 << 10, 7 << 10)


def test_what_the_kernel_does_not_count_is_left_out(tmp_path):
    found = host.sample(_proc(tmp_path, "nr_mlock 3\n"))
    assert "host_pinned" not in found
    assert "host_unevictable" not in found


def test_counters_read_in_the_middle_of_a_change_give_no_negative_size(tmp_path):
    found = host.sample(_proc(tmp_path, "nr_foll_pin_acquired 900\nnr_foll_pin_released 901\n"))
    assert found["host_pinned"] == 0
