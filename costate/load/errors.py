"""What loading a file can raise and warn of."""

from __future__ import annotations

from collections.abc import Iterable


class LoadError(ValueError):
    """A file that cannot be loaded: not found, not well formed, refused by MuJoCo's compiler, or too large."""


class UnsupportedFeature(LoadError):
    """A file that is right, but holds what costate cannot represent.

    Attributes
    ----------
    elements : one line for each thing that is refused, with the names of the elements.
    """

    def __init__(self, message: str, elements: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.elements = tuple(elements)

    def __reduce__(self) -> tuple[type[UnsupportedFeature], tuple[str, tuple[str, ...]]]:
        return UnsupportedFeature, (str(self), self.elements)


class LoadWarning(UserWarning):
    """Something in a file is approximated, repaired or, with strict=False, left out."""
