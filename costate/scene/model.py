"""Model: the immutable description of a tree of bodies that the engine works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from costate.scene.fields import PARAM_FIELDS, Selection, field_shape
from costate.scene.joints import JOINTS
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
    body_names, joint_names, site_names, motor_names, shape_names : names by index.
    parent : index of each body's parent, -1 for the world.
    joint_type : joint code of each body (fixed 0, revolute 1, prismatic 2, ball 3, free 4, planar 5).
    motor_dof : index in v that each motor (of any type: all actuators count) drives.
    actuator_type : motor 0, position 1, velocity 2.
    clip, bound : index of each motor in the fields of control limits and of force limits, -1 where it has none.
    limit_body, limit_dof : of each limited joint its index and its (first) index in v.
    dry_dof : indices in v that have dry friction.
    shape_body, shape_type : of each shape that may touch another its body (-1 the world) and its code (plane 0, sphere 1,
        capsule 2, box 3).
    pairs : pairs (a, b) of shapes that may touch, a < b.
    friction_rule, restitution_rule : how the coefficients of two shapes become one (geometric mean 0, maximum 1, minimum 2,
        arithmetic mean 3, product 4).
    max_contacts : most contacts of one world at a time, -1 for the engine's choice.
    site_body : index of the body that carries each site.
    massless : whether each body was declared without mass.
    shapes, world_shapes : all shapes of each body and of the world, in plain floats.
    q0 : default configuration [nq], read-only.
    defaults : parameter field -> float64 tensor of its shape; not to be written to.
    """

    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    site_names: tuple[str, ...]
    motor_names: tuple[str, ...]
    shape_names: tuple[str, ...]
    parent: tuple[int, ...]
    joint_type: tuple[int, ...]
    motor_dof: tuple[int, ...]
    actuator_type: tuple[int, ...]
    clip: tuple[int, ...]
    bound: tuple[int, ...]
    limit_body: tuple[int, ...]
    limit_dof: tuple[int, ...]
    dry_dof: tuple[int, ...]
    shape_body: tuple[int, ...]
    shape_type: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    friction_rule: int
    restitution_rule: int
    max_contacts: int
    site_body: tuple[int, ...]
    massless: tuple[bool, ...]
    shapes: tuple[tuple[Shape, ...], ...]
    world_shapes: tuple[Shape, ...]
    q0: np.ndarray
    defaults: Mapping[str, Tensor]

    def __post_init__(self) -> None:
        q0 = np.array(self.q0, dtype=np.float64)
        q0.setflags(write=False)
        object.__setattr__(self, "q0", q0)
        defaults = {name: tensor.detach().clone() for name, tensor in self.defaults.items()}
        object.__setattr__(self, "defaults", MappingProxyType(defaults))

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
            "body": self.nb, "q": self.nq, "dof": self.nv, "motor": self.nu, "clip": sum(i >= 0 for i in self.clip),
            "bound": sum(i >= 0 for i in self.bound), "limit": len(self.limit_body), "dry": len(self.dry_dof),
            "shape": len(self.shape_body), "site": self.ns,
        }  # fmt: skip
        return MappingProxyType({field.name: field_shape(field, counts) for field in PARAM_FIELDS})

    @cached_property
    def topology(self) -> tuple[Any, ...]:
        """All that is not a number or a name: models that agree in it can exchange states and parameters."""
        return tuple(getattr(self, name) for name in _TOPOLOGY)

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

    def integrate(self, q: Any, dq: Any) -> Any:
        """Move q [..., nq] by the tangent vector dq [..., nv]."""
        from costate.dynamics import integrate

        return integrate(self, q, dq)

    def difference(self, q1: Any, q2: Any) -> Any:
        """The tangent vector [..., nv] that moves q1 [..., nq] to q2 [..., nq]."""
        from costate.dynamics import difference

        return difference(self, q1, q2)

    def summary(self) -> str:
        """A table of the bodies, one line each."""
        head = ("", "body", "parent", "joint", "type", "q", "v", "mass [kg]")
        rows: list[tuple[str, ...]] = [head]
        for i, (body, joint) in enumerate(zip(self.body_names, self.joint_names, strict=True)):
            kind = JOINTS[self.joint_type[i]]
            parent = "world" if self.parent[i] < 0 else self.body_names[self.parent[i]]
            q, v = _span(self.q_address[i], kind.nq), _span(self.v_address[i], kind.nv)
            mass = "massless" if self.massless[i] else f"{self.defaults['mass'][i].item():.6g}"
            rows.append((str(i), body, parent, joint, kind.__name__.lower(), q, v, mass))
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        contacts = f"{len(self.shape_body)} shapes in {len(self.pairs)} pairs that may touch"
        return "\n".join((repr(self), *table, *([contacts] if self.pairs else [])))

    def __repr__(self) -> str:
        return f"Model(nb={self.nb}, nq={self.nq}, nv={self.nv}, nu={self.nu}, ns={self.ns})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return NotImplemented
        return (
            all(getattr(self, name) == getattr(other, name) for name in _COMPARED)
            and np.array_equal(self.q0, other.q0)
            and all(torch.equal(tensor, other.defaults[name]) for name, tensor in self.defaults.items())
        )

    def __hash__(self) -> int:
        return hash((self.topology, self.body_names))

    def __reduce__(self) -> tuple[Any, ...]:
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return _rebuild, ({**state, "defaults": dict(self.defaults)},)


_TOPOLOGY = (
    "parent", "joint_type", "massless", "motor_dof", "actuator_type", "clip", "bound", "limit_body", "limit_dof", "dry_dof",
    "shape_body", "shape_type", "pairs", "friction_rule", "restitution_rule", "max_contacts", "site_body",
)  # fmt: skip
_COMPARED = tuple(field.name for field in fields(Model) if field.name not in ("q0", "defaults"))


def _rebuild(state: dict[str, Any]) -> Model:
    return Model(**state)


def _find(kind: str, name: str, names: tuple[str, ...]) -> int:
    if name in names:
        return names.index(name)
    raise KeyError(f"no {kind} named {name!r}; {suggest(name, names)}")


def _span(start: int, count: int) -> str:
    return "-" if count == 0 else str(start) if count == 1 else f"{start}:{start + count}"
