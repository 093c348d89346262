"""Makes a Chromium available for the tests of the report, where that is possible; else says why not.

Tried in this order: one that is on PATH, the system's packages (as root), playwright's own build. Never fails:
without a browser its tests are skipped with the reason.
"""

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APT_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends")
PATIENCE_S = 600


def found() -> str | None:
    """The first Chromium on PATH."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def attempt(*command: str) -> str | None:
    """Run a command; None when it worked, else why not, in a line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    last = (done.stderr or done.stdout).strip().splitlines()[-1:]
    return None if done.returncode == 0 else f"{' '.join(command[:3])}: {''.join(last) or done.returncode}"


def from_system() -> str | None:
    """Install the distribution's package; why not, where it cannot be done."""
    if not shutil.which("apt-get"):
        return "no apt-get on this system"
    if os.geteuid() != 0:
        return "apt-get needs root"
    reason = attempt("apt-get", "update") or attempt(*APT_INSTALL, "chromium")
    return reason or (None if found() else "the package chromium brings no browser")


def from_playwright() -> str | None:
    """Download playwright's own build; why not, where it cannot be done."""
    return attempt(sys.executable, "-m", "playwright", "install", "chromium")


def main() -> None:
    """Print which browser the tests will use, or why there is none."""
    if path := found():
        print(f"browser: {path}")
        return
    reasons: list[str] = []
    for install in (from_system, from_playwright):
        reason = install()
        if reason is None:
            print(f"browser: {found() or 'chromium of playwright'}")
            return
        reasons.append(reason)
    print(f"no browser, its tests will be skipped: {'; '.join(reasons)}")


if __name__ == "__main__":
    main()
