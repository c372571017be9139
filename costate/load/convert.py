"""From a compiled MuJoCo model to a costate Model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from costate.load.actuators import add_actuators
from costate.load.bodies import add_bodies
from costate.load.drives import Drives, add_drives
from costate.load.equality import add_equalities
from costate.load.errors import LoadError
from costate.load.filters import add_filters, check_priorities, contact_bits
from costate.load.geoms import add_geoms
from costate.load.refusals import check_bodies, check_joints, check_options, check_tendons
from costate.load.source import Options, Source, new_scene, unique
from costate.load.surfaces import check_surfaces
from costate.scene.builder import Scene
from costate.scene.keyframe import Keyframe
from costate.scene.model import Model

MAX_BODIES, MAX_TOUCHING = 3_000, 3_000  # a scene of that many is made in some seconds
FINITE = {
    "body": ("pos", "quat", "mass", "ipos", "iquat", "inertia"),
    "jnt": ("pos", "axis", "stiffness", "range"),
    "dof": ("armature", "damping", "frictionloss"),
    "geom": ("pos", "quat", "size", "friction", "solref", "solimp"),
    "site": ("pos", "quat"),
    "actuator": ("gear", "gainprm", "biasprm", "ctrlrange", "forcerange"),
    "eq": ("data",),
    "key": ("qpos", "qvel", "ctrl"),
}
JOINTS = ("free", "ball", "slide", "hinge")  # mjtJoint
FRAME = "world:sites"  # body that carries the sites of the world


def convert(source: Source, options: Options, drives: Drives | None, where: str) -> Model:
    """The model; what cannot be represented is left out, and among the findings. `where` starts error messages."""
    m = source.m
    if m.nbody > MAX_BODIES:
        raise LoadError(f"{where}: the model must have at most {MAX_BODIES:,} bodies, got {m.nbody - 1:,}")
    if m.nbody < 2:
        raise LoadError(f"{where}: the model must have at least one body besides the world, got none")
    _check_finite(source, where)
    scene = new_scene(source, options)
    try:
        _fill(source, scene, options, drives, where)
        model = scene.build()
    except LoadError:
        raise
    except (ValueError, TypeError, ArithmeticError, NotImplementedError) as error:
        raise LoadError(f"{where}: {error}") from error
    return replace(model, timestep=float(m.opt.timestep), keyframes=_keyframes(source), source=where)


def _check_finite(source: Source, where: str) -> None:
    """MuJoCo lets some infinite numbers pass."""
    m = source.m
    for kind, words in FINITE.items():
        for word in words:
            numbers = np.asarray(getattr(m, f"{kind}_{word}"))
            bad = np.flatnonzero(~np.isfinite(numbers).reshape(len(numbers), numbers[:1].size).all(1))
            if len(bad):
                raise LoadError(
                    f"{where}: {word} of {kind} {_label(source, kind, int(bad[0]))} must be finite, got {numbers[bad[0]]}"
                )
    if not np.isfinite([m.opt.timestep, *m.opt.gravity, *m.qpos0, *m.qpos_spring]).all():
        raise LoadError(f"{where}: timestep, gravity and ref of all joints must be finite")
    if not m.opt.timestep > 0:
        raise LoadError(f"{where}: <option timestep> must be positive, got {m.opt.timestep:g}")


def _label(source: Source, kind: str, index: int) -> str:
    if kind == "dof":
        return f"{index} (joint {_label(source, 'jnt', int(source.m.dof_jntid[index]))})"
    name = getattr(source.m, kind)(index).name
    return repr(name) if name else str(index)


def _fill(source: Source, scene: Scene, options: Options, drives: Drives | None, where: str) -> None:
    m = source.m
    check_options(source)
    add_bodies(source, scene)
    check_bodies(source)
    check_joints(source)
    check_tendons(source)
    bits = contact_bits(source, ground=options.ground is not None) if scene._parts.collisions else {}
    if len(bits) > MAX_TOUCHING:
        raise LoadError(f"{where}: the model must have at most {MAX_TOUCHING:,} geoms that may touch, got {len(bits):,}")
    touching = add_geoms(source, scene, options, bits)
    check_surfaces(source, touching)
    check_priorities(source, touching)
    add_filters(source, scene)
    if options.ground is not None:
        scene.add_ground(options.ground)
    _add_sites(source, scene)
    add_equalities(source, scene)
    if drives is None:
        add_actuators(source, scene)
    elif m.nu:
        raise ValueError(f"actuators={drives.kind!r} is for files without actuators, got one with {m.nu}")
    else:
        add_drives(source, scene, drives)
    _count(source, len(touching))


def _count(source: Source, touching: int) -> None:
    """Say how many there are of everything."""
    m = source.m
    joints = Counter(JOINTS[kind] for kind in m.jnt_type.tolist())
    fixed = int(np.sum(m.body_jntnum[1:] == 0))
    source.findings.honour(f"{m.nbody - 1} bodies, {fixed} of them fixed, {m.nmocap} by mocap; {m.body_mass.sum():.4g} kg")
    source.findings.honour(
        f"{m.njnt} joints: " + ", ".join(f"{count} {kind}" for kind, count in joints.items()) if joints else "no joints"
    )
    source.findings.honour(
        f"{m.ngeom} geoms, {touching} of them may touch others; {m.nexclude} exclusions, {m.npair} explicit pairs"
    )
    source.findings.honour(f"{m.nu} controls, {m.neq} equality constraints, {m.nsite} sites, {m.nkey} keyframes")


def _add_sites(source: Source, scene: Scene) -> None:
    """Sites; those of the world sit on a body that is fixed to it."""
    m = source.m
    names = unique([m.site(i).name for i in range(m.nsite)], [f"site{i}" for i in range(m.nsite)])
    (frame,) = unique([FRAME], ["frame"], [name for name in source.body_names if name])
    if np.any(m.site_bodyid == 0):
        scene.add_body(frame, massless=True)
    for i, name in enumerate(names):
        body = source.body_names[m.site_bodyid[i]]
        scene.add_site(name, body=frame if body is None else body, pos=np.array(m.site_pos[i]), quat=np.array(m.site_quat[i]))


def _keyframes(source: Source) -> dict[str, Keyframe]:
    m = source.m
    names = unique([m.key(i).name for i in range(m.nkey)], [f"key{i}" for i in range(m.nkey)])
    return {name: Keyframe(m.key_qpos[i], m.key_qvel[i], m.key_ctrl[i]) for i, name in enumerate(names)}
