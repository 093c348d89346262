"""The constants of a daemon's memory model, as a profile states them. Sizes in bytes.

A profile without a `[model]` gives the empty model: then nothing is modelled, only measured.
"""

import msgspec

from postmortem.units import GIB

__all__ = ["Circuit", "MemoryModel"]


class Circuit(msgspec.Struct, frozen=True, kw_only=True):
    """What one kind of work reserves and needs."""

    srs: int = 0
    """Pinned table, resident until evicted."""
    pce: int = 0
    """Heap table, resident until evicted."""
    full: int = 0
    """Reserved for a partition from its acquire on."""
    abc: int = 0
    """Part of `full` that is released when prove_start returns."""
    partitions: int = 1
    needs_abc: int = 0
    """What a, b and c really take, in pinned buffers or heap."""
    needs_rest: int = 0
    """Heap that a partition takes beside a, b and c."""


class MemoryModel(msgspec.Struct, frozen=True, kw_only=True):
    """A daemon's rules of reservation, by circuit."""

    circuits: dict[str, Circuit] = {}
    proof_kinds: dict[str, str] = {}
    """Circuit by proof kind (`porep-c2` -> `porep-32g`), where the log names only the kind."""
    buffers_per_partition: int = 3
    pce_extraction: int = 0
    """Reserved on top while a PCE is extracted."""
    processes: tuple[str, ...] = ()
    """The daemon's process names, as kernel reports cut them (15 characters)."""

    def circuit(self, name: str | None, proof_kind: str | None = None) -> Circuit | None:
        """The circuit by its name, else by its proof kind; None where the model does not know it."""
        if name in self.circuits:
            return self.circuits[name or ""]
        return self.circuits.get(self.proof_kinds.get(proof_kind or "", ""))

    def is_daemon(self, process: str | None) -> bool:
        """Whether a process name in a kernel report can be the daemon's."""
        return process is not None and any(process == name[:15] or process == name for name in self.processes)


RESERVE_SHARE = 1 / 64
"""Reserve that a recommended budget leaves, as a share of the limit; at least one GiB."""


def reserve(limit: int) -> int:
    """What a recommended budget leaves free below the limit, beside all that was seen to be needed."""
    return max(GIB, round(limit * RESERVE_SHARE))
