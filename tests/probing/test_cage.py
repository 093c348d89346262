"""The cgroup of `--to-the-kill` in the real file system: it goes, whatever ends the probe."""

import contextlib
import subprocess
import sys

import pytest
from kills import lab

from postmortem.probing import cage
from postmortem.recording import cgroups

pytestmark = pytest.mark.cgroup
LIMIT = 64 * lab.MIB


@pytest.fixture
def group():
    try:
        with lab.alone(), lab.group(LIMIT) as made:
            if made.version == 2:
                pytest.skip("version 2: the controller is not given to children here")
            yield made
    except lab.NoLabError as reason:
        pytest.skip(str(reason))


def _folders(group: lab.Group) -> list[str]:
    return [one.name for one in group.path.iterdir() if one.is_dir()]


def test_it_has_the_limit_and_is_gone_after_an_exception(group):
    parent = cgroups.at(group.path)
    with contextlib.suppress(SystemExit), cage.cage(parent, LIMIT // 2) as made:
        assert made.group is not None
        assert made.group.limit() == LIMIT // 2
        raise SystemExit(143)
    assert _folders(group) == []


def test_what_a_killed_probe_left_is_cleared_by_the_next(group):
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    (group.path / f"postmortem-probe-{gone.pid}").mkdir()
    (group.path / "postmortem-probe-1").mkdir()  # its maker lives
    with cage.cage(cgroups.at(group.path), LIMIT):
        pass
    assert _folders(group) == ["postmortem-probe-1"]
    (group.path / "postmortem-probe-1").rmdir()
