"""Check the documentation: every Python block runs, every link leads somewhere, every public name is in the reference.

The blocks of one page share a namespace and run in order, in an empty folder.   python docs/check_snippets.py [pages]
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import torch

import costate as cs

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
REFERENCE = ROOT / "docs/api/index.md"


def pages() -> list[Path]:
    """README and everything below docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def snippets(text: str) -> Iterator[tuple[int, str]]:
    """(line, code) of each Python block."""
    for match in BLOCK.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match[1]


def run_page(page: Path) -> tuple[int, list[str]]:
    """How many blocks the page has, and what went wrong in the first that failed."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    count, home = 0, Path.cwd()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for line, code in snippets(page.read_text(encoding="utf-8")):
                count += 1
                # empty lines in front make the line numbers of errors those of the page
                exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
        except Exception:
            return count, [f"{page.relative_to(ROOT)}: {traceback.format_exc(limit=-1).rstrip()}"]
        finally:
            os.chdir(home)
    return count, []


def dead_links(page: Path) -> list[str]:
    """Relative links to files that do not exist."""
    targets = (match[1] for match in LINK.finditer(page.read_text(encoding="utf-8")))
    local = (target for target in targets if "://" not in target)
    return [f"{page.relative_to(ROOT)}: no file {target}" for target in local if not (page.parent / target).exists()]


def missing_names() -> list[str]:
    """Public names that the reference does not mention."""
    text = REFERENCE.read_text(encoding="utf-8")
    return [f"docs/api/index.md: {name} is missing" for name in cs.__all__ if not re.search(rf"\b{name}\b", text)]


def main(names: list[str]) -> int:
    """Print what is wrong; the exit status."""
    chosen = [Path(name).resolve() for name in names] or pages()
    problems = [] if names else missing_names()
    total = 0
    for page in chosen:
        count, errors = run_page(page)
        total += count
        problems += errors + dead_links(page)
    print("\n".join(problems) or f"{total} Python blocks on {len(chosen)} pages run; all links lead somewhere")
    return bool(problems)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
