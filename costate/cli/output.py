"""What the commands print: tables for people, or one JSON object on standard output for scripts."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from costate.cli.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


WIDE = 1000  # characters


class Output:
    """Where a command prints. With `as_json`, only `result` writes to standard output, and tables are left out."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that has no letter for a name
        self.console = _console(quiet=as_json)
        self.errors = _console(stderr=True)

    def line(self, text: str = "", *, style: str | None = None) -> None:
        """A line of plain text; square brackets in it mean nothing."""
        self.console.print(printable(text), style=style, markup=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """A warning, to standard error."""
        self.errors.print(f"warning: {printable(text)}", style="yellow", markup=False, soft_wrap=True)

    def table(self, title: str, rows: Sequence[tuple[str, str]]) -> None:
        """Two columns, what and how much."""
        from rich.table import Table
        from rich.text import Text

        self.line(title, style="bold")
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in rows:
            table.add_row(Text(printable(name)), Text(printable(value)))
        self.console.print(table)

    def progress(self) -> Progress:
        """A bar, only where somebody can see it; it goes away when done. Tables may be printed above it."""
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn())
        console = self.console if self.console.is_terminal and not self.as_json else self.errors
        return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)

    def result(self, values: dict[str, Any]) -> None:
        """The JSON object, if one is wanted; numbers that JSON has no word for become null."""
        if self.as_json:
            sys.stdout.write(json.dumps(finite(values), allow_nan=False) + "\n")


def _console(**options: Any) -> Console:
    """A console of rich that leaves broken pipes to the caller."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    console = Plain(highlight=False, **options)
    if not console.is_terminal:
        console.width = WIDE  # files have no edge where lines would have to be broken
    return console


def finite(value: Any) -> Any:
    """`value` with None in place of numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
