"""From the parts of a scene to the fields of its Model, and to every parameter as one tensor."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from costate.scene.actuators import Actuator
from costate.scene.body import Body
from costate.scene.codes import FIELD, GENERAL, SERVO, WITH_VERTICES
from costate.scene.constraints import Coupling, Tie
from costate.scene.contacts import Candidates, PlacedShape, Side, find_candidates
from costate.scene.fields import PARAM_FIELDS
from costate.scene.forward import Pose
from costate.scene.model import Model
from costate.scene.shapes import Shape


@dataclass(frozen=True)
class Site:
    """A frame on a body. `numbers` maps each field per site to its row, with graph."""

    body: int
    numbers: dict[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What was given to a scene, checked: options, and parts by name (dicts keep their order)."""

    planar: bool
    gravity: Tensor
    collisions: bool
    self_collision: bool
    friction_rule: int
    restitution_rule: int
    max_contacts: int  # -1 for the engine's choice
    bodies: list[Body] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)  # of bodies by name
    joints: dict[str, int] = field(default_factory=dict)
    poses: list[Pose] = field(default_factory=list)  # initial ones of the first bodies, as far as they were needed
    shapes: dict[str, PlacedShape] = field(default_factory=dict)
    shape_counts: Counter[int] = field(default_factory=Counter)  # shapes on each body
    excluded: list[tuple[Side, Side]] = field(default_factory=list)
    sites: dict[str, Site] = field(default_factory=dict)
    motors: dict[str, Actuator] = field(default_factory=dict)
    ties: dict[str, Tie] = field(default_factory=dict)
    couplings: dict[str, Coupling] = field(default_factory=dict)


def assemble(parts: Parts) -> tuple[Model, dict[str, Tensor]]:
    """The model, and every parameter field in float64 with the graph of the numbers that were given."""
    if not parts.bodies:
        raise ValueError("Scene: build needs at least one body, got none")
    _check_massless(parts.bodies)
    candidates = Candidates()
    if parts.collisions:
        # a body touches the world it is tied to, as it touches one it hangs on: a pendulum hits the ground
        apart = [(tie.a, tie.b) for tie in parts.ties.values() if not tie.collide and min(tie.a, tie.b) >= 0]
        candidates = find_candidates(
            list(parts.shapes.values()), parts.bodies, excluded=parts.excluded, apart=apart, self_collision=parts.self_collision
        )
    tensors = _tensors(parts, candidates)
    return _model(parts, candidates, tensors), tensors


def _model(parts: Parts, candidates: Candidates, tensors: dict[str, Tensor]) -> Model:
    bodies, motors, touching = parts.bodies, parts.motors.values(), candidates.shapes
    ties, couplings = parts.ties.values(), parts.couplings.values()
    v_address = list(itertools.accumulate((body.joint.nv for body in bodies), initial=0))
    limited = tuple(i for i, body in enumerate(bodies) if body.limited)
    *drawn, world_shapes = _drawn(parts)
    return Model(
        body_names=tuple(parts.index),
        joint_names=tuple(parts.joints),
        site_names=tuple(parts.sites),
        motor_names=tuple(parts.motors),
        shape_names=tuple(shape.name for shape in touching),
        tie_names=tuple(parts.ties),
        coupling_names=tuple(parts.couplings),
        parent=tuple(body.parent for body in bodies),
        joint_type=tuple(body.joint.code for body in bodies),
        motor_dof=tuple(-1 if motor.joint < 0 else v_address[motor.joint] + motor.dof for motor in motors),
        motor_tie=tuple(motor.tie for motor in motors),
        actuator_type=tuple(motor.code for motor in motors),
        clip=_numbered([motor.clipped for motor in motors]),
        bound=_numbered([motor.bounded for motor in motors]),
        limit_body=limited,
        limit_dof=tuple(v_address[i] for i in limited),
        dry_dof=tuple(start + dof for start, body in zip(v_address, bodies) for dof in body.dry),
        shape_body=tuple(shape.body for shape in touching),
        shape_type=tuple(shape.code for shape in touching),
        shape_condim=tuple(shape.shape.condim for shape in touching),
        pairs=candidates.pairs,
        hull_vertices=_joined(touching, "hull_vertices"),
        hull_faces=_joined(touching, "hull_faces"),
        hull_loop_size=_joined(touching, "hull_loop_size"),
        hull_loop=_joined(touching, "hull_loop"),
        hull_plane=_joined(touching, "hull_plane"),
        field_nx=_joined(touching, "field_nx"),
        field_ny=_joined(touching, "field_ny"),
        friction_rule=parts.friction_rule,
        restitution_rule=parts.restitution_rule,
        max_contacts=parts.max_contacts,
        tie_a=tuple(tie.a for tie in ties),
        tie_b=tuple(tie.b for tie in ties),
        tie_axis=tuple(tie.axis for tie in ties),
        tie_locks=tuple(tie.locks for tie in ties),
        coupling_dof1=tuple(v_address[c.joint] + c.dof for c in couplings),
        coupling_dof2=tuple(-1 if c.other < 0 else v_address[c.other] + c.other_dof for c in couplings),
        site_body=tuple(site.body for site in parts.sites.values()),
        massless=tuple(body.massless for body in bodies),
        shapes=tuple(drawn),
        world_shapes=world_shapes,
        planar=parts.planar,
        q0=np.concatenate([body.q0 for body in bodies]),
        defaults=tensors,
    )


