"""costate load: what became of the elements of a file."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from costate.cli.errors import REFUSED, UserError, describe, existing_file, user_errors
from costate.cli.output import Output
from costate.cli.parser import LOAD_OPTIONS

if TYPE_CHECKING:
    from costate import Model

SAVED = ".npz"  # models that costate saved


class Checked(NamedTuple):
    """What became of a file; `model` is None where something is refused."""

    model: Model | None
    honoured: list[str]
    approximated: list[str]
    refused: list[str]


def run(arguments: Namespace, out: Output) -> int:
    """Print the findings, and the summary if it is wanted; exit code 1 if something is refused."""
    checked = check_file(arguments)
    model = checked.model
    for title, style in (("honoured", "green"), ("approximated", "yellow"), ("refused", "red")):
        lines = getattr(checked, title)
        if lines:
            out.line(title, style=f"bold {style}")
            for line in lines:
                out.line(f"  {line}")
    if model is not None:
        if checked.honoured or checked.approximated:
            out.line()
        out.line(model.summary() if arguments.summary else _brief(model))
        if arguments.save:
            _save(model, arguments.save)
            out.line(f"saved as {arguments.save}")
    else:
        out.line("not loaded; --lenient goes on without what is refused", style="bold")
    out.result(_object(arguments.file, checked))
    return 0 if model is not None else REFUSED


def check_file(arguments: Namespace) -> Checked:
    """Load the file, whatever is refused; UserError if it is broken."""
    path = existing_file(arguments.file)
    if path.suffix.lower() == SAVED:
        model = load_file(arguments)[0]
        return Checked(model, [], [], [])
    options = load_options(arguments)
    strict = options.pop("strict", True)
    with user_errors():
        from costate.load import examine

        model, findings = examine(path, **options)
    refused = strict and findings.refused
    return Checked(None if refused else model, findings.honoured, findings.approximated, findings.refused)


def load_file(arguments: Namespace) -> tuple[Model, list[str]]:
    """The model, and the warnings of loading it; UserError, with exit code 1 where something is refused."""
    path, options = existing_file(arguments.file), load_options(arguments)
    if path.suffix.lower() == SAVED:
        if options:
            raise UserError(f"--{next(iter(options)).replace('_', '-')} is for files that are loaded; {path} is a saved model")
        with user_errors():
            from costate import Model

            return Model.load(path), []
    with user_errors(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from costate.load import load

        model = load(path, **options)
    return model, [describe_warning(warning).removeprefix(f"{path}: ") for warning in caught]


def load_options(arguments: Namespace) -> dict[str, Any]:
    """Those that were given."""
    values = {name: getattr(arguments, name) for name in LOAD_OPTIONS}
    return {name: value for name, value in values.items() if value is not None}


def describe_warning(warning: warnings.WarningMessage) -> str:
    """What it says, in one line."""
    return describe(warning.message) if isinstance(warning.message, Warning) else str(warning.message)


def _save(model: Model, path: str) -> None:
    if Path(path).suffix.lower() != SAVED:
        raise UserError(f"--save: the file must end in {SAVED}, got {path!r}")
    with user_errors():
        model.save(path)


def _brief(model: Model) -> str:
    """One line: what and how much."""
    mass = model.defaults["mass"].sum().item()
    kinds = Counter(_joint_kinds(model))
    joints = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    words = [f"{model.nb} bodies ({mass:.4g} kg)", f"{model.nv} degrees of freedom ({joints})", f"{model.nu} actuators"]
    counted = (
        (len(model.shape_body), "shapes that may touch"), (model.ne, "rows of constraints"), (model.ns, "sites"),
        (len(model.keyframes), "keyframes"),
    )  # fmt: skip
    return ", ".join(words + [f"{n} {what}" for n, what in counted if n])


def _joint_kinds(model: Model) -> list[str]:
    from costate.scene.joints import JOINTS

    return [JOINTS[code].__name__.lower() for code in model.joint_type]


def _object(file: str, checked: Checked) -> dict[str, Any]:
    model = checked.model
    found = {
        "file": file, "loaded": model is not None, "honoured": checked.honoured, "approximated": checked.approximated,
        "refused": checked.refused,
    }  # fmt: skip
    if model is None:
        return {**found, "model": None}
    return {
        **found,
        "model": {
            "bodies": list(model.body_names),
            "joints": dict(zip(model.joint_names, _joint_kinds(model), strict=True)),
            "actuators": list(model.motor_names),
            "sites": list(model.site_names),
            "shapes": list(model.shape_names),
            "constraints": [*model.tie_names, *model.coupling_names],
            "keyframes": list(model.keyframes),
            "nq": model.nq,
            "nv": model.nv,
            "nu": model.nu,
            "ne": model.ne,
            "pairs": len(model.pairs),
            "mass": model.defaults["mass"].sum().item(),
            "timestep": model.timestep,
        },
    }
