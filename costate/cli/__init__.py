"""The command line: costate info | load | simulate | bench | run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from costate import __version__
from costate.cli.errors import BROKEN_PIPE, INTERRUPTED, UserError, printable
from costate.cli.parser import make_parser

MODULES = {"info": "info", "load": "load", "simulate": "simulate", "bench": "bench", "run": "examples"}  # by command


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the process's arguments) and return its exit code; --help and --version exit."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(words)
        sys.stdout.flush()
    except UserError as error:
        return _complain(error, as_json="--json" in words)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # who reads has had enough; what Python writes when it ends must not complain either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


def _run(words: list[str]) -> int:
    parser = make_parser(__version__)
    arguments = parser.parse(words)
    if arguments.command is None:
        parser.print_help()
        return 0
    from costate.cli.output import Output

    return import_module(f"costate.cli.{MODULES[arguments.command]}").run(arguments, Output(as_json=arguments.json))


def _complain(error: UserError, *, as_json: bool) -> int:
    """One line on standard error; for scripts also an object."""
    print(f"costate: {printable(str(error))}", file=sys.stderr)
    if as_json:
        from costate.cli.output import Output

        Output(as_json=True).result({"error": str(error), "refused": list(error.elements), "exit_code": error.code})
    return error.code