def _tensors(parts: Parts, candidates: Candidates) -> dict[str, Tensor]:
    """Every parameter field: rows are stacked, those of owners with several numbers concatenated."""
    bodies, motors, ties = parts.bodies, list(parts.motors.values()), list(parts.ties.values())
    owners: dict[str, Sequence[Body | Actuator | PlacedShape | Tie | Coupling | Site]] = {
        "body": bodies,
        "q": bodies,
        "dof": bodies,
        "motor": motors,
        "servo": [motor for motor in motors if motor.code == SERVO],
        "general": [motor for motor in motors if motor.code == GENERAL],
        "clip": [motor for motor in motors if motor.clipped],
        "bound": [motor for motor in motors if motor.bounded],
        "limit": [body for body in bodies if body.limited],
        "dry": [body for body in bodies if body.dry],
        "shape": candidates.shapes,
        "vertex": [shape for shape in candidates.shapes if shape.code in WITH_VERTICES],
        "height": [shape for shape in candidates.shapes if shape.code == FIELD],
        "frame": ties,
        "tie": ties,
        "coupling": list(parts.couplings.values()),
        "site": list(parts.sites.values()),
    }
    tensors: dict[str, Tensor] = {}
    for param in PARAM_FIELDS:
        if param.per == "world":
            tensors[param.name] = parts.gravity.clone()
            continue
        rows = [owner.numbers[param.name] for owner in owners[param.per]]
        join = torch.cat if param.per in ("q", "dof", "dry", "frame", "vertex", "height") else torch.stack
        empty = (0,) if param.width == 1 else (0, param.width)
        tensors[param.name] = join(rows) if rows else torch.zeros(empty, dtype=torch.float64)
    return tensors


def _joined(shapes: Sequence[PlacedShape], name: str) -> tuple[int, ...]:
    """A field of the model that only some shapes have, of all shapes one behind the other."""
    return tuple(itertools.chain.from_iterable(shape.structure.get(name, ()) for shape in shapes))


def _drawn(parts: Parts) -> list[tuple[Shape, ...]]:
    """The shapes of each body, and behind them those of the world."""
    drawn: list[list[Shape]] = [[] for _ in range(len(parts.bodies) + 1)]
    for placed in parts.shapes.values():
        drawn[placed.body].append(placed.shape)
    return [tuple(shapes) for shapes in drawn]


def _numbered(chosen: Sequence[bool]) -> tuple[int, ...]:
    """0, 1, ... for those chosen, -1 for the others."""
    count = itertools.count()
    return tuple(next(count) if choice else -1 for choice in chosen)


def _check_massless(bodies: Sequence[Body]) -> None:
    """A joint that moves no mass has no acceleration."""
    carries = [not body.massless for body in bodies]
    for index in reversed(range(len(bodies))):
        body = bodies[index]
        if body.parent >= 0:
            carries[body.parent] = carries[body.parent] or carries[index]
        if body.joint.nv > 0 and not carries[index]:
            raise ValueError(f"build: massless body {body.name!r} moves but carries no body with mass, got mass 0.0")
