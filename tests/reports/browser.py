"""A headless Chromium for the tests of the page: the system's, else playwright's own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu"]


def chromium() -> str | None:
    """The path of a Chromium: what CHROMIUM says, else the first of the usual names."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named if Path(named).exists() else None
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@contextmanager
def browser() -> Iterator[Browser]:
    """A running browser; skips the test, with the reason, where none can be started."""
    with sync_playwright() as playwright:
        try:
            running = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        except Error as error:
            pytest.skip(f"no Chromium can be started: {error.message.splitlines()[0]}")
        try:
            yield running
        finally:
            running.close()
