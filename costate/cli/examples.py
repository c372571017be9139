"""costate run: the examples of the repository."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import NamedTuple

import costate
from costate.cli.errors import INTERRUPTED, UserError, hint
from costate.cli.output import Output

REPOSITORY = "costate's repository"


class Example(NamedTuple):
    """One file of the folder of examples."""

    name: str
    path: Path
    about: str


def run(arguments: Namespace, out: Output) -> int:
    """List the examples, or run one as a process of its own."""
    words = [word for word in arguments.arguments if word != "--json"]
    out = out if len(words) == len(arguments.arguments) else Output(as_json=True)  # behind the name it may stand, too
    examples = find_examples()
    if arguments.example is None:
        out.table("examples: costate run NAME [arguments]", [(example.name, example.about) for example in examples.values()])
        listed = [{"name": e.name, "path": str(e.path), "about": e.about} for e in examples.values()]
        out.result({"examples": listed})
        return 0
    if arguments.example not in examples:
        raise UserError(f"no example named {arguments.example!r}; {hint(arguments.example, examples)}")
    example = examples[arguments.example]
    words = words[1:] if words[:1] == ["--"] else words
    start = time.perf_counter()
    # an object on standard output must stand there alone: what the example prints goes beside it
    code = _call([sys.executable, str(example.path), *words], elsewhere=out.as_json)
    seconds = time.perf_counter() - start
    out.result({"example": example.name, "path": str(example.path), "arguments": words, "exit_code": code, "seconds": seconds})
    return code


def _call(command: list[str], *, elsewhere: bool) -> int:
    with subprocess.Popen(command, stdout=sys.stderr.fileno() if elsewhere else None) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()  # it was interrupted, too
            return INTERRUPTED


def find_examples() -> dict[str, Example]:
    """Examples by name; UserError that says where they are if this installation has none."""
    folder = repository("examples", "*.py")
    if folder is None:
        raise UserError(f"examples are not installed: they are in {REPOSITORY}, in the folder examples/; run costate there")
    paths = sorted(path for path in folder.glob("*.py") if not path.name.startswith("_"))
    return {path.stem: Example(path.stem, path, _about(path)) for path in paths}


def repository(name: str, pattern: str) -> Path | None:
    """The folder `name` with files like `pattern`, beside the package (an editable install) or in the present folder."""
    for root in (Path(costate.__file__).resolve().parents[1], Path.cwd()):
        folder = root / name
        if folder.is_dir() and any(folder.glob(pattern)):
            return folder
    return None


def _about(path: Path) -> str:
    """The first line of a file's docstring; the file is not run."""
    try:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    except (SyntaxError, ValueError, OSError):
        text = None
    return text.splitlines()[0] if text else ""
