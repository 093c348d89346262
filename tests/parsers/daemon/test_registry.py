"""Finding parsers: a broken one is a warning."""

from importlib.metadata import EntryPoint

from postmortem_parsers import registry


def points(*values):
    return lambda **_: [EntryPoint(name, value, registry.GROUP) for name, value in values]


def test_ours_are_found_in_order_of_priority():
    parsers, _ = registry.load_parsers()
    names = [parser.name for parser in parsers]
    assert names[:3] == ["tracing", "timeline", "status"]
    assert [parser.priority for parser in parsers] == sorted(parser.priority for parser in parsers)


def test_a_parser_that_cannot_be_imported_is_a_warning(monkeypatch):
    tracing = ("tracing", "postmortem_parsers.tracing:TracingParser")
    broken = (("gone", "no_such_module:Parser"), ("dict", "builtins:dict"), ("number", "math:pi"))
    monkeypatch.setattr(registry, "entry_points", points(tracing, *broken))
    parsers, warnings = registry.load_parsers()
    assert [parser.name for parser in parsers] == ["tracing"]
    assert [warning.split("'")[1] for warning in warnings] == ["dict", "gone", "number"]
