"""Inertias that no body can have, and moving links that have none: the smallest change after which MuJoCo takes them.

MuJoCo asks of each <inertia> for principal moments A <= B <= C with A > 0 and A + B >= C, or all zero; and of everything that
moves, together with what is fixed to it, for a link with mass and inertia.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from costate.load.urdf_bounds import extent
from costate.load.urdf_parts import Inertial, Joint, Link, Origin, Robot

NO_MASS = 1e-14  # kg; MuJoCo refuses 1e-15 and less in what moves
NO_INERTIA = 2e-14  # kg m^2; MuJoCo refuses principal moments of 1e-14 and less
SLIMMEST = 1e-3  # smallest principal moment over the largest that a repair leaves: a rod 40 times longer than wide
MARGIN = 1e-9  # of the largest moment: A + B is that much above C after a repair, for MuJoCo computes them again
ROUNDING = 1e-14  # of the largest moment: off the diagonal, A + B = C cannot be told better

WATER = 1000.0  # kg/m^3, MuJoCo's density of shapes
LIGHT_INSIDE = 1e-6  # of the robot's mass: what a link without mass gets if it carries some
LIGHT_END = 1e-3  # the same if it carries none: its joint would have no inertia at all
RADIUS = 0.1  # m, radius of gyration of both


def repair_inertias(robot: Robot, notes: list[str], *, floating: bool) -> None:
    """Make all inertias possible, and give some to what moves without; changes the robot."""
    balanced = robot.setting("compiler", "balanceinertia") == "true"
    for link in robot.links:
        if link.inertial is not None:
            _repair_one(link, link.inertial, notes, balanced)
    if robot.setting("compiler", "boundmass") is not None or robot.setting("compiler", "inertiafromgeom") == "true":
        return  # the file itself asks MuJoCo to care for that
    total, carried = _masses(robot)
    for group in _moving_groups(robot, floating):
        if not any(_has_both(link) for link in group):
            _give_inertia(group, carried[group[0].name], total, notes)
        for link in group:
            if link.inertial is None and link.collisions():
                notes.append(f"link {link.name!r} has no <inertial>: MuJoCo takes it from its shapes, at {WATER:g} kg/m^3")


# ---- one inertia ---------------------------------------------------------------------------------------------------
def _repair_one(link: Link, inertial: Inertial, notes: list[str], balanced: bool) -> None:
    where = f"link {link.name!r}"
    if inertial.mass < 0:
        notes.append(f"{where}: the mass is {inertial.mass:g} kg, 0 is taken")
        inertial.mass = 0.0
    inertia, what = possible(inertial.inertia, balanced)
    if what:
        notes.append(f"{where}: {what}")
    inertial.inertia = inertia


def possible(inertia: np.ndarray, balanced: bool = False) -> tuple[np.ndarray, str]:
    """The nearest inertia [3, 3] (least squares) that a body can have, and in words what was changed, empty if nothing was.

    With `balanced`, A + B < C is left to MuJoCo.
    """
    if np.abs(inertia).max() <= NO_INERTIA:
        return np.zeros((3, 3)), ""
    diagonal = not (inertia - np.diag(np.diag(inertia))).any()
    order = np.argsort(np.diag(inertia))
    moments, axes = (np.diag(inertia)[order], np.eye(3)[:, order]) if diagonal else np.linalg.eigh(inertia)
    before, what = moments.copy(), []
    if moments[2] <= NO_INERTIA:
        return np.zeros((3, 3)), f"no principal moment of inertia is positive ({_written(before)}), all are taken as 0"
    if moments[0] <= NO_INERTIA:
        moments = np.maximum(moments, max(SLIMMEST * moments[2], 2 * NO_INERTIA))
        what.append("are not all positive")
    lack = moments[2] - moments[0] - moments[1]
    if lack > (0.0 if diagonal else -ROUNDING * moments[2]) and not balanced:
        moments = moments + np.array([1.0, 1.0, -1.0]) * (lack / 3 + MARGIN * moments[2])
        what.append("do not fulfil A + B >= C")
    if not what:
        return inertia, ""
    words = (
        f"the principal moments of inertia {' and '.join(what)} ({_written(before)} kg m^2); the nearest possible ones are taken"
    )
    return (axes * moments) @ axes.T, f"{words} ({_written(moments)} kg m^2)"


def _written(moments: Iterable[float]) -> str:
    return ", ".join(f"{moment:.6g}" for moment in moments)


# ---- what moves ----------------------------------------------------------------------------------------------------
def _has_both(link: Link) -> bool:
    """Whether a link has mass and inertia in MuJoCo's eyes."""
    if link.inertial is None:
        return bool(link.collisions())  # of which MuJoCo takes them
    return link.inertial.mass > NO_MASS and bool(link.inertial.inertia.any())


