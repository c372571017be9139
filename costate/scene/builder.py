"""Scene: describe bodies, joints, shapes, sites, actuators and constraints, then `build()` an immutable Model."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from costate.scene.add_actuators import AddActuators
from costate.scene.add_constraints import AddConstraints
from costate.scene.assemble import Parts, Site, assemble
from costate.scene.body import Body, dry_friction, inertia_numbers, joint_numbers
from costate.scene.checks import checked
from costate.scene.codes import PAIR_RULES
from costate.scene.constraints import held_by
from costate.scene.contacts import PlacedShape, Side, check_static, place
from costate.scene.frames import lift, orientation, point, read_frame, two_numbers
from costate.scene.joints import Fixed, Free, Joint, Planar
from costate.scene.model import Model
from costate.scene.names import WORLD, body_or_world, find, new_name
from costate.scene.params import Params
from costate.scene.planar import check_dimension, in_plane
from costate.scene.planar_shapes import HalfPlane
from costate.scene.shapes import Plane, Shape
from costate.scene.values import Numbers


class Scene(AddActuators, AddConstraints):
    """A scene to be built.

    All numbers may be torch tensors, also inside tuples. They are read when given; `params()` keeps their graph.

    Parameters
    ----------
    planar : whether it lies in the plane, with x to the right and y upwards. Then positions are 2 numbers and orientations angles
        (rad); see `add_body`.
    gravity : [3], m/s^2, world axes, default (0, 0, -9.81); planar [2], default (0, -9.81).
    collisions : whether shapes touch each other at all; if not, they only give inertia.
    self_collision : whether bodies of one tree touch each other; a body and its parent never do (see `exclude`).
    friction_rule, restitution_rule : what makes one coefficient of those of two shapes that touch: "geometric" (mean),
        "maximum", "minimum", "arithmetic" (mean) or "product".
    max_contacts : most contacts of one world at a time; None for as many as there can be, up to 48 or 12 per tree.
    """

    def __init__(
        self,
        *,
        planar: bool = False,
        gravity: Numbers | None = None,
        collisions: bool = True,
        self_collision: bool = True,
        friction_rule: str = "geometric",
        restitution_rule: str = "geometric",
        max_contacts: int | None = None,
    ) -> None:
        if max_contacts is not None and (not isinstance(max_contacts, int) or isinstance(max_contacts, bool) or max_contacts < 1):
            raise ValueError(f"Scene: max_contacts must be a positive int or None, got {max_contacts!r}")
        self._parts = Parts(
            planar=_switch("planar", planar),
            gravity=_gravity(planar, gravity),
            collisions=_switch("collisions", collisions),
            self_collision=_switch("self_collision", self_collision),
            friction_rule=_rule("friction_rule", friction_rule),
            restitution_rule=_rule("restitution_rule", restitution_rule),
            max_contacts=-1 if max_contacts is None else max_contacts,
        )

    def add_body(
        self,
        name: str | None = None,
        *,
        parent: str | int | None = None,
        joint: Joint | None = None,
        pos: Numbers | None = None,
        quat: Numbers | None = None,
        angle: Numbers | None = None,
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
        joint : default `Fixed()`; in a planar scene, without a parent, `Planar()`.
        pos, quat : joint frame in the parent's frame (m, wxyz), by default that one. For `Free`: the initial pose in the world.
        mass, com, inertia : kg, m [3] (default 0), kg m^2 about the centre of mass in body axes: 6 numbers
            (xx, yy, zz, xy, xz, yz), a diagonal of 3 or a 3x3 matrix.
        shapes : what it touches with, and solids that give mass, com and inertia; a `mass` beside them scales their
            inertia, and a `mass` with `inertia` replaces it.
        massless : the body has no mass; for stacking several joints.

        In a planar scene pos and com are 2 numbers, inertia is one (kg m^2 about z), and `angle` (rad) stands in place of quat.
        Joints are `Revolute` (about z), `Prismatic` (axis of 2 numbers), `Fixed` and `Planar`. A body that a `Planar` joint joins
        to the world moves freely: its q is (x, y, angle) in the world, initially pos and angle.
        """
        name = new_name(f"add_body({name!r}): ", "body", name, f"body{len(self._parts.bodies)}", self._parts.index)
        where = f"add_body({name!r}): "
        planar, index = self._parts.planar, body_or_world(f"{where}unknown parent", parent, self._parts.index)
        if joint is None:
            joint = Planar() if planar and index < 0 else Fixed()
        if not isinstance(joint, Joint):
            raise TypeError(f"{where}joint must be a joint such as Revolute(), got {joint!r}")
        if isinstance(joint, Free) and index >= 0:
            raise ValueError(f"{where}a free joint needs the world as parent, got parent {parent!r}")
        free = index < 0 and isinstance(joint, Planar if planar else Free)
        joint = in_plane(where, joint, free=free) if planar else joint
        joint_name = self._joint_name(where, joint.name, name)
        shapes = (shapes,) if isinstance(shapes, Shape) else tuple(shapes)
        placed = self._place(where, name, len(self._parts.bodies), shapes, fixed=joint.nv == 0 and self._fixed(index))
        numbers = inertia_numbers(where, planar, mass=mass, com=com, inertia=inertia, shapes=shapes, massless=massless)
        joint_rows, q0 = joint_numbers(where, joint, read_frame(where, planar, pos, quat, angle), free=free)
        dry, dry_rows = dry_friction(where, joint)
        body = Body(name, joint_name, index, joint, free, massless, q0, dry, {**numbers, **joint_rows, **dry_rows})
        self._parts.index[name] = self._parts.joints[joint_name] = len(self._parts.bodies)
        self._parts.bodies.append(body)
        self._keep(placed)
        return name

    def add_shape(self, shape: Shape, *, body: str | int | None = None, name: str | None = None) -> str:
        """Add a shape without mass to `body` (default: the world), in its frame, and return its name.

        name : defaults to `shape.name`, else "<body>/0", "<body>/1", ...
        """
        where = f"add_shape({shape.name if name is None and isinstance(shape, Shape) else name!r}): "
        return self._add_shape(where, shape, body_or_world(f"{where}unknown body", body, self._parts.index), name)

    def add_ground(
        self,
        height: Numbers = 0.0,
        *,
        angle: Numbers | None = None,
        friction: Numbers = 1.0,
        restitution: Numbers = 0.0,
        softness: Numbers = 0.0,
        torsion: Numbers = 0.0,
        rolling: Numbers = 0.0,
        condim: int = 3,
        name: str | None = None,
    ) -> str:
        """Add a horizontal plane at z = `height` (m) to the world and return its name (default "ground").

        In a planar scene it is the half plane below the line through (0, `height`), turned by `angle` (rad).
        friction, restitution, softness, torsion, rolling, condim : as of every shape.
        """
        where = "add_ground: "
        name = new_name(where, "shape", name, "ground", self._parts.shapes)
        up = checked(f"{where}height", height, ())
        if self._parts.planar:
            plane = HalfPlane(pos=(0.0, up), angle=0.0 if angle is None else angle)
        else:
            plane = Plane(pos=(0.0, 0.0, up), quat=orientation(where, False, None, angle))
        surface = {"friction": friction, "restitution": restitution, "softness": softness}
        plane = replace(plane, **surface, torsion=torsion, rolling=rolling, condim=condim)
        return self._add_shape(where, plane, -1, name)

    def exclude(self, a: str, b: str) -> None:
        """Two bodies or two shapes, by name, never touch; "world" for all shapes of the world.

        Not needed for bodies without a joint that moves them against each other, nor for a body and its parent. But a
        body touches a parent that stands still, as it touches the world.
        """
        where = f"exclude({a!r}, {b!r}): "
        if not isinstance(a, str) or not isinstance(b, str):
            raise TypeError(f"{where}bodies and shapes go by name, got {a!r} and {b!r}")
        if a == b:
            raise ValueError(f"{where}needs two bodies or two shapes, got {a!r} twice")
        self._parts.excluded.append((self._side(where, a), self._side(where, b)))

    def add_site(
        self, name: str | None = None, *, body: str | int, pos: Numbers | None = None, quat: Numbers | None = None,
        angle: Numbers | None = None,
    ) -> str:  # fmt: skip
        """Add a frame fixed in `body`, at `pos` (m) with orientation `quat` (wxyz) in its frame; return its name.

        angle : in place of quat in a planar scene, rad.
        """
        name = new_name(f"add_site({name!r}): ", "site", name, f"site{len(self._parts.sites)}", self._parts.sites)
        where = f"add_site({name!r}): "
        numbers = {
            "site_pos": point(f"{where}pos", self._parts.planar, pos),
            "site_quat": orientation(where, self._parts.planar, quat, angle),
        }
        self._parts.sites[name] = Site(find(f"{where}unknown body", body, self._parts.index), numbers)
        return name

    def build(self) -> Model:
        """The model, with detached copies of all numbers as its defaults."""
        return assemble(self._parts)[0]

    def params(self) -> Params:
        """Parameters in float64 that keep the graph of the tensors given to this scene."""
        return Params(*assemble(self._parts))

    def __repr__(self) -> str:
        parts, constraints = self._parts, len(self._parts.ties) + len(self._parts.couplings)
        more = f", {constraints} constraints" if constraints else ""
        more = f"{more}, planar" if parts.planar else more
        return f"Scene({len(parts.bodies)} bodies, {len(parts.sites)} sites, {len(parts.motors)} motors{more})"

    def _fixed(self, body: int) -> bool:
        """Whether no joint moves a body against the world."""
        return held_by(self._parts.bodies, body) < 0

    def _add_shape(self, where: str, shape: Shape, body: int, name: str | None) -> str:
        home = WORLD if body < 0 else self._parts.bodies[body].name
        if name is not None and isinstance(shape, Shape):
            shape = replace(shape, name=name)
        (name,) = placed = self._place(where, home, body, (shape,), fixed=self._fixed(body))
        self._keep(placed)
        return name

    def _place(self, where: str, home: str, body: int, shapes: Sequence[Shape], *, fixed: bool) -> dict[str, PlacedShape]:
        """Shapes for `body`, called `home`, checked, by name; `where` starts error messages."""
        placed: dict[str, PlacedShape] = {}
        count = self._parts.shape_counts[body]
        for i, shape in enumerate(shapes):
            if not isinstance(shape, Shape):
                raise TypeError(f"{where}shapes must be shapes such as Sphere(0.1), got {shape!r}")
            check_dimension(where, shape, self._parts.planar)
            name = new_name(where, "shape", shape.name, f"{home}/{count + i}", ChainMap(placed, self._parts.shapes))
            check_static(where, shape, home, fixed)
            placed[name] = place(where, name, body, shape)
        return placed

    def _keep(self, placed: dict[str, PlacedShape]) -> None:
        self._parts.shapes.update(placed)
        self._parts.shape_counts.update(shape.body for shape in placed.values())

    def _side(self, where: str, name: str) -> Side:
        if name in self._parts.index and name in self._parts.shapes:
            raise ValueError(f"{where}{name!r} is a body and a shape; give the shape another name")
        if name == WORLD or name in self._parts.index:
            return Side(body=self._parts.index.get(name, -1))
        shapes = {shape: i for i, shape in enumerate(self._parts.shapes)}
        return Side(shape=find(f"{where}unknown body or shape", name, shapes, also=(*self._parts.index, WORLD)))


def _switch(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"Scene: {name} must be True or False, got {value!r}")
    return value


def _gravity(planar: bool, gravity: Numbers | None) -> Tensor:
    if planar:
        return lift(two_numbers("Scene: gravity", (0.0, -9.81) if gravity is None else gravity))
    return checked("Scene: gravity", (0.0, 0.0, -9.81) if gravity is None else gravity, (3,))


def _rule(name: str, rule: str) -> int:
    if rule not in PAIR_RULES:
        raise ValueError(f"Scene: {name} must be one of {', '.join(PAIR_RULES)}, got {rule!r}")
    return PAIR_RULES[rule]
