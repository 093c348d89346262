"""The task table of a kernel report, read by its header.

Headers: 2.6.36–3.x `[ pid ] uid tgid total_vm rss cpu oom_adj oom_score_adj name`, 3.x `… rss nr_ptes swapents …`,
4.1+ `… nr_ptes nr_pmds …`, 4.19+ `… pgtables_bytes swapents …`, 6.8+ `… rss rss_anon rss_file rss_shmem pgtables_bytes …`.
Sample row: `[  19762]     0 19762   692898   692103   305352     1727    385024  5603328        0             0 python3`.
Values are pages (but pgtables_bytes); names can hold blanks. A table without its header is read by its width.
"""

import dataclasses
import re

from postmortem_parsers.kernel_log.numbers import as_int

__all__ = ["TaskRow", "task_columns", "task_row"]

_ROW = re.compile(r"\[?\s*(\d{1,7})\s*\]?\s+(.*)")
_BASE = ["uid", "tgid", "total_vm", "rss"]
_BY_WIDTH = {
    7: [*_BASE, "pgtables_bytes", "swapents", "oom_score_adj"],
    8: [*_BASE, "nr_ptes", "nr_pmds", "swapents", "oom_score_adj"],
    9: [*_BASE, "nr_ptes", "nr_pmds", "nr_puds", "swapents", "oom_score_adj"],
    10: [*_BASE, "rss_anon", "rss_file", "rss_shmem", "pgtables_bytes", "swapents", "oom_score_adj"],
}
_PAGE_TABLE_PAGES = ("nr_ptes", "nr_pmds", "nr_puds")


@dataclasses.dataclass(frozen=True)
class TaskRow:
    """One task as printed: counts in pages by column name."""

    line: int
    pid: int
    name: str
    columns: dict[str, int]

    def sized(self, page_size: int) -> dict[str, int | str | None]:
        """The row for table `tasks`, in bytes."""
        get = self.columns.get

        def pages(name: str) -> int | None:
            count = get(name)
            return None if count is None else count * page_size

        table_pages = [self.columns[name] for name in _PAGE_TABLE_PAGES if name in self.columns]
        pgtables = get("pgtables_bytes", sum(table_pages) * page_size if table_pages else None)
        return {
            "line": self.line,
            "pid": self.pid,
            "tgid": get("tgid"),
            "uid": get("uid"),
            "name": self.name,
            "total_vm": pages("total_vm"),
            "rss": pages("rss"),
            "rss_anon": pages("rss_anon"),
            "rss_file": pages("rss_file"),
            "rss_shmem": pages("rss_shmem"),
            "pgtables": pgtables,
            "swap": pages("swapents"),
            "oom_score_adj": get("oom_score_adj"),
        }


def task_columns(message: str) -> list[str] | None:
    """The numeric columns between pid and name, when `message` is a table's header."""
    match = re.match(r"\[?\s*pid\s*\]?\s+(uid\s.*)\bname", message)
    return match[1].split() if match else None


def _columns_by_width(fields: list[str]) -> list[str] | None:
    """Columns of a table without header: as many as there are numbers before the name."""
    width = next((place for place, field in enumerate(fields) if not re.fullmatch(r"-?\d+", field)), len(fields))
    columns = _BY_WIDTH.get(width)
    if columns is None or width != 7:
        return columns
    # 3.x counts page-table pages where 4.19 has bytes, which come in whole pages.
    value = int(fields[4])
    return columns if value >= 4096 and value % 4096 == 0 else [*_BASE, "nr_ptes", *columns[5:]]


def task_row(message: str, line: int, columns: list[str] | None) -> TaskRow | None:
    """A table row, or None when it is cut before its name or is none."""
    match = _ROW.match(message)
    if match is None:
        return None
    fields = match[2].split()
    columns = columns if columns is not None else _columns_by_width(fields)
    if columns is None or len(fields) <= len(columns):
        return None
    numbers = [as_int(field) for field in fields[: len(columns)]]
    if any(number is None for number in numbers):
        return None
    name = match[2].split(maxsplit=len(columns))[-1].strip()
    counts = {key: number for key, number in zip(columns, numbers, strict=True) if number is not None}
    return TaskRow(line, int(match[1]), name, counts)
