"""The mujoco package: imported when it is first needed, because `import costate` does not need it."""

from __future__ import annotations

from importlib import import_module
from typing import Any, TypeAlias

MjModel: TypeAlias = Any  # mujoco.MjModel; type checkers cannot look into the package


def mujoco() -> Any:
    """The package."""
    return import_module("mujoco")
