"""What a compiled model may hold that has no counterpart in costate, and options that are not exactly the same."""

from __future__ import annotations

import numpy as np

from costate.load.findings import listed
from costate.load.library import mujoco
from costate.load.source import Source
from costate.load.surfaces import SOLIMP, SOLREF

INTEGRATORS = {0: "Euler", 1: "RK4", 2: "implicit", 3: "implicitfast", 4: "discrete"}
HONOURED_INTEGRATORS = ("Euler", "implicitfast")


def check_options(source: Source) -> None:
    """<option>: what is honoured, approximated or refused."""
    m, findings = source.m, source.findings
    findings.honour(f"timestep {m.opt.timestep:g} s, gravity {tuple(float(x) for x in m.opt.gravity)} m/s^2")
    integrator = INTEGRATORS.get(int(m.opt.integrator), "another one")
    if integrator in HONOURED_INTEGRATORS:
        findings.honour(f"integrator {integrator}")
    else:
        findings.approximate(
            f"<option integrator='{integrator}'>: costate integrates by semi-implicit Euler with implicit damping"
        )
    findings.honour(f"cone {'elliptic' if m.opt.cone else 'pyramidal (its friction is a disc here)'}")
    if m.opt.density or m.opt.viscosity:
        wind = f", wind {tuple(float(x) for x in m.opt.wind)} m/s" if m.opt.wind.any() else ""
        findings.refuse(f"<option density='{m.opt.density:g}' viscosity='{m.opt.viscosity:g}'>: forces of a fluid{wind}")
    if source.on("OVERRIDE"):
        findings.refuse("<flag override='enable'>: contact parameters that override those of all geoms")
    if source.off("ACTUATION"):
        findings.refuse("<flag actuation='disable'>: actuators without force")
    if source.off("EULERDAMP") and m.dof_damping.any():
        findings.approximate("<flag eulerdamp='disable'>: dampers are integrated implicitly all the same")
    if m.opt.disableactuator:
        findings.refuse(f"<option actuatorgroupdisable>: groups of actuators without force, bits {int(m.opt.disableactuator):#x}")
    for flag in ("IPC", "SPECULATIVE"):
        if source.on(flag):
            findings.approximate(f"<flag {flag.lower()}='enable'>: another kind of contact")


def check_bodies(source: Source) -> None:
    """Gravity compensation, plugins, flexes, surfaces that stick or move."""
    m, findings = source.m, source.findings
    lifted = [source.body_names[b] or "world" for b in np.flatnonzero(m.body_gravcomp)]
    if lifted:
        findings.refuse(f"{listed('body', lifted)}: gravcomp")
    if any(np.any(source.numbers(f"{kind}_plugin") >= 0) for kind in ("body", "geom", "actuator")):  # not those of sensors
        findings.refuse(listed("plugin", [_name(source, "PLUGIN", i) for i in range(m.nplugin)]))
    if m.nflex:
        findings.refuse(listed("flex", [_name(source, "FLEX", i) for i in range(m.nflex)]))
    for word in ("geom_adhesion", "geom_surfacevel"):
        numbers = source.numbers(word)
        if numbers.size and numbers.any():
            names = [source.geoms[g] for g in np.flatnonzero(np.reshape(numbers, (m.ngeom, -1)).any(1))]
            findings.refuse(f"{listed('geom', names)}: {word.removeprefix('geom_')}")


def check_joints(source: Source) -> None:
    """Springs and dampers that are not linear, softness of limits and of dry friction."""
    m, findings = source.m, source.findings
    curved = np.zeros(m.njnt, bool)
    for word, joints in (
        ("jnt_stiffnesspoly", np.arange(m.njnt)),
        ("dof_dampingpoly", m.dof_jntid),
        ("jnt_springyield", np.arange(m.njnt)),
    ):
        numbers = source.numbers(word)
        if len(numbers):
            curved[joints[np.reshape(numbers != 0, (len(joints), -1)).any(1)]] = True
    if curved.any():
        names = [source.joint_names[j] for j in np.flatnonzero(curved)]
        findings.refuse(f"{listed('joint', names)}: a spring or damper that is not linear")
    limited = [] if source.off("LIMIT") else [j for j in range(m.njnt) if m.jnt_limited[j]]
    soft = [source.joint_names[j] for j in limited if m.jnt_margin[j] > 0 or not _usual(m.jnt_solref[j], m.jnt_solimp[j])]
    if soft:
        findings.approximate(f"{listed('joint', soft)}: solreflimit, solimplimit and margin; limits are rigid")
    dry = {int(j) for j, loss in zip(m.dof_jntid, m.dof_frictionloss) if loss > 0}
    soft = [
        source.joint_names[m.dof_jntid[d]]
        for d in range(m.nv)
        if m.dof_jntid[d] in dry and not _usual(m.dof_solref[d], m.dof_solimp[d])
    ]
    if soft:
        findings.approximate(
            f"{listed('joint', list(dict.fromkeys(soft)))}: solreffriction and solimpfriction; dry friction is rigid"
        )


def check_tendons(source: Source) -> None:
    """Tendons that only measure or are drawn do nothing; the others are refused."""
    m = source.m
    for i in range(m.ntendon):
        forces = [
            word
            for word in ("stiffness", "damping", "frictionloss", "armature", "limited", "stiffnesspoly", "dampingpoly")
            if source.numbers(f"tendon_{word}").size and np.any(source.numbers(f"tendon_{word}")[i])
        ]
        if forces:
            source.findings.refuse(f"tendon {_name(source, 'TENDON', i)!r}: {', '.join(forces)}")


def _name(source: Source, kind: str, index: int) -> str:
    return mujoco().mj_id2name(source.m, getattr(mujoco().mjtObj, f"mjOBJ_{kind}"), index) or f"{kind.lower()}{index}"


def _usual(solref: np.ndarray, solimp: np.ndarray) -> bool:
    return bool(np.allclose(solref, SOLREF) and np.allclose(solimp, SOLIMP))
