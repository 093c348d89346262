"""Aliases for what identifies people and machines, applied to a result before any report sees it.

The same thing gets the same alias everywhere: `<host-1>`, `<ip-1>`, `<user-1>`, `<email-1>`, `<secret-1>`,
`<container-1>`, `<path-1>`. Names of users and hosts are learned from where logs state them (home folders,
`user=…`, syslog's host column, `…@host`) and then replaced wherever they stand. Kept: sizes, times, job ids,
circuit names, the last component of a path to a file, and the structure of cgroup paths.
Not found: names that no such place gives away, and blanks inside paths.
"""

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import msgspec

from postmortem.result import Result

__all__ = ["Redactor", "redact_result"]

_T = TypeVar("_T")

# Values of these fields are the schema's own words, or hashes of whole inputs.
_FIXED_FIELDS = frozenset(
    [
        "schema",
        "postmortem_version",
        "sha256",
        "how",
        "certainty",
        "cause",
        "basis",
        "ended",
        "ending",
        "id",
        "constraint",
        "killer",
    ]
)

# Accounts that every machine has, and words of ours that a name must not take away from the text.
_COMMON_NAMES = frozenset(
    [
        "root",
        "nobody",
        "daemon",
        "user",
        "users",
        "admin",
        "ubuntu",
        "debian",
        "none",
        "null",
        "true",
        "false",
        "unknown",
        "self",
        "kernel",
        "systemd",
        "docker",
        "memory",
        "limit",
        "budget",
        "pool",
        "host",
        "node",
        "localhost",
        "cgroup",
        "cuzk",
        "cuzk-daemon",
        "cuzk-bench",
        "postmortem",
        "log",
        "run",
        "gpu",
        "cpu",
        "data",
        "app",
        "service",
        "server",
        "worker",
        "process",
        "the",
        "and",
        "for",
        "from",
        "with",
        "invalid",
        "authenticating",
    ]
)
_HARMLESS_ADDRESSES = frozenset(map(ipaddress.ip_address, ["0.0.0.0", "127.0.0.1", "255.255.255.255", "::", "::1"]))  # noqa: S104 (compared with, never bound)

_SECRETS = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|\b(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}"
    r"|\bsk-[\w-]{16,}|\bhf_[A-Za-z0-9]{16,}|\bAIza[\w-]{30,}|\bnpm_[A-Za-z0-9]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
    re.DOTALL,
)
# What follows a word for a secret, up to the end of the value.
_STATED_SECRET = re.compile(
    r"(?i)(\b(?:[\w-]{0,40}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|"
    r"credentials?)|authorization|proxy-authorization|(?:set-)?cookie)[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
    r"(?:(?:bearer|basic|token)\s{1,3})?|\bbearer\s{1,3}|--(?:password|token|api-key)[ =])(?!(?:bearer|basic|token)\b)([^\s\"'<>,;&]{4,})"
)
_URL_USER = re.compile(r"(?<=://)([^\s/@:<>]{1,200})(:[^\s/@<>]{1,200})?(?=@)")
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")
_IPV4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{2,39}(?:(?<=:)(?:\d{1,3}\.){3}\d{1,3})?(?:%\w{1,15})?(?![\w:])")
_MAC = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_CONTAINER = re.compile(
    r"(?<=docker/)[0-9a-f]{12,64}\b|(?<=docker-)[0-9a-f]{12,64}\b|(?<=containerd-)[0-9a-f]{12,64}\b"
    r"|(?<=crio-)[0-9a-f]{12,64}\b|(?<=libpod-)[0-9a-f]{12,64}\b|(?<=://)[0-9a-f]{64}\b"
    r"|(?<![\w-])(?=\d*[a-f])(?:[0-9a-f]{64}|[0-9a-f]{12})(?![\w-])"
)
_POD = re.compile(r"(?<=pod)[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}")
_HEX = re.compile(r"(?<!\w)(?:0x)?(?=\d*[A-Fa-f])[0-9A-Fa-f]{32,}(?!\w)")
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{32,}={0,2}")
_BITS = 4.2  # per character: random base64 of 32 characters has about 4.6, words joined by dashes below 4.1

