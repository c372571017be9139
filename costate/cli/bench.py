"""costate bench: the benchmarks of the repository, printed as tables."""

from __future__ import annotations

import sys
from argparse import Namespace
from importlib import import_module
from types import ModuleType
from typing import Any

from costate.cli.errors import UserError, hint
from costate.cli.examples import REPOSITORY, repository
from costate.cli.output import Output


def run(arguments: Namespace, out: Output) -> int:
    """Run them one by one; exit code 0, whether targets are missed or not."""
    bench = find_bench()
    known = (*bench.NAMES, "build")
    names = list(arguments.names or bench.NAMES)
    for name in names:
        if name not in known:
            raise UserError(f"no benchmark named {name!r}; {hint(name, known)}")
    bench.one_core()
    tables: list[Any] = []
    with out.progress() as progress:
        task = progress.add_task("benchmarks", total=len(names))
        for name in names:
            progress.update(task, description=name)
            for table in _import(f"bench.{name}").run(quick=arguments.quick):
                tables.append(table)
                _show(out, table)
            progress.advance(task)
    targets = [reached for table in tables for _, reached in table.targets]
    missed = targets.count(False)
    out.line(f"{missed} of {len(targets)} targets missed")
    fields = ("title", "columns", "rows", "targets", "notes")
    out.result({"tables": [{name: getattr(table, name) for name in fields} for table in tables], "missed": missed})
    return 0


def find_bench() -> ModuleType:
    """The module with the names of the benchmarks; UserError that says where it is if it cannot be imported."""
    folder = repository("bench", "__main__.py")
    if folder is None:
        raise UserError(f"benchmarks are not installed: they are in {REPOSITORY}, in the folder bench/; run costate there")
    if str(folder.parent) not in sys.path:
        sys.path.insert(0, str(folder.parent))
    return _import("bench.__main__")


def _import(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise UserError(f"benchmarks need {error.name}, which is not installed: pip install costate[dev]") from error


def _show(out: Output, table: Any) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(table.title), title_justify="left", box=box.SIMPLE_HEAD)
    for name in table.columns:
        shown.add_column(Text(name))
    for row in table.rows:
        shown.add_row(*map(Text, row))
    out.console.print(shown)
    for what, reached in table.targets:
        out.line(f"{'reached' if reached else 'missed'}: {what}", style="green" if reached else "red")
