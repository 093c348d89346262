"""Processes from /proc: a process's descendants, and the resident memory of each by kind, in kB as the kernel prints it."""

from pathlib import Path

from postmortem.recording.files import pairs, text

__all__ = ["COLUMNS", "SHARE_COLUMNS", "alive", "has_memory", "memory", "name", "shares", "tree"]

COLUMNS = ("VmRSS", "VmHWM", "RssAnon", "RssFile", "RssShmem", "VmPTE", "VmLck", "VmPin", "VmSwap")
SHARE_COLUMNS = {
    "pss_kb": "Pss",
    "pss_anon_kb": "Pss_Anon",  # the kinds: 5.9 and later
    "pss_file_kb": "Pss_File",
    "pss_shmem_kb": "Pss_Shmem",
    "swap_pss_kb": "SwapPss",
}
_PROC = Path("/proc")


def alive(pid: int) -> bool:
    """Whether the process runs: a zombie has given its memory back."""
    after_name = text(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return bool(after_name) and after_name[0] not in {"Z", "X"}


def has_memory(pid: int) -> bool:
    """Whether it still has what it will be killed for: kernel threads and the dead have no memory."""
    return text(_PROC / str(pid) / "statm").partition(" ")[0] not in {"", "0"}


def name(pid: int) -> str:
    """The command's name as the kernel keeps it (15 characters), without what would break a CSV cell."""
    found = text(_PROC / str(pid) / "comm").strip()
    return "".join(letter if letter.isprintable() and letter not in ',"' else "_" for letter in found)


def tree(pid: int) -> list[int]:
    """A process and its descendants."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for task in _tasks(one):  # a child belongs to the thread that made it
            waiting += [int(child) for child in text(task / "children").split()]
    return found


def _tasks(pid: int) -> list[Path]:
    try:
        return list((_PROC / str(pid) / "task").iterdir())
    except OSError:
        return []


def memory(pid: int) -> dict[str, int]:
    """`COLUMNS` of /proc/PID/status, in kB; empty for kernel threads and processes that have gone."""
    found = pairs(_PROC / str(pid) / "status")
    return {column: found[column] for column in COLUMNS if column in found}


def shares(pid: int) -> dict[str, int]:
    """`SHARE_COLUMNS` of /proc/PID/smaps_rollup (4.14 and later), in kB; empty without the right to read it.

    The kernel walks all page tables of the process for this: milliseconds a GiB.
    """
    found = pairs(_PROC / str(pid) / "smaps_rollup")
    return {column: found[name] for column, name in SHARE_COLUMNS.items() if name in found}