# The last labels of names in the net; those that are also endings of files (rs, py, so, sh, md, pl) are left out.
_DOMAIN = re.compile(
    r"(?i)(?<![\w.@/<-])(?:[a-z0-9_](?:[a-z0-9_-]{0,62})\.){1,8}(?:com|net|org|io|ai|cloud|dev|app|internal|local|"
    r"localdomain|lan|corp|home|intranet|edu|gov|mil|info|biz|tech|xyz|eu|de|uk|fr|nl|ch|se|jp|cn|ru)(?![\w-]|\.\w)"
)
_CLOUD_HOST = re.compile(r"(?<![\w-])ip-\d{1,3}(?:-\d{1,3}){3}(?![\w-])")
_STATED_HOSTS = (
    re.compile(r"(?:^|[\s>])[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]{2,63}) [\w./()-]{1,60}(?:\[\d+\])?: "),
    re.compile(
        r"(?:^|[\s>])\d{4}-\d\d-\d\dT[\d:.,]{8,18}(?:Z|[+-]\d\d:?\d\d) ([\w.-]{2,63}) [\w./()-]{1,60}(?:\[\d+\])?: "
    ),
    re.compile(
        r"(?i)\b_?(?:host_?name|host|node_?name|node|server|fqdn|machine)[\"']?\s{0,3}[:=]\s{0,3}[\"']?([A-Za-z][\w.-]{1,62})"
    ),
    re.compile(r"\b[a-z_][a-z0-9_-]{0,31}@([A-Za-z][\w-]{1,62})\b"),
    re.compile(r"(?i)\b(?:ssh|scp|connect(?:ed)?) to (?:host )?([A-Za-z][\w.-]{1,62})"),
)
_STATED_USERS = (
    re.compile(r"/(?:home|Users)/([A-Za-z_][\w.-]{0,31})"),
    re.compile(r"(?i)\\Users\\([A-Za-z_][\w.-]{0,31})"),
    re.compile(r"(?i)\b(?:user_?name|user|login|logname|owner)[\"']?\s{0,3}[:=]\s{0,3}[\"']?([A-Za-z_][\w.-]{0,31})"),
    re.compile(r"\b[eu]?uid=\d+\(([A-Za-z_][\w.-]{0,31})\)"),
    re.compile(r"\bfor (?:invalid )?user ([A-Za-z_][\w.-]{0,31})"),
    re.compile(r"\b([a-z_][a-z0-9_-]{0,31})@[A-Za-z][\w-]{1,62}"),
)
_PATH = re.compile(
    r"(?:(?<![\w/.~>\\-])|(?<=file://))/(?!/)[^\s\"'`<>|;,:()\[\]{}=*?/]+(?:/[^\s\"'`<>|;,:()\[\]{}=*?/]+)+/?"
)
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\[^\s\"'<>|:*?]+")
_FILE_NAME = re.compile(r"[^/\\]*[^/\\.]\.[A-Za-z][A-Za-z0-9]{0,9}")
# Roots whose paths say how the machine is built, not whose it is.
_STRUCTURE = re.compile(
    r"/(?:docker|kubepods|kubelet|k8s\.io|system\.slice|user\.slice|machine\.slice|init\.scope|libpod|lxc|garden|slurm|"
    r"sys|proc|dev)(?![a-z])[\w.-]*(?:/|$)"
)
_CGROUP_TEXT = re.compile(
    r"(?:oom_memcg=|task_memcg=|cpuset=|stats for |Task in |limit of |Tasks in )(/[^\s,:]*[^\s,:.])"
)


