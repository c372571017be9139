"""Scene: describe bodies, joints, sites and motors, then `build()` an immutable Model."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from costate.scene.body import ORIGIN, UPRIGHT, Body, inertia_numbers, joint_numbers
from costate.scene.checks import DIRECTION, checked
from costate.scene.fields import PARAM_FIELDS
from costate.scene.joints import Fixed, Free, Joint
from costate.scene.model import Model
from costate.scene.names import WORLD, new_name, suggest
from costate.scene.params import Params
from costate.scene.shapes import Shape
from costate.scene.values import Numbers


@dataclass(frozen=True)
class _Site:
    body: int
    numbers: dict[str, Tensor]


@dataclass(frozen=True)
class _Motor:
    joint: int
    dof: int
    numbers: dict[str, Tensor]


class Scene:
    """A scene to be built. `gravity` [3] in m/s^2, world axes.

    All numbers may be torch tensors, also inside tuples. They are read when given; `params()` keeps their graph.
    """

    def __init__(self, *, gravity: Numbers = (0.0, 0.0, -9.81)) -> None:
        self._gravity = checked("Scene: gravity", gravity, (3,))
        self._bodies: list[Body] = []
        self._index: dict[str, int] = {}  # of bodies by name
        self._joints: dict[str, int] = {}
        self._sites: dict[str, _Site] = {}
        self._motors: dict[str, _Motor] = {}

    def add_body(
        self,
        name: str | None = None,
        *,
        parent: str | int | None = None,
        joint: Joint = Fixed(),  # noqa: B008 (frozen)
        pos: Numbers = ORIGIN,
        quat: Numbers = UPRIGHT,
        mass: Numbers | None = None,
        com: Numbers | None = None,
        inertia: Numbers | None = None,
        shapes: Shape | Sequence[Shape] = (),
        massless: bool = False,
    ) -> str:
        """Add a body with the joint that ties it to its parent, and return its name.

        Parameters
        ----------
        name : defaults to "body0", "body1", ...
        parent : name or index of a body added before; None or "world" for the world.
        pos, quat : joint frame in the parent's frame (m, wxyz). For `Free`: the initial pose in the world.
        mass, com, inertia : kg, m [3] (default 0), kg m^2 about the centre of mass in body axes: 6 numbers
            (xx, yy, zz, xy, xz, yz), a diagonal of 3 or a 3x3 matrix.
        shapes : solids that give mass, com and inertia; a `mass` beside them scales their inertia, and a `mass` with
            `inertia` replaces it.
        massless : the body has no mass; for stacking several joints.
        """
        name = new_name(f"add_body({name!r}): ", "body", name, f"body{len(self._bodies)}", self._index)
        where = f"add_body({name!r}): "
        if not isinstance(joint, Joint):
            raise TypeError(f"{where}joint must be a joint such as Revolute(), got {joint!r}")
        shapes = (shapes,) if isinstance(shapes, Shape) else tuple(shapes)
        for shape in shapes:
            if not isinstance(shape, Shape):
                raise TypeError(f"{where}shapes must be shapes such as Sphere(0.1), got {shape!r}")
        index = -1 if parent in (None, WORLD, -1) else _find(f"{where}unknown parent", parent, self._index)
        if isinstance(joint, Free) and index >= 0:
            raise ValueError(f"{where}a free joint needs the world as parent, got parent {parent!r}")
        joint_name = new_name(where, "joint", joint.name, name, self._joints)
        numbers = inertia_numbers(where, mass=mass, com=com, inertia=inertia, shapes=shapes, massless=massless)
        joint_rows, q0 = joint_numbers(where, joint, pos=pos, quat=quat)
        drawn = tuple(shape.detach() for shape in shapes)
        self._index[name] = self._joints[joint_name] = len(self._bodies)
        self._bodies.append(Body(name, joint_name, index, joint, massless, drawn, q0, {**numbers, **joint_rows}))
        return name

    def add_site(self, name: str | None = None, *, body: str | int, pos: Numbers = ORIGIN, quat: Numbers = UPRIGHT) -> str:
        """Add a frame fixed in `body`, at `pos` (m) with orientation `quat` (wxyz) in its frame; return its name."""
        name = new_name(f"add_site({name!r}): ", "site", name, f"site{len(self._sites)}", self._sites)
        where = f"add_site({name!r}): "
        numbers = {
            "site_pos": checked(f"{where}pos", pos, (3,)),
            "site_quat": checked(f"{where}quat", quat, (4,), DIRECTION),
        }
        self._sites[name] = _Site(_find(f"{where}unknown body", body, self._index), numbers)
        return name

    def add_motor(self, joint: str | int, *, dof: int = 0, gear: Numbers = 1.0, name: str | None = None) -> str:
        """Add a motor on one `dof` of a joint (named by joint or body): force (N or N m) = gear * control; return its name."""
        where = f"add_motor({joint!r}): "
        index = _find(f"{where}unknown joint", joint, {**self._index, **self._joints})
        body = self._bodies[index]
        if not 0 <= dof < body.joint.nv:
            raise ValueError(f"{where}dof must be below {body.joint.nv}, the dofs of this joint, got {dof}")
        default = body.joint_name if body.joint.nv == 1 else f"{body.joint_name}_{dof}"
        name = new_name(where, "motor", name, default, self._motors)
        self._motors[name] = _Motor(index, dof, {"gear": checked(f"{where}gear", gear, ())})
        return name

    def add_motors(self, gear: Numbers = 1.0) -> tuple[str, ...]:
        """Add one motor per dof of every joint that is neither free nor fixed, in the order of dofs; return their names."""
        moving = [(i, body.joint) for i, body in enumerate(self._bodies) if not isinstance(body.joint, Free)]
        return tuple(self.add_motor(i, dof=dof, gear=gear) for i, joint in moving for dof in range(joint.nv))

    def build(self) -> Model:
        """The model, with detached copies of all numbers as its defaults."""
        return self._model(self._tensors())

    def params(self) -> Params:
        """Parameters in float64 that keep the graph of the tensors given to this scene."""
        tensors = self._tensors()
        return Params(self._model(tensors), tensors)

    def __repr__(self) -> str:
        return f"Scene({len(self._bodies)} bodies, {len(self._sites)} sites, {len(self._motors)} motors)"

    def _model(self, tensors: dict[str, Tensor]) -> Model:
        bodies = self._bodies
        if not bodies:
            raise ValueError("Scene: build needs at least one body, got none")
        _check_massless(bodies)
        v_address = list(itertools.accumulate((body.joint.nv for body in bodies), initial=0))
        return Model(
            body_names=tuple(self._index),
            joint_names=tuple(self._joints),
            site_names=tuple(self._sites),
            motor_names=tuple(self._motors),
            parent=tuple(body.parent for body in bodies),
            joint_type=tuple(body.joint.code for body in bodies),
            motor_dof=tuple(v_address[motor.joint] + motor.dof for motor in self._motors.values()),
            site_body=tuple(site.body for site in self._sites.values()),
            massless=tuple(body.massless for body in bodies),
            shapes=tuple(body.shapes for body in bodies),
            q0=np.concatenate([body.q0 for body in bodies]),
            defaults=tensors,
        )

    def _tensors(self) -> dict[str, Tensor]:
        """Every parameter field, with graph: rows per body, motor or site are stacked, those per q or dof concatenated."""
        bodies, motors, sites = self._bodies, list(self._motors.values()), list(self._sites.values())
        owners = {"body": bodies, "q": bodies, "dof": bodies, "motor": motors, "site": sites}
        tensors: dict[str, Tensor] = {}
        for field in PARAM_FIELDS:
            if field.per == "world":
                tensors[field.name] = self._gravity.clone()
                continue
            rows = [owner.numbers[field.name] for owner in owners[field.per]]
            join = torch.cat if field.per in ("q", "dof") else torch.stack
            empty = (0,) if field.width == 1 else (0, field.width)
            tensors[field.name] = join(rows) if rows else torch.zeros(empty, dtype=torch.float64)
        return tensors


def _find(complaint: str, key: str | int, known: Mapping[str, int]) -> int:
    """Index of what is given by name or index."""
    if isinstance(key, str) and key in known:
        return known[key]
    if isinstance(key, int) and key in known.values():
        return key
    raise ValueError(f"{complaint} {key!r}; {suggest(key, known)}")


def _check_massless(bodies: Sequence[Body]) -> None:
    """A joint that moves no mass has no acceleration."""
    carries = [not body.massless for body in bodies]
    for index in reversed(range(len(bodies))):
        body = bodies[index]
        if body.parent >= 0:
            carries[body.parent] = carries[body.parent] or carries[index]
        if body.joint.nv > 0 and not carries[index]:
            raise ValueError(f"build: massless body {body.name!r} moves but carries no body with mass, got mass 0.0")
