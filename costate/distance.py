"""Distances of shapes, as functions of the configuration and every parameter."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from costate._native.cpu import Engine, Op
from costate.batch import check_params
from costate.dynamics import Arg, call, like
from costate.scene import Model, Params
from costate.scene.codes import FIELD, PLANE

NOWHERE = 0.5e10  # gaps above this are none (kNowhere of core/ops/collide/segments.h)


class Distance(NamedTuple):
    """How far two shapes are from each other."""

    gap: Any  # [...] m, negative: how deep they overlap; inf where a shape is not above a heightfield
    normal: Any  # [..., 3] unit, from shape a to shape b, world axes
    point_a: Any  # [..., 3] m, closest point on the surface of a, world
    point_b: Any  # [..., 3] m, the same on b


def distance(model: Model, q: Any, a: str | int, b: str | int, params: Params | None = None) -> Distance:
    """The distance of shapes a and b (names, or indices of model.shape_names) in q [..., nq], differentiable.

    Of overlapping shapes the gap is minus the smallest translation that separates them. The two need not be a pair that may
    touch, but both must be shapes of the engine, that is, collide with something. A cylinder is the prism of 16 sides that
    contact sees, except against planes. Kinks: where another pair of features becomes the closest.
    """
    first, second = (_shape(model, name, x) for name, x in (("a", a), ("b", b)))
    if first == second:
        raise ValueError(f"distance: a and b are the same shape {model.shape_names[first]!r}")
    flat = [i for i in (first, second) if model.shape_type[i] in (PLANE, FIELD)]
    if len(flat) == 2:
        raise ValueError(f"distance: {model.shape_names[first]!r} and {model.shape_names[second]!r} both have no end")
    engines: dict[tuple[int, int], Engine] = model.__dict__.setdefault("_pair_engines", {})
    if (first, second) not in engines:
        engines[first, second] = Engine(model, form=model.engine.tree.form, pairs=np.array([[first, second]]))
    batch, (y,) = call(
        model, Op.DISTANCE, {"q": Arg(q, (model.nq,))}, check_params(model, params), engines[first, second]
    )  # fmt: skip
    y = y.reshape(*batch, 10)
    gap, normal, on_a, on_b = y[..., 0], y[..., 1:4], y[..., 4:7], y[..., 7:10]
    gap = torch.where(gap > NOWHERE, torch.inf, gap)
    if flat and flat[0] == second:  # the engine has what has no end first
        normal, on_a, on_b = -normal, on_b, on_a
    return Distance(*(like(q, x) for x in (gap, normal, on_a, on_b)))


def _shape(model: Model, name: str, shape: Any) -> int:
    if isinstance(shape, str):
        return model.shape(shape)
    if not isinstance(shape, int) or isinstance(shape, bool):
        raise TypeError(f"distance: {name} must be the name or the index of a shape, got {shape!r}")
    if not 0 <= shape < len(model.shape_names):
        raise ValueError(f"distance: {name} must be an index below {len(model.shape_names)}, got {shape}")
    return shape
