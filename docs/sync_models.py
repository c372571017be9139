"""Keep docs/guide/models.md true: load public files and tell what became of them.   python docs/sync_models.py [--check]"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from bench.found import MJCF, URDF, WALKERS, Found  # noqa: E402
from costate.load import examine  # noqa: E402

PAGE = ROOT / "docs/guide/models.md"
BEGIN, END = "<!-- begin models -->\n", "<!-- end models -->"
# What findings say, in short: a pattern, and words that may use its groups; {n} is how many lines are alike
SHORT = (
    (r"<option integrator='RK4'>", "RK4 becomes Euler"),
    (r": margin, up to ([\d.]+) m", "no margin ({0} m)"),
    (r"solref and solimp become a softness", "softness of contacts"),
    (r"solreflimit", "soft limits become rigid"),
    (r"the hull has (\d+) vertices .* up to ([\d.]+) mm", "hulls of {0} vertices, {1} mm inside"),
    (r"moves, but has no inertia", "inertia of a box: {n} links"),
    (r"moves, but has no mass", "a small mass: {n} links"),
    (r"principal moments of inertia", "nearest possible inertia: {n} links"),
    (r"'package://'", "`package://` found"),
    (r", read as ", "sloppy numbers: {n}"),
    (r"limit .* is above the upper one", "crossed limits taken away: {n}"),
    (r"forces of a fluid", "forces of a fluid"),
)


def short(lines: list[str]) -> str:
    """Findings in a few words; an AssertionError for one that there are none for."""
    words: Counter[str] = Counter()
    for line in lines:
        found = [(match, text) for pattern, text in SHORT if (match := re.search(pattern, line))]
        assert found, f"docs/sync_models.py has no words for: {line}"
        match, text = found[0]
        words[
            text.replace("{0}", match[1] if match.re.groups else "").replace("{1}", match[2] if match.re.groups > 1 else "")
        ] += 1
    return "; ".join(text.replace("{n} links", f"{n} link{'s' * (n > 1)}").replace("{n}", str(n)) for text, n in words.items())


def row(found: Found) -> str:
    """One line of the table."""
    model, findings = examine(found.path, **({"floating": True} if found.floating else {}))
    name = f"`{found.file}`{' floating' if found.floating else ''}"
    sizes = model.nv, model.nu, model.nb, sum(shape >= 0 for shape in model.shape_body), len(model.pairs)
    return " | ".join((f"| {name}", *map(str, sizes), short(findings.approximated), f"{short(findings.refused)} |"))


def table() -> str:
    """All of them."""
    walkers = {found.file: found for found in WALKERS}
    columns = ("file", "dof", "actuators", "bodies", "shapes", "pairs", "approximated", "refused")
    head = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*head, *(row(walkers.get(found.file, found)) for found in (*MJCF, *URDF))])


def main(arguments: list[str]) -> int:
    """Refresh the page, or say that it is stale; the exit status."""
    now = PAGE.read_text(encoding="utf-8")
    head, rest = now.split(BEGIN)
    _, tail = rest.split(END)
    wanted = f"{head}{BEGIN}\n{table()}\n\n{END}{tail}"
    if now == wanted:
        return 0
    if "--check" in arguments:
        print("docs/guide/models.md is out of date: run python docs/sync_models.py")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
