"""`probe --kind pinned`: cudaHostAlloc through a stand-in for libcudart that really allocates and locks, and its failures."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kills import lab

from postmortem.probing import cuda

LIMIT = 256 * lab.MIB
PROBE = [sys.executable, "-m", "postmortem", "probe", "--json", "--kind", "pinned"]
SOURCE = Path(__file__).with_name("fake_cudart.c")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the stand-in of libcudart")
    folder = tmp_path_factory.mktemp("cuda")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libcudart.so.12", SOURCE], check=True, timeout=60)
    return folder


def _run(library: Path, *before: str, **settings: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library), **{k: str(v) for k, v in settings.items()}}
    return subprocess.run([*before, *PROBE], check=False, capture_output=True, text=True, timeout=60, env=environment)


@pytest.mark.cgroup
def test_pinned_memory_is_allocated_up_to_the_limit_and_charged_as_shared(library):
    try:
        with lab.alone(), lab.group(LIMIT) as group:
            done = _run(library, "sh", "-c", 'echo 0 > "$0"; exec "$@"', str(group.path / "cgroup.procs"))
    except lab.NoLabError as reason:
        pytest.skip(str(reason))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (measured,) = found["measured"]
    assert (measured["kind"], measured["stopped"]) == ("pinned", "short_of_limit")
    # 8 MiB are the context's, and what was used before is not there to be allocated.
    assert measured["allocatable"] == pytest.approx(found["headroom"] - 8 * lab.MIB, abs=0.03 * LIMIT)
    assert measured["charged_shared"] == pytest.approx(measured["allocatable"], abs=0.01 * LIMIT)
    assert measured["process"] >= 8 * lab.MIB
    assert measured["overhead"] >= measured["process"]


def test_out_of_memory_of_the_library_ends_it_with_what_there_was(library):
    done = _run(library, FAKE_MOST=100 * lab.MIB)
    assert done.returncode == 0, done.stderr
    (measured,) = json.loads(done.stdout)["measured"]
    assert measured["stopped"] == "refused"
    assert measured["reason"] == "cudaHostAlloc: out of memory (error 2)"
    assert 96 * lab.MIB <= measured["allocatable"] <= 100 * lab.MIB


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"FAKE_DEVICES": 0}, "cudaGetDeviceCount: no CUDA-capable device is detected (error 100)"),
        ({"FAKE_CONTEXT": 46}, "cudaFree(0): fake failure (error 46)"),
    ],
)
def test_it_is_refused_with_the_libraries_reason(library, settings, words):
    done = _run(library, **settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "--kind shared" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_the_library_it_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "_candidates", lambda: [str(tmp_path / "libcudart.so.12")])
    with pytest.raises(cuda.CudaError, match="no CUDA runtime library"):
        cuda.pinned_allocator()


def test_a_library_that_is_none_is_named(tmp_path, monkeypatch):
    file = tmp_path / "libcudart.so.12"
    file.write_text("not a library")
    monkeypatch.setattr(cuda, "_candidates", lambda: [str(file)])
    with pytest.raises(cuda.CudaError, match=r"cannot be loaded: .*libcudart\.so\.12"):
        cuda.pinned_allocator()