def _moving_groups(robot: Robot, floating: bool) -> list[list[Link]]:
    """Links that move as one, as lists with the link on the joint that moves first; what is fixed to the world is none."""
    groups: dict[str, list[Link] | None] = {}
    for link, joint in robot.downwards():
        if joint is not None and joint.kind == "fixed":
            group = groups[joint.parent]
            groups[link.name] = group
            if group is not None:
                group.append(link)
        else:
            groups[link.name] = [link] if joint is not None or (floating and link.name != "world") else None
    unique = {id(group): group for group in groups.values() if group is not None}
    return list(unique.values())


def _masses(robot: Robot) -> tuple[float, dict[str, float]]:
    """The mass of the robot, and of each link with everything below it; where MuJoCo takes it from shapes, it counts as 1 kg."""
    order: list[tuple[Link, Joint | None]] = list(robot.downwards())
    below = {link.name: link.inertial.mass if link.inertial is not None else float(bool(link.collisions())) for link, _ in order}
    total = sum(below.values())
    for link, joint in reversed(order):
        if joint is not None:
            below[joint.parent] += below[link.name]
    return total, below


def _give_inertia(group: list[Link], carried: float, total: float, notes: list[str]) -> None:
    """Inertia for those links of a group that have mass; if none has any, a small mass and inertia for the first one."""
    heavy = [(link, link.inertial) for link in group if link.inertial is not None and link.inertial.mass > NO_MASS]
    for link, inertial in heavy:
        if not inertial.inertia.any():
            _from_extent(link, inertial, notes)
    if heavy:
        return
    link = group[0]
    share = LIGHT_INSIDE if carried > NO_MASS else LIGHT_END
    mass = share * (total if total > NO_MASS else 1.0)
    if link.inertial is None:
        link.inertial = Inertial(Origin(), 0.0, np.zeros((3, 3)), link.line)
    link.inertial.mass = mass
    given = ""
    if not link.inertial.inertia.any():
        link.inertial.inertia = mass * RADIUS**2 * np.eye(3)
        given = f" and {mass * RADIUS**2:.3g} kg m^2"
    part = f" ({share:g} of the robot's mass)" if total > NO_MASS else ""
    notes.append(f"link {link.name!r} moves, but has no mass: it gets {mass:.3g} kg{given}{part}")


def _from_extent(link: Link, inertial: Inertial, notes: list[str]) -> None:
    """The inertia of a solid box around the link's shapes, of the link's mass, at its centre of mass."""
    box = extent(link)
    if box is None or not box.any():
        radius = (3 * inertial.mass / (4 * np.pi * WATER)) ** (1 / 3)
        moments = np.full(3, 0.4 * inertial.mass * radius**2)
        shape = f"a ball of water of radius {radius:.3g} m"
    else:
        moments = inertial.mass / 12 * (np.sum(box**2) - box**2)
        shape = f"a box around its shapes ({' x '.join(f'{side:.4g}' for side in box)} m)"
    inertial.inertia = possible(np.diag(moments))[0]
    inertial.origin.rpy = np.zeros(3)
    values = _written(np.diag(inertial.inertia))
    notes.append(f"link {link.name!r} moves, but has no inertia: it gets that of {shape} with its mass: {values} kg m^2")
