"""Keep docs/guide/step.md true: copy core/step.h between its markers.   python docs/sync_step.py [--check]"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE, SOURCE = ROOT / "docs/guide/step.md", ROOT / "core/step.h"
BEGIN, END = "<!-- begin core/step.h -->\n", "<!-- end core/step.h -->"


def synced(page: str, source: str) -> str:
    """The page with the source as it is now."""
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n```cpp\n{source.rstrip()}\n```\n\n{END}{tail}"


def main(arguments: list[str]) -> int:
    """Refresh the page, or say that it is stale; the exit status."""
    now = PAGE.read_text(encoding="utf-8")
    wanted = synced(now, SOURCE.read_text(encoding="utf-8"))
    if now == wanted:
        return 0
    if "--check" in arguments:
        print("docs/guide/step.md differs from core/step.h: run python docs/sync_step.py")
        return 1
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
