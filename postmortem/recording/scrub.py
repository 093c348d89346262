"""Secrets are taken out of commands, variables and configuration lines before anything is written.

What is told by its name (`--token X`, `API_KEY=X`, `password: X`), by its place (user and password of a URL,
`Authorization: …`) or by its shape (keys of AWS, GitHub, Slack and the like, JSON web tokens). Left out rather too
much than too little: a value beside a suspicious name goes, whatever it is.
"""

import re
from collections.abc import Mapping, Sequence

__all__ = ["HIDDEN", "command", "environment", "suspicious", "text"]

HIDDEN = "[left out]"

_WORDS = r"key|token|secret|passw|passphrase|pwd|credential|auth|cookie|session|private|dsn|bearer|signature"
_NAME = re.compile(_WORDS + r"|(?:^|[-_])pass(?:$|[-_])|(?:^|[-_])(?:sas|sig)$", re.IGNORECASE)
_KEPT = re.compile(r"^(?:CUDA|CUZK|NVIDIA|MALLOC|RUST_LOG|RAYON|OMP|FIL_|BELLMAN|POSTMORTEM)", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^\s?#]*@")
_HEADER = re.compile(r"\b((?:proxy-)?authorization|x-[\w-]*(?:key|token|auth)[\w-]*|cookie)\s*:\s*.+", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w.+/=~-]{8,}", re.IGNORECASE)
# Within one word: a shell's `-c` text, a query, JSON.
_STATED = re.compile(
    rf"(?P<name>[\w.-]{{0,60}}(?:{_WORDS})[\w.-]{{0,60}}[\"']?)(?P<by>\s*[=:]\s*|\s+(?![-]))(?P<value>\"[^\"]*\"|'[^']*'|[^\s\"'&;,}}]+)",
    re.IGNORECASE,
)
_SHAPES = re.compile(
    r"\bA(?:KIA|SIA)[0-9A-Z]{16}\b|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{20,}|\bxox[abeoprs]-[\w-]{10,}"
    r"|\bsk-[\w-]{20,}|\bhf_\w{20,}|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)


def suspicious(name: str) -> bool:
    """Whether what bears this name may be secret."""
    return _NAME.search(name) is not None


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that shape memory use, by their prefixes; all others are left out, and of these what may be secret."""
    kept = {name: value for name, value in variables.items() if _KEPT.match(name) and not suspicious(name)}
    return {name: text(value) for name, value in kept.items()}


def command(words: Sequence[str]) -> list[str]:
    """The command without the values of options such as `--token`, and without secrets inside its words."""
    shown: list[str] = []
    hide_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide_next and not (word.startswith("-") and suspicious(word)):
            shown.append(HIDDEN)
            hide_next = False
            continue
        if equals and suspicious(name) and not re.search(r"\s", name):
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(text(word))
        hide_next = not equals and word.startswith("-") and not re.search(r"\s", word) and suspicious(word)
    return shown


def text(given: str) -> str:
    """A text without the secrets that are stated in it or have a known shape."""
    shown = _USERINFO.sub("", given)
    shown = _HEADER.sub(lambda match: f"{match[1]}: {HIDDEN}", shown)
    shown = _BEARER.sub(lambda match: f"{match[1]} {HIDDEN}", shown)
    shown = _STATED.sub(lambda match: f"{match['name']}{match['by']}{HIDDEN}", shown)
    return _SHAPES.sub(HIDDEN, shown)
