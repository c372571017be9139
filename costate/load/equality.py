"""Equality constraints of a compiled model: connect, weld and joint as ties and couplings of a scene."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from costate.load.bodies import HINGE, SLIDE
from costate.load.findings import listed
from costate.load.source import Source, unique
from costate.load.surfaces import SOLIMP, SOLREF
from costate.scene.builder import Scene

CONNECT, WELD, JOINT, TENDON = 0, 1, 2, 3  # mjtEq
KINDS = {3: "tendon", 4: "flex", 5: "flexvert", 6: "flexstrain", 7: "distance"}
SITE = 6  # mjtObj


def add_equalities(source: Source, scene: Scene) -> None:
    """Add those that are active."""
    m, findings = source.m, source.findings
    if source.off("EQUALITY") or source.off("CONSTRAINT"):
        return
    names = unique([m.equality(i).name for i in range(m.neq)], [f"equality{i}" for i in range(m.neq)], source.taken)
    asleep = [name for name, active in zip(names, m.eq_active0) if not active]
    if asleep:
        findings.approximate(f"{listed('constraint', asleep)}: not active in the file, left out")
    soft = []
    for i, name in enumerate(names):
        if not m.eq_active0[i]:
            continue
        kind = int(m.eq_type[i])
        if kind not in (CONNECT, WELD, JOINT):
            findings.refuse(f"constraint {name!r}: equality of type {KINDS.get(kind, 'another kind')}")
            continue
        try:
            _add(source, scene, i, kind, name)
        except ValueError as error:
            findings.refuse(f"constraint {name!r}: {error}")
            continue
        if not (np.allclose(m.eq_solref[i], SOLREF) and np.allclose(m.eq_solimp[i], SOLIMP)):
            soft.append(name)
    if soft:
        findings.approximate(f"{listed('constraint', soft)}: solref and solimp; constraints are rigid")


def _add(source: Source, scene: Scene, i: int, kind: int, name: str) -> None:
    m = source.m
    if kind == JOINT:
        _add_coupling(source, scene, i, name)
        return
    data = np.array(m.eq_data[i])
    if m.eq_objtype[i] == SITE:
        a, b = (int(site) for site in (m.eq_obj1id[i], m.eq_obj2id[i]))
        bodies = [source.body_names[m.site_bodyid[site]] for site in (a, b)]
        frames: dict[str, Any] = {"pos": m.site_pos[a], "pos_b": m.site_pos[b]}
        turns: dict[str, Any] = {"quat": m.site_quat[a], "quat_b": m.site_quat[b]}
    else:
        bodies = [source.body_names[body] for body in (m.eq_obj1id[i], m.eq_obj2id[i])]
        first, second = (data[0:3], data[3:6]) if kind == CONNECT else (data[3:6], data[0:3])
        frames, turns = {"pos": first, "pos_b": second}, {"quat": data[6:10], "quat_b": (1.0, 0.0, 0.0, 0.0)}
    copies = {word: np.array(value) for word, value in frames.items()}
    if kind == CONNECT:
        scene.add_point(bodies[0], bodies[1], **copies, collide=True, name=name)
    else:
        copies |= {word: np.array(value) for word, value in turns.items()}
        scene.add_weld(bodies[0], bodies[1], **copies, collide=True, name=name)


def _add_coupling(source: Source, scene: Scene, i: int, name: str) -> None:
    """MuJoCo couples q1 - ref1 with a polynomial of q2 - ref2, costate q1 with one of q2."""
    m = source.m
    joints = [int(joint) for joint in (m.eq_obj1id[i], m.eq_obj2id[i]) if joint >= 0]
    if any(m.jnt_type[joint] not in (SLIDE, HINGE) for joint in joints):
        raise ValueError("only hinges and slides can be coupled")
    refs = [float(m.qpos0[m.jnt_qposadr[joint]]) for joint in joints]
    if len(joints) == 1:
        scene.add_coupling(source.joint_names[joints[0]], offset=refs[0] + float(m.eq_data[i, 0]), name=name)
        return
    shifted = Polynomial(m.eq_data[i, :5])(Polynomial((-refs[1], 1.0))) + refs[0]
    coefficients = np.zeros(5)
    coefficients[: len(shifted.coef)] = shifted.coef
    first, second = (source.joint_names[joint] for joint in joints)
    scene.add_coupling(first, second, coefficients=coefficients, name=name)