class Redactor:
    """Replaces identifying text by aliases; the same text always by the same alias.

    `keep`: words that are replaced in no case (job ids). `learn` beforehand makes names count that
    only a later text gives away.
    """

    def __init__(self, keep: Iterable[str] = ()) -> None:
        self._keep = frozenset(keep)
        self._aliases: dict[tuple[str, str], str] = {}
        self._numbers: Counter[str] = Counter()
        self._cgroups: set[str] = set()
        self._names: dict[str, str] = {}  # learned name -> kind
        self._named: re.Pattern[str] | None = None

    @property
    def count(self) -> int:
        """How many different things have got an alias."""
        return len(set(self._aliases.values()))

    def learn(self, text: str) -> None:
        """Take note of the users, hosts and cgroups that `text` states."""
        known = len(self._names)
        for kind, patterns in (("user", _STATED_USERS), ("host", _STATED_HOSTS)):
            for name in (match[1].rstrip(".-") for pattern in patterns for match in pattern.finditer(text)):
                if len(name) > 1 and name.lower() not in _COMMON_NAMES and name not in self._keep:
                    self._names.setdefault(name, kind)
        self._cgroups.update(match[1] for match in _CGROUP_TEXT.finditer(text))
        if len(self._names) != known:
            longest_first = sorted(self._names, key=lambda name: (-len(name), name))
            self._named = re.compile(rf"(?<![\w<])(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def keep_cgroup(self, path: str) -> None:
        """Leave this path's structure as it is, wherever it stands."""
        self._cgroups.add(path)

    def __call__(self, text: str) -> str:
        """`text` with aliases."""
        self.learn(text)
        for pattern, replace in self._passes():
            text = pattern.sub(replace, text)
        return self._named.sub(self._name, text) if self._named else text

    def _passes(self) -> Iterator[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        """In this order: what holds other things comes before what it holds."""
        yield _SECRETS, self._as("secret")
        yield _STATED_SECRET, lambda match: match[1] + self._alias("secret", match[2])
        yield _URL_USER, self._url_user
        yield _EMAIL, self._as("email")
        yield _WINDOWS_PATH, self._path
        yield _POD, self._as("pod")
        yield _CONTAINER, lambda match: self._alias("container", match[0], key=match[0][:12])
        yield _PATH, self._path
        yield _HEX, self._as("secret")
        yield _BASE64, self._random
        yield _MAC, self._as("mac")
        yield _IPV4, self._address
        yield _IPV6, self._address
        yield _DOMAIN, self._as("host")
        yield _CLOUD_HOST, self._as("host")

    def _as(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda match: self._alias(kind, match[0])

    def _alias(self, kind: str, text: str, key: str | None = None) -> str:
        if text in self._keep:
            return text
        name = (kind, key or (self._host_key(text) if kind == "host" else text))
        if name not in self._aliases:
            self._numbers[kind] += 1
            self._aliases[name] = f"<{kind}-{self._numbers[kind]}>"
        return self._aliases[name]

    def _host_key(self, host: str) -> str:
        """A host's short and full name are one host: both go by the name that was seen first."""
        name = host.lower()
        for kind, seen in self._aliases:
            if kind == "host" and seen != name and (seen.startswith(f"{name}.") or name.startswith(f"{seen}.")):
                return seen
        return name

    def _name(self, match: re.Match[str]) -> str:
        return self._alias(self._names[match[0]], match[0])

    def _url_user(self, match: re.Match[str]) -> str:
        return self._alias("user", match[1]) + (":" + self._alias("secret", match[2][1:]) if match[2] else "")

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        return match[0] if address in _HARMLESS_ADDRESSES else self._alias("ip", match[0], key=str(address))

    def _random(self, match: re.Match[str]) -> str:
        text = match[0]
        kinds = (any(map(str.isupper, text)), any(map(str.islower, text)), any(map(str.isdigit, text)))
        shares = [number / len(text) for number in Counter(text).values()]
        bits = -sum(share * math.log2(share) for share in shares)
        return self._alias("secret", text) if all(kinds) and bits >= _BITS else text

    def _path(self, match: re.Match[str]) -> str:
        path = match[0]
        if _STRUCTURE.match(path) or any(path == kept or path.startswith(f"{kept}/") for kept in self._cgroups):
            return path
        ending = re.search(r"[.!]+$", path)  # a sentence's end, not the path's
        path, tail = (path[: ending.start()], ending[0]) if ending else (path, "")
        separator = "\\" if "\\" in path else "/"
        folder, _, name = path.rstrip(separator).rpartition(separator)
        if folder and _FILE_NAME.fullmatch(name):
            return f"{self._alias('path', folder)}{separator}{name}{tail}"
        return self._alias("path", path.rstrip(separator)) + tail


def redact_result(result: Result) -> Result:
    """`result` with aliases in all its texts, and a warning that says so."""
    jobs = {life.job for life in result.partitions} | {life.circuit for life in result.partitions if life.circuit}
    redactor = Redactor(keep=jobs)
    for kill in result.kills:
        for path in (kill.oom_memcg, kill.task_memcg):
            if path and path != "/":
                redactor.keep_cgroup(path)
    _walk(result, _learning(redactor))
    redacted = _walk(result, redactor)
    note = f"Redacted: aliases such as <host-1> stand for {redactor.count} names, addresses, paths or secrets."
    return msgspec.structs.replace(redacted, warnings=[*redacted.warnings, note])


def _learning(redactor: Redactor) -> Callable[[str], str]:
    def learn(text: str) -> str:
        redactor.learn(text)
        return text

    return learn


def _walk(value: _T, change: Callable[[str], str]) -> _T:
    """`value` with `change` applied to every free text inside."""
    changed: Any = value
    if isinstance(value, str):
        changed = change(value)
    elif isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        free = {
            name: item for name, item in fields.items() if name not in _FIXED_FIELDS or isinstance(item, msgspec.Struct)
        }
        changed = msgspec.structs.replace(value, **{name: _walk(item, change) for name, item in free.items()})
    elif isinstance(value, dict):
        changed = {key: _walk(item, change) for key, item in cast("dict[str, Any]", value).items()}
    elif isinstance(value, list):
        changed = [_walk(item, change) for item in cast("list[Any]", value)]
    elif isinstance(value, tuple):
        changed = tuple(_walk(item, change) for item in cast("tuple[Any, ...]", value))
    return changed
