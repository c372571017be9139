"""draw: one instant of a planar scene on matplotlib axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from costate.render import parts as p
from costate.render.picture import Picture
from costate.render.view import Limits, Look, check_look, fit, padded, scene_of, touches, track
from costate.scene import Model, Params

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from typing_extensions import Unpack


def draw(
    model: Model, state: Any, *, params: Params | None = None, world: Any = 0, ax: Axes | None = None, contacts: Any = None,
    trail: Any = None, **look: Unpack[Look],
) -> Axes:  # fmt: skip
    """Draw one world of a planar scene and return the axes, 1 m as long upwards as sideways.

    Bodies have colours of their own, those that cannot move are grey. A radius shows how far a circle has turned; dots are
    hinges, squares welds and slides, lines distances, zigzags springs. Half planes fill the view, wherever it is moved.

    Parameters
    ----------
    state : State, or q [..., nq]; torch or numpy.
    params : shared or one row per world; shapes have their sizes and places from here.
    world : which of the worlds: a number that counts through all batch dimensions, or an index per dimension.
    ax : axes to draw on; default: those of a new pyplot figure.
    contacts : Info or Contacts of a step: dots where shapes touch (hollow: they do not push), and impulses as arrows.
    trail : Trajectory or q [T, ..., nq] whose way is drawn, from faint to strong.
    look : limits, colors, labels, joints, axis, trail_of, impulse_scale; see `costate.render.view.Look`.
    """
    p.check_planar("draw", model)
    check_look("draw", look)
    q, one = p.world_of("draw", model, p.configurations("draw", state), params, world, timed=False)
    scene = scene_of("draw", model, p.locate_bodies(model, q, one), look)
    path = None
    if trail is not None:
        past, _ = p.world_of("draw: trail", model, p.configurations("draw: trail", trail), params, world, timed=True)
        path = track(scene, p.locate_bodies(model, past, one))
    touch = None if contacts is None else touches("draw", contacts, world)
    box, limits = fit(scene, path, touch), look.get("limits")
    ax = new_axes(limits or padded(box)) if ax is None else ax
    ax.update_datalim(np.transpose(box))
    if limits is None:  # together with what is drawn there already
        limits = padded(((ax.dataLim.x0, ax.dataLim.x1), (ax.dataLim.y0, ax.dataLim.y1)))
    picture = Picture(ax, scene, limits, look, axis=look.get("axis", True))
    picture.show(0, touch=touch, path=path)
    return ax


def new_axes(limits: Limits) -> Axes:
    """Axes of a new pyplot figure that limits fill."""
    (x0, x1), (y0, y1) = limits
    ratio = min(max((y1 - y0) / (x1 - x0), 0.3), 1.2)
    left, low = 0.7, 0.6  # inches for numbers and words
    return plt.subplots(figsize=(6.4, low + ratio * (6.4 - left)), layout="constrained")[1]
