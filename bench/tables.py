"""What a benchmark prints: Markdown tables, with their targets, and what they were measured on."""

from __future__ import annotations

import platform
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Table:
    """A title, columns, rows and remarks; `targets` holds (what, reached) and is printed below."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    targets: list[tuple[str, bool]] = field(default_factory=list)
    notes: str = ""
    summary: list[tuple[str, ...]] = field(default_factory=list)  # rows of the short table in README.md

    def add(self, *cells: object) -> None:
        """One row."""
        self.rows.append(tuple(str(cell) for cell in cells))

    def target(self, what: str, reached: bool) -> None:
        """A line that says whether the aim was reached."""
        self.targets.append((what, reached))

    def markdown(self) -> str:
        """As text."""
        lines = [f"## {self.title}", ""]
        lines += [self.notes, ""] if self.notes else []
        lines += grid(self.columns, self.rows)
        if self.targets:
            lines += ["", *(f"- {'reached' if reached else '**missed**'}: {what}" for what, reached in self.targets)]
        return "\n".join((*lines, ""))


def grid(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """The lines of a Markdown table."""
    return ["| " + " | ".join(row) + " |" for row in (columns, ("---",) * len(columns), *rows)]


def us(seconds: float) -> str:
    """Microseconds with three digits."""
    number = seconds * 1e6
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def times(ratio: float) -> str:
    """A ratio, with two digits."""
    return f"{ratio:.2g}x" if ratio < 1 else f"{ratio:.1f}x" if ratio < 10 else f"{ratio:.0f}x"


def setup() -> str:
    """The machine and the versions, as one Markdown list."""
    import mujoco
    import numpy
    import pinocchio
    import torch

    import costate

    versions = {"costate": costate, "torch": torch, "numpy": numpy, "MuJoCo": mujoco, "Pinocchio": pinocchio}
    listed = ", ".join(f"{name} {module.__version__}" for name, module in versions.items())
    lines = (
        f"- {_cpu()}, one core; instruction set used by costate: {costate.instruction_set()}",
        f"- {listed}; Python {platform.python_version()}",
        "- every world has its own random state; costate and the others take turns in one run; medians",
    )
    return "\n".join(lines) + "\n"


def _cpu() -> str:
    """The processor's name; /proc knows it on Linux."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
