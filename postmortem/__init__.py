"""Takes a process that died of memory apart: how it ended, why, and the arithmetic that proves it.

import postmortem
r = postmortem.analyze(["run.log", "cgroup.csv"])
r.verdict.cause, r.arithmetic.parts, r.timeline, r.to_html()
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postmortem.api import Postmortem, analyze
    from postmortem.errors import InputError, NoEvidenceError, NotFoundError, PostmortemError, UsageError
    from postmortem.result import Quantity, Result

__all__ = [
    "InputError",
    "NoEvidenceError",
    "NotFoundError",
    "Postmortem",
    "PostmortemError",
    "Quantity",
    "Result",
    "UsageError",
    "__version__",
    "analyze",
]

__version__ = "0.1.0"

_HOMES = {
    "Postmortem": "postmortem.api",
    "analyze": "postmortem.api",
    "Quantity": "postmortem.result",
    "Result": "postmortem.result",
    "InputError": "postmortem.errors",
    "NoEvidenceError": "postmortem.errors",
    "NotFoundError": "postmortem.errors",
    "PostmortemError": "postmortem.errors",
    "UsageError": "postmortem.errors",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 (PEP 562: any public name; keeps `import postmortem` free of polars)
    home = _HOMES.get(name)
    if home is None:
        msg = f"module 'postmortem' has no attribute {name!r}"
        raise AttributeError(msg)
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(home), name)
