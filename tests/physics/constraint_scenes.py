"""Mechanisms for the tests of constraints and servos: four-bar linkage, chains, and one free direction between two bodies."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import costate as cs
from tests.physics.contact_scenes import quat_mul, rotate, turn

CONJ = np.array([1, -1, -1, -1])


# ---- the four-bar linkage ------------------------------------------------------------------------------------------
GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.3, 0.9, 0.8  # m; the crank goes round (Grashof: 0.3 + 1.0 < 0.9 + 0.8)
START = 0.5  # rad
UP = (0, -1, 0)  # angles in the x-z plane count from x towards z


def four_bar_angles(crank: Any) -> tuple[Any, Any]:
    """World angles of coupler and rocker by the loop equation: two circles about the crank's pin and the rocker's meet."""
    x, z = GROUND - CRANK * np.cos(crank), -CRANK * np.sin(crank)
    d = np.hypot(x, z)
    coupler = np.arctan2(z, x) + np.arccos((COUPLER**2 + d**2 - ROCKER**2) / (2 * COUPLER * d))
    return coupler, np.arctan2(-z + COUPLER * np.sin(coupler), -x + COUPLER * np.cos(coupler))


def rod(length: float) -> dict[str, Any]:
    """1 kg per metre along x, a rod in the x-z plane."""
    return {"mass": length, "com": (length / 2, 0, 0), "inertia": (1e-3 * length, length**3 / 12, length**3 / 12)}


def four_bar(closing: str, *, maximal: bool = False, **servo: Any) -> cs.Model:
    """Crank with a servo, coupler, rocker. closing: "lock" (x and z: nothing redundant), "point" (y is), "hinge" (y, rx, rz are).

    maximal: three free bodies and four constraints instead of three joints and one.
    """
    coupler, rocker = map(float, four_bar_angles(START))
    pin = (CRANK * math.cos(START), 0.0, CRANK * math.sin(START))
    scene, drive = cs.Scene(), "crank"
    if maximal:
        for name, length, at, angle in (
            ("crank", CRANK, (0, 0, 0), START), ("coupler", COUPLER, pin, coupler), ("rocker", ROCKER, (GROUND, 0, 0), rocker),
        ):  # fmt: skip
            scene.add_body(name, joint=cs.Free(), pos=at, quat=turn(UP, angle), **rod(length))
        drive = scene.add_hinge(None, "crank", axis=UP, pos_b=(0, 0, 0), quat_b=(1, 0, 0, 0), name="drive")  # angle from x
        scene.add_hinge("crank", "coupler", axis=UP, pos=(CRANK, 0, 0))
        scene.add_hinge(None, "rocker", axis=UP, pos=(GROUND, 0, 0))
    else:
        scene.add_body("crank", joint=cs.Revolute(UP, initial=START), **rod(CRANK))
        joint = cs.Revolute(UP, initial=coupler - START)
        scene.add_body("coupler", parent="crank", pos=(CRANK, 0, 0), joint=joint, **rod(COUPLER))
        scene.add_body("rocker", pos=(GROUND, 0, 0), joint=cs.Revolute(UP, initial=rocker), **rod(ROCKER))
    ends: dict[str, Any] = {"pos": (COUPLER, 0, 0), "pos_b": (ROCKER, 0, 0), "name": "closing"}
    if closing == "lock":
        scene.add_lock("coupler", "rocker", x=True, z=True, quat_b=(1, 0, 0, 0), **ends)
    elif closing == "point":
        scene.add_point("coupler", "rocker", **ends)
    else:
        scene.add_hinge("coupler", "rocker", axis=UP, **ends)
    scene.add_servo(drive, **({"gain": 20.0, "max_force": 500.0, "max_speed": 10.0} | servo))
    return scene.build()


def plane_angles(model: cs.Model, q: np.ndarray) -> np.ndarray:
    """[..., nb] angles of all bodies that turn about UP."""
    quat = cs.kinematics(model, q).quaternion
    return -2 * np.arctan2(quat[..., 2], quat[..., 0])


# ---- chains --------------------------------------------------------------------------------------------------------
LINK = 0.1  # m


def chain(n: int, start: float, *, maximal: bool, kind: str = "hinge", middle: bool = False, fixed: bool = True) -> cs.Model:
    """n links of 0.1 m that hang straight from the origin, turned by `start` about y.

    kind: "hinge" constraints as revolute joints, or "point" as ball joints. middle: bodies have their origins in their
    middles instead of at their upper ends. fixed: its upper end hangs on the world; else it floats without gravity.
    """
    scene = cs.Scene(gravity=(0, 0, -9.81 if fixed else 0))
    lift, shift = (LINK / 2, np.zeros(3)) if middle else (0.0, np.array((0, 0, -LINK / 2)))
    body: dict[str, Any] = {"mass": 0.5, "com": shift, "inertia": (5e-4, 5e-4, 1e-4)}
    quat, parent = turn((0, 1, 0), start), None
    for i in range(n):
        name, at = f"link{i}", rotate(quat, (0, 0, -LINK * i - lift))
        if maximal or not (i or fixed):
            scene.add_body(name, joint=cs.Free(), pos=at, quat=quat, **body)
            if i or fixed:
                ends: dict[str, Any] = {"pos": (0, 0, lift - LINK if i else 0), "pos_b": (0, 0, lift)}
                if kind == "hinge":
                    scene.add_hinge(parent, name, axis=(0, 1, 0), quat_b=(1, 0, 0, 0), **ends)
                else:
                    scene.add_point(parent, name, **ends)
        else:
            anchor, first = {"anchor": (0, 0, lift)}, {"initial": quat if kind == "point" else start} if i == 0 else {}
            joint = cs.Revolute((0, 1, 0), **anchor, **first) if kind == "hinge" else cs.Ball(**anchor, **first)
            scene.add_body(name, parent=parent, joint=joint, pos=(0, 0, -LINK if i else -lift), **body)
        parent = name
    return scene.build()


def spin(model: cs.Model, start: float, rate: float) -> np.ndarray:
    """v of such a chain that turns about the vertical as one, at `rate` (rad/s)."""
    own = rotate(turn((0, 1, 0), start) * CONJ, (0, 0, rate))  # in the links' axes
    if model.nv != 6 * model.nb:
        return np.concatenate([own, np.zeros(model.nv - 3)])
    p = cs.kinematics(model, np.array(model.q0)).position
    return np.concatenate([np.concatenate([np.cross((0, 0, rate), x), own]) for x in p])


# ---- one free direction --------------------------------------------------------------------------------------------
AXIS = np.array([0.48, -0.6, 0.64])  # unit
TILT = turn((0.6, 0.0, 0.8), 0.7)  # of bodies
BODY, SECOND = (2.0, 0.3), (1.2, 0.5)  # kg, kg m^2: of the body that moves, and of the one it pushes against


class Drive(NamedTuple):
    """A scene in which one direction between two bodies, or a body and the world, is free; `joint` names it."""

    scene: cs.Scene
    joint: str
    inertia: float  # kg or kg m^2 along it
    turns: bool

    def x(self, model: cs.Model, q: np.ndarray) -> np.ndarray:
        """Angle (unwrapped along the first dimension) or displacement, from the poses of the bodies."""
        kin = cs.kinematics(model, q)
        quat, p = kin.quaternion, kin.position
        if not self.turns:
            axis = rotate(TILT, AXIS)
            return (p[..., -1, :] - (p[..., 0, :] if model.nb > 1 else 0)) @ axis
        rest = quat[..., 0, :] * CONJ if model.nb > 1 else TILT * CONJ
        relative = np.array([quat_mul(a, b) for a, b in zip(np.broadcast_to(rest, quat[..., -1, :].shape), quat[..., -1, :])])
        return np.unwrap(2 * np.arctan2(relative[:, 1:] @ AXIS, relative[:, 0]))

    def with_servo(self, **options: Any) -> cs.Model:
        self.scene.add_servo(self.joint, **options)
        return self.scene.build()


def drive(kind: str, *, gravity: Any = (0, 0, 0)) -> Drive:
    """kind: revolute, prismatic: joints; hinge, slide: constraints to the world; hinge pair, slide pair: between two bodies."""
    turns = kind.split()[0] in ("revolute", "hinge")
    scene = cs.Scene(gravity=gravity)
    numbers = [{"mass": m, "inertia": (I, I, I)} for m, I in (BODY, SECOND)]
    inertia = BODY[turns]
    if kind in ("revolute", "prismatic"):
        scene.add_body("b", joint=cs.Revolute(AXIS) if turns else cs.Prismatic(AXIS), quat=TILT, **numbers[0])
        return Drive(scene, "b", inertia, turns)
    if kind.endswith("pair"):
        inertia = inertia * SECOND[turns] / (inertia + SECOND[turns])
        scene.add_body("a", joint=cs.Free(), quat=TILT, **numbers[1])
    scene.add_body("b", joint=cs.Free(), quat=TILT, **numbers[0])
    a = "a" if kind.endswith("pair") else None
    # the axis is one of frame a's own coordinates, those of b follow
    quat = (1, 0, 0, 0) if a else TILT
    add = scene.add_hinge if turns else scene.add_slide
    return Drive(scene, add(a, "b", axis=AXIS, quat=quat, name="driven"), inertia, turns)


DRIVES = ("revolute", "prismatic", "hinge", "slide", "hinge pair", "slide pair")
