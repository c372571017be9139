"""Pictures and films of planar scenes, drawn with matplotlib:  pip install costate[render].

matplotlib is imported when one of the functions is first asked for: whoever draws nothing needs neither it nor its time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costate.render.film import Film, frames, save, strip
    from costate.render.planar import draw

__all__ = ["Film", "draw", "frames", "save", "strip"]

_HOMES = {"draw": "planar", "Film": "film", "frames": "film", "save": "film", "strip": "film"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("costate"):
            raise
        raise ImportError(f"costate.render.{name} needs matplotlib and pillow: pip install costate[render]") from error


def __dir__() -> list[str]:
    return __all__
