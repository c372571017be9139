"""Controls of a simulation, from numbers or from a file, checked before anything is computed."""

from __future__ import annotations

import csv
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from costate.cli.errors import UserError, existing_file, hint

FILES = (".npz", ".npy", ".csv")


def read_controls(text: str, names: Sequence[str], worlds: int) -> np.ndarray:
    """Controls [steps, actuators] or [steps, worlds, actuators]; numbers instead of a file give one step, to be held.

    names : of the actuators.
    """
    if not names:
        raise UserError("--controls: this model has no actuators; --actuators torque adds them to files that have none")
    constant = _constant(text, names)
    if constant is not None:
        return constant
    if Path(text).suffix.lower() not in FILES:
        raise UserError(f"--controls must be numbers separated by commas or a file ({', '.join(FILES)}), got {text!r}")
    path = existing_file(text)
    table = _read_csv(path, names) if path.suffix.lower() == ".csv" else _read_arrays(path)
    if table.ndim not in (2, 3) or table.shape[-1] != len(names) or len(table) == 0:
        shown = f"[steps, {len(names)}] or [steps, {worlds}, {len(names)}]"
        raise UserError(f"{path}: controls must have shape {shown}, got {list(table.shape)}")
    if table.ndim == 3 and table.shape[1] not in (1, worlds):
        raise UserError(f"{path}: controls are those of {table.shape[1]} worlds, but --worlds is {worlds}")
    _check_finite(str(path), table, names)
    return table


def _constant(text: str, names: Sequence[str]) -> np.ndarray | None:
    """One number for all, or one for each; None if the text is something else."""
    try:
        numbers = [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        return None
    if len(numbers) not in (1, len(names)):
        raise UserError(f"--controls must be one number, or {len(names)}: {', '.join(names)}; got {len(numbers)}")
    row = np.array([numbers * len(names) if len(numbers) == 1 else numbers])
    _check_finite("--controls", row, names)
    return row


def _check_finite(where: str, table: np.ndarray, names: Sequence[str]) -> None:
    broken = np.argwhere(~np.isfinite(table))
    if len(broken):
        place = broken[0].tolist()
        world = f" of world {place[1]}" if len(place) == 3 else ""
        value = table[tuple(broken[0])]
        raise UserError(f"{where}: controls must be finite, got {value} for {names[place[-1]]!r} in step {place[0]}{world}")


def _read_arrays(path: Path) -> np.ndarray:
    """The array `controls` of an .npz file, or the only one there is; or that of an .npy file."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            array = loaded
        else:
            with loaded as file:
                name = "controls" if "controls" in file.files or len(file.files) != 1 else file.files[0]
                if name not in file.files:
                    raise UserError(f"{path}: needs an array 'controls', there are {', '.join(file.files) or 'none'}")
                array = file[name]
    except (OSError, ValueError, EOFError, KeyError, MemoryError, zipfile.BadZipFile) as error:
        raise UserError(
            f"{path}: not a numpy file of numbers ({str(error).splitlines()[0] if str(error) else 'broken'})"
        ) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise UserError(f"{path}: controls must be real numbers, got {getattr(array, 'dtype', 'something else')}")
    return array.astype(np.float64)


def _read_csv(path: Path, names: Sequence[str]) -> np.ndarray:
    """Rows of numbers. A head may name the actuators, in any order; all of them, or the columns are theirs in order."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = [(reader.line_num, row) for reader in [csv.reader(file)] for row in reader if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read as CSV ({error})") from None
    order = list(range(len(names)))
    if lines and not _is_number(lines[0][1][0]):
        order = _columns(path, [cell.strip() for cell in lines[0][1]], names)
        lines = lines[1:]
    table = []
    for number, row in lines:
        if len(row) != len(names):
            raise UserError(f"{path}, line {number}: needs {len(names)} numbers, one per actuator, got {len(row)}")
        bad = next((cell for cell in row if not _is_number(cell)), None)
        if bad is not None:
            raise UserError(f"{path}, line {number}: must be numbers, got {bad!r}")
        table.append([float(row[i]) for i in order])
    return np.array(table, dtype=np.float64).reshape(len(table), len(names))


def _columns(path: Path, head: list[str], names: Sequence[str]) -> list[int]:
    """Which column holds each actuator."""
    for cell in head:
        if cell not in names:
            raise UserError(f"{path}: no actuator named {cell!r}; {hint(cell, names)}")
    missing = [name for name in names if head.count(name) != 1]
    if missing:
        raise UserError(f"{path}: needs one column for every actuator, {missing[0]!r} is missing or there twice")
    return [head.index(name) for name in names]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def steps_of(time: float, dt: float) -> int:
    """How many steps make up `time` (s): it may be no whole number of them, then the last one ends behind it."""
    return max(1, math.ceil(time / dt - 1e-9))
