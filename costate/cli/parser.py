"""The options of all commands. Imports nothing that takes time: --help must answer at once."""

from __future__ import annotations

import argparse
import math
import re
from typing import Any, NoReturn

from costate.cli.errors import UserError, close

EPILOG = "costate COMMAND --help tells the options of a command. Exit codes: 0 done, 1 refused, 2 a mistake, 130 interrupted."


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors are UserErrors of one line, with a suggestion."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        self.commands: dict[str, Parser] = {}  # by name

    def error(self, message: str) -> NoReturn:
        """Argparse's complaint, with the option or command that was meant."""
        choice = re.match(r"argument (\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)", message)
        if choice:
            known = [name.strip("' ") for name in choice[3].split(",")]
            message = f"{choice[1].lower()} must be one of {', '.join(known)}, got {choice[2]!r}"
            near = close(choice[2], known)
            message += f"; did you mean {near!r}?" if near else ""
        raise UserError(message)

    def parse(self, words: list[str]) -> argparse.Namespace:
        """As parse_args; arguments that are none are told apart by those of the command they stand behind."""
        arguments, unknown = self.parse_known_args(words)
        if unknown:
            parser = self.commands.get(arguments.command, self)
            options = [option for action in parser._actions for option in action.option_strings]
            near = close(unknown[0].split("=")[0], options) if unknown[0].startswith("-") else None
            raise UserError(
                f"unknown argument {unknown[0]}; " + (f"did you mean {near}?" if near else f"see {parser.prog} --help")
            )
        return arguments


def positive(text: str) -> float:
    """A positive, finite number."""
    value = _number(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be positive, got {text!r}")
    return value


def not_negative(text: str) -> float:
    """A finite number, 0 or more."""
    value = _number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {text!r}")
    return value


def count(text: str) -> int:
    """A positive int."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive whole number, got {text!r}")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def make_parser(version: str) -> Parser:
    """The parser of `costate`; `command` of what it parses is the name of the command, or None."""
    parser = Parser(prog="costate", description="costate: a differentiable physics engine.", epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"costate {version}")
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object, and nothing else, to standard output")
    for name, (add, about) in COMMANDS.items():
        command = parser.commands[name] = commands.add_parser(name, parents=[common], help=about)
        add(command)
    return parser


def _add_info(parser: argparse.ArgumentParser) -> None:
    parser.description = "What this installation is and what it runs on."


def _add_load(parser: argparse.ArgumentParser) -> None:
    parser.description = "Load an MJCF or URDF file, or a saved model, and say what became of it. Exit code 1: refused."
    parser.add_argument("file", help="MJCF (.xml), URDF (.urdf), or a model saved by costate (.npz)")
    parser.add_argument("--summary", action="store_true", help="also print the tables of bodies, joints, actuators, shapes")
    parser.add_argument("--save", metavar="FILE", help="also save the model as one .npz file")
    _add_load_options(parser)


def _add_simulate(parser: argparse.ArgumentParser) -> None:
    parser.description = "Simulate a model; print a summary of energy, contacts, solver and speed."
    parser.add_argument("file", help="MJCF (.xml), URDF (.urdf), or a model saved by costate (.npz)")
    group = parser.add_argument_group("what is simulated")
    group.add_argument("--time", type=positive, metavar="S", help="simulated time (default: 1, or what the controls last)")
    group.add_argument("--dt", type=positive, metavar="S", help="time step (default: the file's, else 0.01)")
    group.add_argument("--worlds", type=count, default=1, metavar="N", help="how many worlds at once (default: 1)")
    group.add_argument(
        "--controls", metavar="WHAT",
        help="one number for all actuators, numbers separated by commas, or a file: .npz or .npy of shape [steps, actuators] or "
        "[steps, worlds, actuators]; .csv with a row per step, and names of actuators as head or none",
    )  # fmt: skip
    group.add_argument("--keyframe", metavar="NAME", help="start at this keyframe of the file")
    group.add_argument("--noise", type=not_negative, default=0.0, metavar="X", help="standard deviation of the first velocities")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="of the noise (default: 0)")
    group.add_argument("--float32", action="store_true", help="single precision")
    group = parser.add_argument_group("what is written")
    group.add_argument("--out", metavar="FILE", help="states and controls, as .npz or .csv")
    group.add_argument("--every", type=count, default=1, metavar="N", help="write every N-th state (default: all)")
    _add_load_options(parser)


def _add_load_options(parser: argparse.ArgumentParser) -> None:
    """Those of costate.load; left out ones are None and not passed on."""
    group = parser.add_argument_group("how the file is loaded")
    group.add_argument("--floating", action=argparse.BooleanOptionalAction, help="let the root move freely, or hold it")
    group.add_argument("--ground", nargs="?", type=_number, const=True, metavar="Z", help="add a plane, at this height (0)")
    group.add_argument("--self-collision", action=argparse.BooleanOptionalAction, help="whether one robot's bodies touch")
    group.add_argument("--fuse", action="store_const", const=True, help="fuse bodies that no joint moves")
    group.add_argument(
        "--actuators", choices=("torque", "position", "servo"), help="add an actuator to every joint of a file without any"
    )
    words = {"--kp": "stiffness", "--kd": "damping", "--max-force": "largest force", "--max-speed": "largest speed, of servos"}
    for name, what in words.items():
        group.add_argument(name, type=not_negative, metavar="X", help=f"of these actuators: {what}")
    group.add_argument(
        "--lenient", dest="strict", action="store_const", const=False, help="go on without what cannot be represented"
    )
    group.add_argument("--no-collisions", dest="collisions", action="store_const", const=False, help="nothing touches anything")
    group.add_argument("--max-contacts", type=count, metavar="N", help="most contacts of one world at a time")
    group.add_argument("--hull-vertices", type=count, metavar="N", help="most corners of a convex hull")
    group.add_argument("--search", action="append", metavar="DIR", help="a further folder for meshes and package:// (repeatable)")


LOAD_OPTIONS = (
    "floating", "ground", "self_collision", "fuse", "actuators", "kp", "kd", "max_force", "max_speed", "strict", "collisions",
    "max_contacts", "hull_vertices", "search",
)  # fmt: skip


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run the repository's benchmarks against other engines, on one core."
    parser.add_argument("names", nargs="*", metavar="name", help="which (default: all)")
    parser.add_argument("--quick", action="store_true", help="shorter measurements, noisier numbers")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run one of the repository's examples; without a name, list them."
    parser.add_argument("example", nargs="?", help="its name")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the example, such as --quick")


COMMANDS = {
    "info": (_add_info, "version, processor, threads, torch, GPU"),
    "load": (_add_load, "check a file: what is honoured, approximated, refused"),
    "simulate": (_add_simulate, "simulate a file, and write what happens"),
    "bench": (_add_bench, "benchmarks against other engines"),
    "run": (_add_run, "run an example, or list them"),
}
