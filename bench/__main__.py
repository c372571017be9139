"""python -m bench [names] [--quick] [--save] [--build]: run the benchmarks, print Markdown."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from pathlib import Path

from bench.tables import Table, grid, setup
from bench.timing import one_core

NAMES = (
    "dynamics",
    "grad",
    "chain",
    "one_world",
    "memory",
    "contact",
    "contact_one",
    "contact_length",
    "loaded",
    "constraints",
    "planar",
    "piles",
    "narrowphase",
    "solver",
    "cuda",
    "paper_b",
)
PAGE, README = (Path(__file__).parents[1] / name for name in ("docs/benchmarks.md", "README.md"))
BEGIN, END = "<!-- begin benchmarks -->\n", "<!-- end benchmarks -->"
HEAD = """# Benchmarks

Printed by `make bench ARGS=--save`. Ratios above 1 mean that costate is faster; a missed target says so.

"""


def update_readme(tables: list[Table]) -> None:
    """Put the most telling row of each table between the markers in README.md."""
    rows = [row for table in tables for row in table.summary]
    lines = grid(("float64; quadruped of 18 dof unless said", "costate", "peer", "ratio"), rows)
    head, rest = README.read_text(encoding="utf-8").split(BEGIN)
    _, tail = rest.split(END)
    README.write_text(head + BEGIN + "\n".join(("", *lines, "", setup())) + END + tail, encoding="utf-8")


def merged(old: str, new: str) -> str:
    """The old page with the sections of the new one in place of its own, and those that it did not have behind; the new head."""
    head, *sections = re.split(r"(?m)^(?=## )", new)
    fresh = {section.split("\n", 1)[0]: section for section in sections}
    kept = [fresh.pop(section.split("\n", 1)[0], section) for section in re.split(r"(?m)^(?=## )", old)[1:]]
    return "\n\n".join(part.rstrip() for part in (head, *kept, *fresh.values())) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="costate against its peers, on one core")
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(NAMES)}, build (default: all but build)")
    parser.add_argument("--quick", action="store_true", help="shorter measurements, noisier numbers")
    parser.add_argument("--build", action="store_true", help="also time the build of the extension")
    parser.add_argument("--save", action="store_true", help=f"also write docs/{PAGE.name}")
    args = parser.parse_args()
    names = list(args.names or NAMES) + (["build"] if args.build else [])
    unknown = [name for name in names if name not in (*NAMES, "build")]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]!r}; there are {', '.join(NAMES)} and build")

    one_core()
    text = HEAD + setup() + "\n"
    print(text, flush=True)
    tables: list[Table] = []
    for name in names:
        for table in import_module(f"bench.{name}").run(quick=args.quick):
            tables.append(table)
            text += table.markdown() + "\n"
            print(table.markdown(), flush=True)
    if args.save:
        PAGE.write_text(merged(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
        if not args.names:
            update_readme(tables)
    missed = sum(not reached for table in tables for _, reached in table.targets)
    print(f"{missed} of {sum(len(table.targets) for table in tables)} targets missed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
