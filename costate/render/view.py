"""What all ways to draw a planar scene share: options, parts and their colours, trails, contacts, and the limits of the view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypedDict

import numpy as np

from costate.info import SEPARATED
from costate.render import parts as p
from costate.scene import Model
from costate.scene.names import suggest

Limits: TypeAlias = "tuple[tuple[float, float], tuple[float, float]]"

# Of bodies, by index and in turn
COLORS = ("#3b78b5", "#e58a3a", "#4ba36f", "#c8577b", "#8668bd", "#d7ae3c", "#39a2ae", "#a9574a", "#7d9a3c", "#6b7f94")
GREY = "#b9c1c9"  # what cannot move
MARGIN = 0.08  # around what is there, of the longer side
LONGEST = 0.25  # of the view's shorter side: impulses, where no scale is given


class Look(TypedDict, total=False):
    """What a picture shows and how; every function that draws takes these by keyword.

    limits : ((left, right), (bottom, top)), m; default: what fits the scene, and axes that were drawn on before.
    colors : one colour for all bodies, or colours of some of them by name; any that matplotlib knows.
    labels : whether bodies bear their names. Default False.
    joints : whether joints and constraints are drawn. Default True.
    axis : whether there are axes with metres. Default True in `draw`, False in films and strips.
    trail_of : bodies (their centres of mass) and sites, by name, that leave a trail; default: all bodies that move.
    impulse_scale : m per N s; default: the largest impulse, in films and strips nine of ten, is at most a quarter of the view's
        shorter side long.
    """

    limits: Limits | None
    colors: Mapping[str, Any] | str | None
    labels: bool
    joints: bool
    axis: bool
    trail_of: Sequence[str] | None
    impulse_scale: float | None


class Touch(NamedTuple):
    """The contacts of one step in one world."""

    point: np.ndarray  # [n, 2] m
    impulse: np.ndarray  # [n, 2] N s, on the second shape
    pushes: np.ndarray  # [n] bool


class Scenery(NamedTuple):
    """The world at T instants, its parts, their colours, and what leaves trails."""

    model: Model
    world: p.World
    parts: list[p.Part]
    colors: list[Any]  # of bodies
    tracked: list[tuple[str, int]]  # ("body" or "site", index)


# ---- what is given ---------------------------------------------------------------------------------------------------------
def check_look(where: str, look: Look) -> None:
    """Refuse misspelt options and limits that are none; `where` starts the message."""
    for name in look:
        if name not in Look.__annotations__:
            raise TypeError(f"{where}: unknown option {name!r}; {suggest(name, Look.__annotations__)}")
    limits = look.get("limits")
    if limits is not None and (np.shape(limits) != (2, 2) or not all(low < high for low, high in limits)):
        raise ValueError(f"{where}: limits must be ((left, right), (bottom, top)), got {limits!r}")


def scene_of(where: str, model: Model, world: p.World, look: Look) -> Scenery:
    """The parts of a world, their colours and trails; `where` starts error messages."""
    parts = p.parts_of(model, world.params, joints=look.get("joints", True))
    return Scenery(model, world, parts, _colors(where, model, look.get("colors")), _tracked(where, model, look.get("trail_of")))


def _colors(where: str, model: Model, given: Mapping[str, Any] | str | None) -> list[Any]:
    """One per body."""
    own = [COLORS[i % len(COLORS)] if p.moves(model, i) else GREY for i in range(model.nb)]
    if given is None:
        return own
    if not isinstance(given, Mapping):
        return [given if p.moves(model, i) else GREY for i in range(model.nb)]
    for name in given:
        if name not in model.body_names:
            raise ValueError(f"{where}: colors: no body named {name!r}; {suggest(name, model.body_names)}")
    return [given.get(name, color) for name, color in zip(model.body_names, own, strict=True)]


def _tracked(where: str, model: Model, names: Sequence[str] | None) -> list[tuple[str, int]]:
    if names is None:
        return [("body", i) for i in range(model.nb) if p.moves(model, i)]
    known = {**{name: ("site", i) for i, name in enumerate(model.site_names)}}
    known |= {name: ("body", i) for i, name in enumerate(model.body_names)}
    for name in (names,) if isinstance(names, str) else names:
        if name not in known:
            raise ValueError(f"{where}: trail_of: no body or site named {name!r}; {suggest(name, known)}")
    return [known[name] for name in ((names,) if isinstance(names, str) else names)]


def track(scene: Scenery, world: p.World) -> np.ndarray:
    """[T, n, 2] where all that leaves a trail is in a world of the same model, at its T instants."""
    bodies = [i for kind, i in scene.tracked if kind == "body"]
    coms = iter(np.moveaxis(world.locate(p.centres(scene.model, world.params, bodies)), 1, 0))
    points = [next(coms) if kind == "body" else world.sites[:, i] for kind, i in scene.tracked]
    return np.stack(points, 1) if points else np.zeros((len(world.q), 0, 2))


def touches(where: str, contacts: Any, world: Any) -> Touch:
    """The contacts of one world out of Info or Contacts; `where` starts error messages."""
    contacts = getattr(contacts, "contacts", contacts)
    if not hasattr(contacts, "impulse") or not hasattr(contacts, "point"):
        raise TypeError(f"{where}: contacts must be the Info of a step, or its contacts, got {type(contacts).__name__}")
    names = ("active", "point", "impulse", "state")
    active, point, impulse, state = (np.asarray(_plain(getattr(contacts, name))) for name in names)
    row = p.flat_index(where, world, active.shape[:-1])
    there = active.reshape(-1, active.shape[-1])[row].astype(bool)
    point, impulse = (x.reshape(-1, *x.shape[-2:])[row][there][:, :2] for x in (point, impulse))
    return Touch(point, impulse, state.reshape(-1, state.shape[-1])[row][there] > SEPARATED)


def _plain(x: Any) -> Any:
    return x.detach().cpu() if hasattr(x, "detach") else x


# ---- the view --------------------------------------------------------------------------------------------------------------
def fit(scene: Scenery, path: np.ndarray | None = None, touch: Touch | None = None) -> Limits:
    """What holds all bodies at all instants, trails and contacts, and of each half plane the nearest point; no margin."""
    corners: list[np.ndarray] = []
    for part in scene.parts:
        where = scene.world.locate(part)
        if part.kind == "circle":
            radius = np.linalg.norm(part.points[1] - part.points[0])
            corners += [where[:, 0] - radius, where[:, 0] + radius]
        elif part.kind != "half plane":
            corners.append(where.reshape(-1, 2))
    corners += [x.reshape(-1, 2) for x in (path, touch and touch.point) if x is not None]
    corners = corners or [np.zeros((1, 2))]
    low, high = np.concatenate(corners).min(0), np.concatenate(corners).max(0)
    middle, least = (low + high) / 2, np.full(2, 1e-3)
    lines = [tuple(scene.world.locate(part, 0)) for part in scene.parts if part.kind == "half plane"]
    for point, tip in lines:
        near = middle - ((middle - point) @ (tip - point)) * (tip - point)
        if all((near - other) @ (out - other) > -least[0] for other, out in lines):  # not inside another one
            low, high = np.minimum(low, near), np.maximum(high, near)
    low, high = np.minimum(low, middle - least), np.maximum(high, middle + least)
    return (float(low[0]), float(high[0])), (float(low[1]), float(high[1]))


def padded(box: Limits) -> Limits:
    """A box with a margin; never much longer than wide, so that there is something to see."""
    (x0, x1), (y0, y1) = box
    longer = max(x1 - x0, y1 - y0)
    more_x, more_y = (MARGIN * longer + max(0.0, 0.25 * longer - side) / 2 for side in (x1 - x0, y1 - y0))
    return (x0 - more_x, x1 + more_x), (y0 - more_y, y1 + more_y)


def impulse_scale(look: Look, touch: Sequence[Touch], limits: Limits, *, share: float = 1.0) -> float:
    """m per N s: what is asked for, or so that this share of all impulses is at most a quarter of the view's shorter side."""
    given = look.get("impulse_scale")
    if given is not None:
        return given
    sizes = np.concatenate([np.zeros(0), *(np.linalg.norm(x.impulse[x.pushes], axis=-1) for x in touch)])
    most = float(np.quantile(sizes, share)) if len(sizes) else 0.0
    return LONGEST * min(high - low for low, high in limits) / most if most > 0 else 1.0
