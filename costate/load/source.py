"""A compiled MuJoCo model on its way to a scene: what the parts of the conversion share."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from costate.load.findings import Findings
from costate.load.library import MjModel, mujoco
from costate.scene.builder import Scene

RESERVED = ("", "world")


@dataclass
class Source:
    """A compiled model, what was found in it, and the names of its elements.

    body_names : of each MuJoCo body the body of the scene that carries its mass; None is the world.
    joint_names : of each MuJoCo joint the joint of the scene.
    taken : names of all joints of the scene; constraints must have others.
    reduced : meshes whose hulls have fewer vertices than they should -> how far (m) that is inside.
    """

    m: MjModel
    findings: Findings
    body_names: list[str | None] = field(default_factory=list)
    joint_names: list[str] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)
    reduced: dict[str, float] = field(default_factory=dict)

    @cached_property
    def geoms(self) -> list[str]:
        """Names of the geoms; one without a name is called after its body."""
        m = self.m
        homes = [self.body_names[b] or "world" for b in m.geom_bodyid]
        counts: dict[str, itertools.count[int]] = {}
        fallback = [f"{home}/{next(counts.setdefault(home, itertools.count()))}" for home in homes]
        return unique([m.geom(i).name for i in range(m.ngeom)], fallback)

    def off(self, flag: str) -> bool:
        """Whether <option><flag> disables something, such as "CONTACT"."""
        return bool(self.m.opt.disableflags & getattr(mujoco().mjtDisableBit, f"mjDSBL_{flag}"))

    def on(self, flag: str) -> bool:
        """Whether <option><flag> enables something, such as "OVERRIDE"; False where this MuJoCo does not know it."""
        return bool(self.m.opt.enableflags & getattr(mujoco().mjtEnableBit, f"mjENBL_{flag}", 0))

    def numbers(self, name: str) -> np.ndarray:
        """An array of the model, empty where this MuJoCo does not have it."""
        return np.asarray(getattr(self.m, name, np.zeros(0)))


@dataclass(frozen=True)
class Options:
    """What `load` was told about the model, see there."""

    ground: float | None = None
    self_collision: bool | None = None
    collisions: bool = True
    max_contacts: int | None = None
    hull_vertices: int = 64


def new_scene(source: Source, options: Options) -> Scene:
    """An empty scene with gravity and rules as MuJoCo's."""
    gravity = np.zeros(3) if source.off("GRAVITY") else np.array(source.m.opt.gravity)
    touching = options.collisions and not source.off("CONTACT") and not source.off("CONSTRAINT")
    return Scene(
        gravity=gravity,
        collisions=touching,
        self_collision=options.self_collision is not False,
        friction_rule="maximum",
        restitution_rule="maximum",
        max_contacts=options.max_contacts,
    )


def unique(names: Iterable[str], fallback: Iterable[str], taken: Collection[str] = ()) -> list[str]:
    """Names that are all different and not among `taken` or reserved: those given as they are, the fallback for empty ones."""
    given = list(names)
    used = {*taken, *given, *RESERVED}
    seen: set[str] = {*taken, *RESERVED}
    found: list[str] = []
    for name, other in zip(given, fallback, strict=True):
        if name in seen:
            stem = name if name not in RESERVED else other
            name = next(n for n in itertools.chain((stem,), (f"{stem}_{i}" for i in itertools.count(1))) if n not in used)
            used.add(name)
        seen.add(name)
        found.append(name)
    return found
