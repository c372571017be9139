"""Model: the immutable description of a tree of bodies that the engine works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import accumulate
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from costate.scene.codes import (
    FIELD,
    GENERAL,
    HULL,
    LOCK_LABELS,
    PLANAR_LABELS,
    PLANAR_SLIDE_LABELS,
    POLYGON,
    SERVO,
    SLIDE_AXIS,
)
from costate.scene.fields import PARAM_FIELDS, Selection, field_shape
from costate.scene.joints import JOINTS
from costate.scene.keyframe import Keyframe
from costate.scene.names import suggest
from costate.scene.params import Params
from costate.scene.shapes import Shape

if TYPE_CHECKING:
    from costate._native.cpu import Engine


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Model:
    """A tree of bodies, made by `Scene.build()`. Body i hangs on joint i; parents come before children.

    Attributes
    ----------
    body_names, joint_names, site_names, motor_names, shape_names, tie_names, coupling_names : names by index.
    parent : index of each body's parent, -1 for the world.
    joint_type : joint code of each body (fixed 0, revolute 1, prismatic 2, ball 3, free 4, planar 5).
    motor_dof, motor_tie : index in v, or of the tie, that each motor (of any type: all actuators count) drives; the other is -1.
    actuator_type : motor 0, position 1, velocity 2, servo 3, general 4.
    clip, bound : index of each motor in the fields of control limits and of force limits, -1 where it has none.
    limit_body, limit_dof : of each limited joint its index and its (first) index in v.
    dry_dof : indices in v that have dry friction.
    shape_body, shape_type : of each shape that may touch another its body (-1 the world) and its code (plane 0, sphere 1,
        capsule 2, box 3, cylinder 4, hull 5, heightfield 6, rectangle 7, polygon 8; in a plane a sphere is a circle).
    shape_condim : of each of them 1 without friction, 3 with, 4 also against turning, 6 also against rolling.
    pairs : pairs (a, b) of shapes that may touch, a < b; int32 [n, 2], read-only.
    hull_vertices, hull_faces : of each hull or polygon how many it has; a polygon has no faces.
    hull_loop_size, hull_loop, hull_plane : of each face of each hull its number of vertices; these, counted within the hull,
        counterclockwise from outside; and three of them that span its plane.
    field_nx, field_ny : of each heightfield how many heights it has along x and y.
    friction_rule, restitution_rule : how the coefficients of two shapes become one (geometric mean 0, maximum 1, minimum 2,
        arithmetic mean 3, product 4).
    max_contacts : most contacts of one world at a time, -1 for the engine's choice.
    tie_a, tie_b : of each tie (constraint between two frames) its bodies, -1 the world.
    tie_axis : what an actuator on a tie drives: 0 nothing, 1 the angle of a hinge, 2 the displacement of a slide.
    tie_locks : codes of the locks of each tie (core/data/model.h), one per equality row.
    coupling_dof1, coupling_dof2 : of each coupling the index in v that follows, and that which it follows (-1: none).
    site_body : index of the body that carries each site.
    massless : whether each body was declared without mass.
    planar : whether all is in the plane z = 0, made by a planar scene.
    shapes, world_shapes : all shapes of each body and of the world, in plain floats.
    q0 : default configuration [nq], read-only.
    defaults : parameter field -> float64 tensor of its shape; not to be written to.
    timestep : s, as the file says that the model was loaded from; None for scenes.
    keyframes : name -> state and controls.
    source : name of the file that the model was loaded from; no part of comparisons.
    """

    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    site_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    shape_names: tuple[str, ...]
    tie_names: tuple[str, ...]
    coupling_names: tuple[str, ...]
    parent: tuple[int, ...]
    joint_type: tuple[int, ...]
    motor_dof: tuple[int, ...]
    motor_tie: tuple[int, ...]
    actuator_type: tuple[int, ...]
    clip: tuple[int, ...]
    bound: tuple[int, ...]
    limit_body: tuple[int, ...]
    limit_dof: tuple[int, ...]
    dry_dof: tuple[int, ...]
    shape_body: tuple[int, ...]
    shape_type: tuple[int, ...]
    shape_condim: tuple[int, ...]
    pairs: np.ndarray
    hull_vertices: tuple[int, ...]
    hull_faces: tuple[int, ...]
    hull_loop_size: tuple[int, ...]
    hull_loop: tuple[int, ...]
    hull_plane: tuple[int, ...]
    field_nx: tuple[int, ...]
    field_ny: tuple[int, ...]
    friction_rule: int
    restitution_rule: int
    max_contacts: int
    tie_a: tuple[int, ...]
    tie_b: tuple[int, ...]
    tie_axis: tuple[int, ...]
    tie_locks: tuple[tuple[int, ...], ...]
    coupling_dof1: tuple[int, ...]
    coupling_dof2: tuple[int, ...]
    site_body: tuple[int, ...]
    massless: tuple[bool, ...]
    planar: bool
    shapes: tuple[tuple[Shape, ...], ...]
    world_shapes: tuple[Shape, ...]
    q0: np.ndarray
    defaults: Mapping[str, Tensor]
    timestep: float | None = None
    keyframes: Mapping[str, Keyframe] = field(default_factory=dict)
    source: str | None = None

    def __post_init__(self) -> None:
        for name, dtype in (("q0", np.float64), ("pairs", np.int32)):
            array = np.array(getattr(self, name), dtype=dtype)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        defaults = {name: tensor.detach().clone() for name, tensor in self.defaults.items()}
        object.__setattr__(self, "defaults", MappingProxyType(defaults))
        object.__setattr__(self, "keyframes", MappingProxyType(dict(self.keyframes)))

    @cached_property
    def nb(self) -> int:
        """Number of bodies, the world not counted."""
        return len(self.parent)

    @cached_property
    def nq(self) -> int:
        """Length of a configuration q."""
        return sum(JOINTS[code].nq for code in self.joint_type)

    @cached_property
    def nv(self) -> int:
        """Number of degrees of freedom, the length of v."""
        return sum(JOINTS[code].nv for code in self.joint_type)

    @cached_property
    def nu(self) -> int:
        """Number of motors of all types, the length of a control."""
        return len(self.motor_dof)

    @cached_property
    def ns(self) -> int:
        """Number of sites."""
        return len(self.site_body)

    @cached_property
    def ne(self) -> int:
        """Number of equality rows: the locks of all ties, then one per coupling."""
        return sum(map(len, self.tie_locks)) + len(self.coupling_dof1)

    @cached_property
    def equality_names(self) -> tuple[str, ...]:
        """One name per equality row: the constraint's, and which direction of a tie, such as "hinge0 x" or "hinge0 ry"."""
        ties = zip(self.tie_names, self.tie_axis, self.tie_locks, strict=True)
        rows = (f"{name} {self._lock_label(axis, lock)}".rstrip() for name, axis, locks in ties for lock in locks)
        return (*rows, *self.coupling_names)

    @cached_property
    def q_address(self) -> tuple[int, ...]:
        """Where each joint's coordinates start in q."""
        return tuple(accumulate((JOINTS[code].nq for code in self.joint_type[:-1]), initial=0))

    @cached_property
    def v_address(self) -> tuple[int, ...]:
        """Where each joint's velocities start in v."""
        return tuple(accumulate((JOINTS[code].nv for code in self.joint_type[:-1]), initial=0))

    @cached_property
    def dof_body(self) -> tuple[int, ...]:
        """The body that each dof moves."""
        return tuple(i for i, code in enumerate(self.joint_type) for _ in range(JOINTS[code].nv))

    @cached_property
    def field_heights(self) -> tuple[int, ...]:
        """How many heights each heightfield has."""
        return tuple(nx * ny for nx, ny in zip(self.field_nx, self.field_ny, strict=True))

    @cached_property
    def ancestors(self) -> tuple[frozenset[int], ...]:
        """Each body with all bodies between it and the world: those whose joints move it."""
        chains: list[frozenset[int]] = []
        for i, parent in enumerate(self.parent):
            chains.append(frozenset((i,)) | (chains[parent] if parent >= 0 else frozenset()))
        return tuple(chains)

    @cached_property
    def field_shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Parameter field -> its shape in one world."""
        counts = {
            "body": self.nb, "q": self.nq, "dof": self.nv, "motor": self.nu, "servo": self.actuator_type.count(SERVO),
            "general": self.actuator_type.count(GENERAL),
            "clip": sum(i >= 0 for i in self.clip), "bound": sum(i >= 0 for i in self.bound), "limit": len(self.limit_body),
            "dry": len(self.dry_dof), "shape": len(self.shape_body), "vertex": sum(self.hull_vertices),
            "height": sum(self.field_heights), "frame": 2 * len(self.tie_a), "tie": len(self.tie_a),
            "coupling": len(self.coupling_dof1), "site": self.ns,
        }  # fmt: skip
        return MappingProxyType({field.name: field_shape(field, counts) for field in PARAM_FIELDS})

    @cached_property
    def topology(self) -> tuple[Any, ...]:
        """All that is not a number or a name: models that agree in it can exchange states and parameters."""
        return (self.pairs.tobytes(), *(getattr(self, name) for name in _TOPOLOGY))

    @cached_property
    def engine(self) -> Engine:
        """The native engine of this model, made at first use."""
        from costate._native.cpu import Engine

        return Engine(self)

    def params(self, *, requires_grad: Selection = (), dtype: torch.dtype = torch.float64) -> Params:
        """Fresh leaf tensors with the model's numbers; `requires_grad` names fields (True: all)."""
        return Params(self, {}).to(dtype).detach(requires_grad=requires_grad)

    def body(self, name: str) -> int:
        """Index of the body called `name`."""
        return _find("body", name, self.body_names)

    def joint(self, name: str) -> int:
        """Index of the joint called `name`, which is also the index of its body."""
        return _find("joint", name, self.joint_names)

    def site(self, name: str) -> int:
        """Index of the site called `name`."""
        return _find("site", name, self.site_names)

    def motor(self, name: str) -> int:
        """Index of the motor called `name`."""
        return _find("motor", name, self.motor_names)

    def shape(self, name: str) -> int:
        """Index of the shape called `name`, in the fields per shape; only shapes that may touch another have one."""
        return _find("shape that may touch another is", name, self.shape_names)

    def vertices(self, name: str) -> slice:
        """Which rows of `hull_vertex` are those of the hull or polygon called `name`."""
        kind, code = ("polygon", POLYGON) if self.planar else ("hull", HULL)
        return self._part(kind, code, self.hull_vertices, name)

    def heights(self, name: str) -> slice:
        """Which entries of `height` are those of the heightfield called `name`: [nx, ny], row by row."""
        return self._part("heightfield", FIELD, self.field_heights, name)

    def tie(self, name: str) -> int:
        """Index of the tie called `name`: a constraint between two frames; its frames are 2 i and 2 i + 1 in their fields."""
        return _find("tie", name, self.tie_names)

    def coupling(self, name: str) -> int:
        """Index of the coupling called `name`."""
        return _find("coupling", name, self.coupling_names)

    def integrate(self, q: Any, dq: Any) -> Any:
        """Move q [..., nq] by the tangent vector dq [..., nv]."""
        from costate.dynamics import integrate

        return integrate(self, q, dq)

    def difference(self, q1: Any, q2: Any) -> Any:
        """The tangent vector [..., nv] that moves q1 [..., nq] to q2 [..., nq]."""
        from costate.dynamics import difference

        return difference(self, q1, q2)

    def summary(self) -> str:
        """Tables of bodies with joints, actuators, shapes, constraints, sites and keyframes, as plain text."""
        from costate.scene.summary import summary

        return summary(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to one .npz file, without pickle; equal models give equal files."""
        from costate.scene.save import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Model:
        """Read what `save` wrote; ValueError, "<path>: ...", if it is broken, something else, or from a newer costate."""
        from costate.scene.save import load

        return load(path)

    def _part(self, kind: str, code: int, counts: tuple[int, ...], name: str) -> slice:
        """The rows of one shape among those of all that have this code."""
        index = self.shape(name)
        if self.shape_type[index] != code:
            raise KeyError(f"shape {name!r} is no {kind}")
        before = self.shape_type[:index].count(code)
        start = sum(counts[:before])
        return slice(start, start + counts[before])

    def _lock_label(self, axis: int, lock: int) -> str:
        if not self.planar:
            return LOCK_LABELS[lock]
        return (PLANAR_SLIDE_LABELS if axis == SLIDE_AXIS else PLANAR_LABELS)[lock]

    def __repr__(self) -> str:
        ne = f", ne={self.ne}" if self.ne else ""
        planar = ", planar" if self.planar else ""
        return f"Model(nb={self.nb}, nq={self.nq}, nv={self.nv}, nu={self.nu}, ns={self.ns}{ne}{planar})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return (
            all(getattr(self, name) == getattr(other, name) for name in _COMPARED)
            and np.array_equal(self.q0, other.q0)
            and np.array_equal(self.pairs, other.pairs)
            and all(torch.equal(tensor, other.defaults[name]) for name, tensor in self.defaults.items())
        )

    def __hash__(self) -> int:
        return hash((self.topology, self.body_names))

    def __reduce__(self) -> tuple[Any, ...]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return _rebuild, ({**state, "defaults": dict(self.defaults), "keyframes": dict(self.keyframes)},)


_TOPOLOGY = (
    "parent", "joint_type", "massless", "motor_dof", "actuator_type", "clip", "bound", "limit_body", "limit_dof", "dry_dof",
    "shape_body", "shape_type", "shape_condim", "hull_vertices", "hull_faces", "hull_loop_size", "hull_loop", "hull_plane",
    "field_nx",
    "field_ny", "friction_rule", "restitution_rule", "max_contacts", "site_body", "motor_tie", "tie_a", "tie_b", "tie_axis",
    "tie_locks", "coupling_dof1", "coupling_dof2", "planar",
)  # fmt: skip
_COMPARED = tuple(field.name for field in fields(Model) if field.name not in ("q0", "pairs", "defaults", "source"))


def _rebuild(state: dict[str, Any]) -> Model:
    return Model(**state)


def _find(kind: str, name: str, names: tuple[str, ...]) -> int:
    if name in names:
        return names.index(name)
    raise KeyError(f"no {kind} named {name!r}; {suggest(name, names)}")
