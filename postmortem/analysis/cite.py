"""Citations: which lines the result leans on, and their text for the report."""

import dataclasses

from postmortem.result import Evidence, Finding
from postmortem.run import Excerpts, Run

__all__ = ["Citations"]

_AROUND = 2
_MOST = 400


@dataclasses.dataclass
class Citations:
    """Collects (source, line) pairs in the order in which they are cited."""

    run: Run
    pairs: dict[tuple[int, int], str] = dataclasses.field(default_factory=dict)

    def at(self, source: int, line: int) -> str:
        """`file:line`, remembered for the excerpts."""
        return self.pairs.setdefault((source, line), self.run.cite(source, line))

    def all(self, *pairs: tuple[int, int], most: int = 6) -> tuple[str, ...]:
        """Several citations, at most `most`, without repetition."""
        return tuple(dict.fromkeys(self.at(*pair) for pair in pairs[:most]))

    def finding(self, text: str, *pairs: tuple[int, int], weight: float = 1.0) -> Finding:
        """A sentence with its lines."""
        return Finding(text=text, lines=list(self.all(*pairs)), weight=weight)

    def evidence(self, excerpts: Excerpts) -> list[Evidence]:
        """The cited lines with their neighbours, in order of file and line."""
        wanted = sorted(self.pairs)[:_MOST]
        texts = excerpts(wanted, _AROUND)
        found: list[Evidence] = []
        for number, pair in enumerate(wanted, 1):
            around = texts.get(pair, [])
            own = next((text for line, text in around if line == pair[1]), "")
            path = self.run.sources[pair[0]].path
            found.append(Evidence(id=f"e{number}", source=path, line=pair[1], text=own, around=list(around)))
        return found
