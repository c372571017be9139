"""The parameter fields: those of theta (generated layout) and the site frames, which only kinematics reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from costate._native.layout import FIELDS, Field

PARAM_FIELDS: tuple[Field, ...] = (*FIELDS, Field("site_pos", "site", 3), Field("site_quat", "site", 4))
FIELD_NAMES: tuple[str, ...] = tuple(field.name for field in PARAM_FIELDS)

Selection: TypeAlias = "bool | str | Iterable[str]"


def field_shape(field: Field, counts: Mapping[str, int]) -> tuple[int, ...]:
    """Shape of `field` in one world, `counts` saying how many bodies, dofs, ... there are."""
    if field.per == "world":
        return (field.width,)
    count = counts[field.per]
    return (count,) if field.width == 1 else (count, field.width)


def select(names: Selection, argument: str = "requires_grad") -> tuple[str, ...]:
    """Field names meant by `names`: True for all, False for none, one name, or several."""
    if isinstance(names, bool):
        return FIELD_NAMES if names else ()
    chosen = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in FIELD_NAMES:
            raise ValueError(f"{argument}: unknown field {name!r}; the fields are {', '.join(FIELD_NAMES)}")
    return chosen
