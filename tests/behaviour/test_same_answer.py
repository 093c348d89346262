"""The same evidence in another dress gives the same answer, and the same input the same bytes."""

import gzip
import json
import os
import re
import subprocess
import sys

import pytest
from behaviour.runs import BUNDLED, INCIDENT, staged

import postmortem

COLOUR = re.compile(rb"\x1b\[[0-9;]*m")
PACKED = re.compile(r"\.gz\b")


def comparable(found):
    """The JSON without what a copy in another dress must change: hashes, bytes, suffixes of compressed files."""
    result = json.loads(PACKED.sub("", found.to_json()))
    for source in result["sources"]:
        del source["sha256"], source["bytes"]
        source["path"] = source["path"].rpartition("/")[2]
    return result


@pytest.fixture
def small(tmp_path):
    """A small death with samples and kernel log, every file plain."""
    return staged(BUNDLED["misdetected-limit"], tmp_path)


def test_the_order_of_the_files_does_not_matter(small):
    files = sorted(small.iterdir())
    assert len(files) == 3
    one, other = postmortem.analyze(files), postmortem.analyze([files[2], files[0], files[1]])
    assert one.to_json() == other.to_json()
    assert one.timeline.equals(other.timeline)


def test_the_files_of_a_folder_are_the_folder(small):
    by_file, by_folder = (comparable(postmortem.analyze(given)) for given in (sorted(small.iterdir()), small))
    assert by_file.pop("name") == "run.log"
    assert by_folder.pop("name") == "misdetected-limit"
    text = json.dumps(by_file).replace(f"{small}/", "")
    assert json.loads(text) == by_folder


def test_compressed_files_are_their_contents(small):
    plain = comparable(postmortem.analyze(small))
    for file in list(small.iterdir()):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert comparable(postmortem.analyze(small)) == plain


def test_colours_say_nothing(tmp_path):
    folder = staged(BUNDLED["neighbour"], tmp_path)
    coloured = gzip.decompress((folder / "run.log.gz").read_bytes())
    assert COLOUR.search(coloured)
    (folder / "run.log.gz").unlink()
    answers = []
    for text in (coloured, COLOUR.sub(b"", coloured)):
        (folder / "run.log").write_bytes(text)
        answers.append(comparable(postmortem.analyze(folder)))
    assert answers[0] == answers[1]


def test_line_ends_of_another_system_say_nothing(small):
    plain = comparable(postmortem.analyze(small))
    log = small / "run.log"
    log.write_bytes(log.read_bytes().replace(b"\n", b"\r\n"))
    assert comparable(postmortem.analyze(small)) == plain


def test_two_analyses_give_the_same_bytes(small):
    first, second = postmortem.analyze(small), postmortem.analyze(small)
    assert first.to_json() == second.to_json()
    assert first.to_html() == second.to_html()
    assert first.to_markdown() == second.to_markdown()
    assert first.timeline.equals(second.timeline)


def test_two_processes_give_the_same_bytes():
    code = "import postmortem, sys; print(postmortem.analyze(sys.argv[1:]).to_json())"
    files = [str(INCIDENT / "run.log"), str(INCIDENT / "mem.txt")]
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, *files],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert json.loads(outputs[0])["verdict"]["cause"] == "untracked_pinned"
