"""The line of a configuration file: one value is replaced, every other byte stays."""

import errno
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem.errors import UsageError
from postmortem.guarding.configfile import ConfigFile, find

TOML = """\
# total_budget = "1GiB" was too little
[gpu]
budget = 4
[memory]   # of the host
total_budget = "331GiB"  # see 12
pool = { max = 3 }
text = '''
'''
"""
YAML = """\
gpu:
  budget: 4
memory:
  # the host's
  total_budget: 331GiB   # see 12
  note: |
    total_budget: not this one
list:
  - name: a
    budget: 7
"""
JSON = (
    '{\n  "gpu": {"budget": 4},\n  "memory": {\n    "total_budget": "331GiB",\n    "names": ["budget", "b"]\n  }\n}\n'
)
INI = "; daemon\n[memory]\ntotal_budget = 331GiB ; see 12\n"


def _set(folder, name, text, key, value):
    file = folder / name
    file.write_bytes(text.encode())
    ConfigFile(file, key).set(value)
    return file.read_bytes().decode()


@pytest.mark.parametrize(
    ("name", "text"), [("c.toml", TOML), ("c.yaml", YAML), ("c.json", JSON), ("c.ini", INI), ("config", TOML)]
)
@pytest.mark.parametrize("key", ["total_budget", "memory.total_budget"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_one_value_is_replaced_and_all_else_stays(tmp_path, name, text, key, ends):
    text = text.replace("\n", ends)
    assert _set(tmp_path, name, text, key, "298GiB") == text.replace("331GiB", "298GiB")


@pytest.mark.parametrize(("name", "text"), [("c.toml", TOML), ("c.json", JSON)])
def test_a_word_where_a_number_was_gets_the_quotes_that_the_format_needs(tmp_path, name, text):
    parse = tomllib.loads if name.endswith("toml") else json.loads
    assert parse(_set(tmp_path, name, text, "gpu.budget", "3GiB"))["gpu"]["budget"] == "3GiB"
    assert parse(_set(tmp_path, name, text, "gpu.budget", "3"))["gpu"]["budget"] == 3


def test_a_name_that_stands_twice_needs_its_whole_path(tmp_path):
    with pytest.raises(UsageError, match=r"2 lines set 'budget'.*\(gpu\.budget, list\.budget: give the whole path\)"):
        _set(tmp_path, "c.yaml", YAML, "budget", "5")
    assert (tmp_path / "c.yaml").read_text() == YAML


def test_a_json_file_in_one_line_is_read_by_its_structure(tmp_path):
    compact = json.dumps({"a": {"budget": "1"}, "b": [{"budget": "2"}, "budget"], "budget": "3"})
    assert json.loads(_set(tmp_path, "c.json", compact, "a.budget", "9"))["a"]["budget"] == "9"
    assert [one.path for one in find(compact, "budget")] == ["a.budget", "b.budget", "budget"]


def test_a_key_that_is_not_in_the_file_is_said_and_the_file_left_alone(tmp_path):
    with pytest.raises(UsageError, match="0 lines set 'total_budget'"):
        _set(tmp_path, "c.toml", "a = 1\n", "total_budget", "1")
    assert (tmp_path / "c.toml").read_text() == "a = 1\n"


def test_rights_and_links_stay_and_nothing_lies_about(tmp_path):
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "c.toml", tmp_path / "c.toml"
    real.write_text(TOML)
    real.chmod(0o640)
    link.symlink_to(real)
    ConfigFile(link, "total_budget").set("298GiB")
    assert link.is_symlink()
    assert "298GiB" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in (tmp_path / "real").iterdir()] == ["c.toml"]


def test_what_was_there_first_is_put_back(tmp_path):
    file = tmp_path / "c.toml"
    file.write_text(TOML)
    config = ConfigFile(file, "total_budget")
    config.restore()
    for value in ("298GiB", "290GiB"):
        config.set(value)
    assert "290GiB" in file.read_text()
    config.restore()
    assert file.read_text() == TOML


def test_a_file_that_cannot_be_replaced_is_overwritten(tmp_path, monkeypatch):
    # As one that is mounted into a container by itself: rename gives EBUSY.
    def busy(*_):
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", busy)
    assert _set(tmp_path, "c.toml", TOML, "total_budget", "298GiB") == TOML.replace("331GiB", "298GiB")
    assert [one.name for one in tmp_path.iterdir()] == ["c.toml"]


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\0" * 9, b"[", b"{" * 3000, b'{"a": ', b"budget =\n", b"budget:\n"])
def test_hostile_files_are_refused_in_words(tmp_path, data):
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(UsageError):
        ConfigFile(tmp_path / "c", "budget").set("1")
    assert (tmp_path / "c").read_bytes() == data


@given(
    st.recursive(
        st.integers() | st.text(max_size=8) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
        max_leaves=8,
    )
)
def test_whatever_stands_beside_it_in_a_json_file_stays(beside):
    text = json.dumps({"x": beside, "daemon": {"total_budget": "331GiB"}, "y": beside})
    (one,) = find(text, "daemon.total_budget")
    changed = json.loads(text[: one.start] + '"1"' + text[one.end :])
    assert changed == {"x": beside, "daemon": {"total_budget": "1"}, "y": beside}
