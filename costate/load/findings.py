"""Findings: what became of the elements of a file, in three classes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from costate.load.errors import LoadWarning, UnsupportedFeature

PLURALS = {"body": "bodies", "mesh": "meshes", "flex": "flexes"}
SHOWN = 6  # names in one line; more are counted


@dataclass
class Findings:
    """What became of the elements of a file; lines of text.

    Attributes
    ----------
    honoured : what means the same in costate as in MuJoCo.
    approximated : what is there, but not exactly the same; each is a LoadWarning.
    refused : what costate cannot represent; an UnsupportedFeature, or a LoadWarning each where strict=False.
    """

    honoured: list[str] = field(default_factory=list)
    approximated: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def honour(self, line: str) -> None:
        """Something is exactly as in MuJoCo."""
        self.honoured.append(line)

    def approximate(self, line: str) -> None:
        """Something is there, but not exactly as in MuJoCo."""
        self.approximated.append(line)

    def refuse(self, line: str) -> None:
        """Something cannot be represented."""
        self.refused.append(line)

    def conclude(self, where: str, *, strict: bool, stacklevel: int) -> None:
        """Warn of what is approximated; raise, or warn of, what is refused. `where` starts the messages."""
        if self.refused and strict:
            lines = "".join(f"\n- {line}" for line in self.refused)
            raise UnsupportedFeature(
                f"{where}: costate cannot represent the following; load with strict=False to go on without it:{lines}",
                self.refused,
            )
        for line in self.approximated:
            warnings.warn(f"{where}: {line}", LoadWarning, stacklevel=stacklevel + 1)
        for line in self.refused:
            warnings.warn(f"{where}: left out: {line}", LoadWarning, stacklevel=stacklevel + 1)


def listed(kind: str, names: Sequence[str]) -> str:
    """The names of elements of one kind, as in: geoms 'a', 'b' and 3 more."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{PLURALS.get(kind, f'{kind}s') if len(names) > 1 else kind} {shown}{more}"
