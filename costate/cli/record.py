"""States of a simulation as a file: .npz for programs, .csv for spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costate.cli.errors import UserError, user_errors

if TYPE_CHECKING:
    from costate import Model

KINDS = (".npz", ".csv")
MOST_BYTES = 8 * 2**30  # of states in memory

# parts of the joints that have several, as in q and as in v
Q_PARTS = {3: ("qw", "qx", "qy", "qz"), 4: ("x", "y", "z", "qw", "qx", "qy", "qz"), 5: ("x", "y", "angle")}
V_PARTS = {3: ("wx", "wy", "wz"), 4: ("vx", "vy", "vz", "wx", "wy", "wz"), 5: ("vx", "vy", "w")}


def check_out(path: str, model: Model, frames: int, worlds: int) -> None:
    """The file can be written, and what goes into it fits into memory."""
    file = Path(path)
    if file.suffix.lower() not in KINDS:
        raise UserError(f"--out: the file must end in {' or '.join(KINDS)}, got {path!r}")
    if file.is_dir() or not file.parent.is_dir():
        raise UserError(f"--out: there is no folder {str(file.parent)!r}" if not file.is_dir() else f"--out: {path} is a folder")
    size = 8 * frames * worlds * (model.nq + model.nv)
    if size > MOST_BYTES:
        raise UserError(
            f"--out: {frames} states of {worlds} worlds take {size / 2**30:.1f} GiB, more than {MOST_BYTES >> 30}; "
            f"--every {size // MOST_BYTES + 1} writes fewer"
        )


def write(path: str, model: Model, values: dict[str, Any]) -> None:
    """Write `values`: time [T], q [T, worlds, nq], v [T, worlds, nv], controls [T, worlds, nu] or None, and more for .npz."""
    with user_errors():
        if path.lower().endswith(".npz"):
            names = {"q_names": q_names(model), "v_names": v_names(model), "actuator_names": list(model.motor_names)}
            text: dict[str, Any] = {name: np.array(words, dtype=str) for name, words in names.items()}
            arrays: dict[str, Any] = {name: np.asarray(array) for name, array in values.items() if array is not None}
            with open(path, "wb") as file:
                np.savez(file, **arrays, **text)
        else:
            with open(path, "w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(_rows(model, values))


def _rows(model: Model, values: dict[str, Any]) -> Iterator[list[Any]]:
    """The head, then a row for each time and world."""
    q, v, controls = values["q"], values["v"], values["controls"]
    actuators = [f"u.{name}" for name in model.motor_names] if controls is not None else []
    yield ["time", "world", *(f"q.{name}" for name in q_names(model)), *(f"v.{name}" for name in v_names(model)), *actuators]
    for t, time in enumerate(values["time"].tolist()):
        for world in range(q.shape[1]):
            applied = [] if controls is None else controls[min(t, len(controls) - 1), world % controls.shape[1]].tolist()
            yield [repr(time), world, *map(repr, q[t, world].tolist()), *map(repr, v[t, world].tolist()), *map(repr, applied)]


def q_names(model: Model) -> list[str]:
    """One for each number in q: the joint's, with the part where it has several."""
    return _names(model, Q_PARTS, (0, 1, 1))


def v_names(model: Model) -> list[str]:
    """One for each number in v."""
    return _names(model, V_PARTS, (0, 1, 1))


def _names(model: Model, parts: dict[int, tuple[str, ...]], single: tuple[int, ...]) -> list[str]:
    joints = zip(model.joint_names, model.joint_type, strict=True)
    return [
        name
        for joint, code in joints
        for name in ([f"{joint}.{part}" for part in parts[code]] if code in parts else [joint] * single[code])
    ]
