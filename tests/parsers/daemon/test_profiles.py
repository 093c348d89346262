"""Profiles: what a mistake in one says, and the constants of cuzk's memory model."""

import pytest

from postmortem.errors import UsageError
from postmortem_parsers.profiles import load, names

GIB = 1 << 30
EVENT = 'name = "x"\n[[event]]\nmessage = "m"\nsample = ["m"]\n'


def message_of(text, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(str(file))
    assert "\n" not in str(caught.value)
    assert "mine.toml" in str(caught.value)
    return str(caught.value)


def test_cuzk_is_shipped():
    assert "cuzk" in names()


def test_an_unknown_name_says_which_there_are():
    with pytest.raises(UsageError, match=r"no profile 'cusk'.*cuzk"):
        load("cusk")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\nevnt = 1\n', "evnt"),
        ("name = ", "no valid TOML"),
        ("[model]\n", "name"),
        (EVENT + 'rows = [{ table = "pools" }]\n', "event[0]: table 'pools' does not exist"),
        (EVENT + 'rows = [{ table = "pool", fields = { sise = "a:gib" } }]\n', "has no column 'sise'"),
        (EVENT + 'rows = [{ table = "pool", fields = { size = "a:gb" } }]\n', "with a unit of int"),
        (EVENT + 'rows = [{ table = "pool", fields = { size = "gib" } }]\n', 'write "field:unit"'),
        ('name = "x"\n[[line]]\nregex = "(a"\nsample = ["a"]\n', "line[0].regex: '(a' is no regular expression"),
        (EVENT + 'rows = [{ table = "pool", op = 3 }]\n', "$.event[0].rows[0].op"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(text, says, tmp_path):
    assert says in message_of(text, tmp_path)


@pytest.mark.parametrize(
    ("circuit", "gib", "partitions"),
    [
        ("porep-32g", (44, 26, 14, 13), 10),
        ("porep-64g", (44, 26, 14, 13), 10),
        ("snap-32g", (33, 17, 9, 8), 16),
        ("snap-64g", (33, 17, 9, 8), 16),
        ("wpost-32g", (57, 26, 14, 13), 1),
        ("winning-32g", (0.18, 0.4, 0.5, 0.25), 1),
    ],
)
def test_srs_pce_reservation_and_abc_share_are_the_daemons(circuit, gib, partitions, cuzk):
    found = cuzk.model.circuits[circuit]
    sizes = (found.srs, found.pce, found.reservation, found.abc)
    assert sizes == tuple(round(size * GIB) for size in gib)
    assert found.partitions == partitions


@pytest.mark.parametrize(
    ("name", "circuit"),
    [("porep-c2", "porep-32g"), ("snap-update", "snap-32g"), ("window-post", "wpost-32g"),
     ("winning-post", "winning-32g"), ("PoRep 32G", "porep-32g"), ("WindowPoSt", "wpost-32g"), ("new-proof", None)],
)  # fmt: skip
def test_proof_kinds_and_other_names_lead_to_circuits(name, circuit, cuzk):
    assert cuzk.model.circuit_of(name) == circuit
