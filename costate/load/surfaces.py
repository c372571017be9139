"""Surfaces: friction, condim and softness of geoms, as numbers of shapes.

MuJoCo's contacts are springs and dampers, made by solref and solimp, whose strength is relative to the inertia they work on. A
contact that carries the normal force f rests at a depth r (m) with

    r = c A f (1 - d) / (K d^2),    d = d(r) from solimp,    K = 1 / (dmax timeconst dampratio)^2,

A the inverse inertia of both bodies at the contact (body_invweight0, they add up). c is 1 for elliptic cones and contacts without
friction. A pyramid of n edges with friction mu has c = 2 mu^2 (1 + mu^2) / n, because each edge is a spring of its own.
costate's softness is r / f, and adds up too: that of a geom is c A (1 - d) / (K d^2), with d at the depth where one contact
carries the weight of the whole tree. MuJoCo's default is a numerical convenience, and becomes a rigid contact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costate.load.findings import listed
from costate.load.source import Source

SOLREF = (0.02, 1.0)  # MuJoCo's defaults
SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
LEAST_IMPEDANCE, MOST_IMPEDANCE = 0.0001, 0.9999  # mjMINIMP, mjMAXIMP
WEIGHT = 9.81  # m/s^2, for models without gravity
ELLIPTIC = 1  # mjtCone
TINY = 1e-15  # mjMINVAL
SLOWEST = 1e10  # s, the longest time constant that counts: a file may say anything
HALVINGS = 80  # of an interval that holds the depth


def surface(source: Source, geom: int) -> dict[str, Any]:
    """Friction, condim and softness of a geom as arguments of a Shape."""
    m = source.m
    slide, torsion, rolling = (float(x) for x in m.geom_friction[geom])
    condim = int(m.geom_condim[geom])
    numbers: dict[str, Any] = {"softness": softness(source, geom), "friction": slide}
    return {**numbers, "condim": condim, "torsion": torsion, "rolling": rolling}


def check_surfaces(source: Source, touching: list[int]) -> None:
    """Tell what is not as MuJoCo has it, of the geoms that may touch."""
    m, findings = source.m, source.findings
    names = source.geoms
    apart = [names[g] for g in touching if m.geom_margin[g] > 0]
    if apart:
        findings.approximate(
            f"{listed('geom', apart)}: margin, up to {m.geom_margin[touching].max():g} m: MuJoCo pushes bodies apart from that "
            "distance on, costate where they touch"
        )
    soft = [g for g in touching if not _default(source, g)]
    if soft:
        kinds = {(*m.geom_solref[g], *m.geom_solimp[g]) for g in touching}
        mixed = "" if len(kinds) == 1 else "; MuJoCo mixes it with that of the other geom, costate does not"
        findings.approximate(
            f"{listed('geom', [names[g] for g in soft])}: solref and solimp become a softness that gives the same depth at rest "
            f"under the weight of the whole tree{mixed}"
        )


def softness(source: Source, geom: int) -> float:
    """How far a geom sinks in per force (m/N); 0 for MuJoCo's default, and for what stands still."""
    m = source.m
    body = int(m.geom_bodyid[geom])
    inverse = _cone(source, geom) * float(m.body_invweight0[body, 0])
    if _default(source, geom) or inverse == 0.0:
        return 0.0
    gravity = float(np.linalg.norm(m.opt.gravity)) or WEIGHT
    load = inverse * gravity * float(m.body_subtreemass[m.body_rootid[body]])
    return inverse * depth(m.geom_solref[geom], m.geom_solimp[geom], load) / load


def _cone(source: Source, geom: int) -> float:
    """c, with the condim and the friction that the geom has against what stands still."""
    m = source.m
    still = (m.body_weldid[m.geom_bodyid] == 0) & ((m.geom_contype != 0) | (m.geom_conaffinity != 0))
    condim = int(max(m.geom_condim[geom], m.geom_condim[still].max(initial=1)))
    if condim == 1 or m.opt.cone == ELLIPTIC:
        return 1.0
    mu = float(max(m.geom_friction[geom, 0], m.geom_friction[still, 0].max(initial=0.0)))
    return mu**2 / float(m.opt.impratio) * (1 + mu**2) / (condim - 1)


def depth(solref: np.ndarray, solimp: np.ndarray, load: float) -> float:
    """How deep (m) a contact rests under c A f = `load` (m/s^2).

    r K d(r)^2 - load (1 - d(r)) grows with r, so its root lies where halving an interval finds it.
    """
    most = min(max(float(solimp[1]), LEAST_IMPEDANCE), MOST_IMPEDANCE)
    time, ratio = (float(x) for x in solref)  # a stiffness and a damping, both negative, or a time and a ratio
    K = 1 / max(min(abs(most * time * ratio), SLOWEST) ** 2, TINY) if time > 0 else max(-time, TINY) / most**2

    def excess(r: float) -> float:
        d = impedance(solimp, r)
        return r * K * d * d - load * (1 - d)

    low, high = 0.0, load / (K * LEAST_IMPEDANCE**2)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return (low + high) / 2


def impedance(solimp: np.ndarray, r: float) -> float:
    """d(r) of MuJoCo: from dmin at r = 0 to dmax at r = width, along a power with a midpoint."""
    low, most, width, middle, power = (float(x) for x in solimp)
    low, most = (min(max(x, LEAST_IMPEDANCE), MOST_IMPEDANCE) for x in (low, most))
    middle, power = min(max(middle, LEAST_IMPEDANCE), MOST_IMPEDANCE), max(power, 1.0)
    x = abs(r) / max(width, TINY)
    if x >= 1 or low == most:
        return most
    y = middle * (x / middle) ** power if x <= middle else 1 - (1 - middle) * ((1 - x) / (1 - middle)) ** power
    return low + y * (most - low)


def _default(source: Source, geom: int) -> bool:
    m = source.m
    return bool(np.allclose(m.geom_solref[geom], SOLREF) and np.allclose(m.geom_solimp[geom], SOLIMP))
