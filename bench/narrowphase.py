"""Distances of single pairs of shapes, many poses in one call, against mj_geomDistance."""

from __future__ import annotations

import mujoco
import numpy as np
import torch

import costate as cs
from bench.tables import Table, times, us
from bench.timing import Work, interleaved

POSES = 2048
APART = {"close": 0.12, "apart": 0.5}  # m, between the two centres, in a random direction
AGREE = 1e-6  # m
POINTS = np.random.default_rng(1).normal(size=(16, 3))
POINTS *= 0.08 / np.linalg.norm(POINTS, axis=1, keepdims=True)
BOX, ROUND = (0.05, 0.06, 0.07), (0.05, 0.06)  # m: halves of a box; radius and half length of a cylinder
PAIRS = {"box, box": ("box", "box"), "hull, hull": ("hull", "hull"), "cylinder, box": ("cylinder", "box")}
NOTES = f"""Microseconds per pair of `cs.distance`: {POSES:,} random poses in one call, gap, normal and closest points, float64,
one core; and with the gradient of the gap by both poses and all parameters. Close: centres 12 cm apart, so that most pairs
overlap, else 50 cm; shapes are 10 to 16 cm wide, hulls have {len(POINTS)} corners. MuJoCo: `mj_geomDistance` of the same poses,
one call each; what a call costs (that of two spheres) is subtracted. A cylinder of costate is a prism of 16 sides here, one of
MuJoCo is round. Gaps of boxes and hulls agree to {AGREE:g} m."""


def run(*, quick: bool) -> list[Table]:
    """A row per pair and distance."""
    columns = ("pair", "distance", "cs.distance", "with gradient", "mj_geomDistance", "ratio")
    table = Table("Narrowphase alone", columns, notes=NOTES)
    for pair, shapes in PAIRS.items():
        for where, apart in APART.items():
            q = _poses(apart)
            model, theirs = _costate(*shapes), _mujoco(*shapes)
            if "cylinder" not in pair:
                _agree(model, theirs, q, AGREE)
            works: dict[str, Work] = {"distance": _ours(model, q), "both": _both(model, q)}
            works |= {"peer": _theirs(theirs, q), "call": _theirs(_mujoco("sphere", "sphere"), q)}
            spent = {name: seconds / POSES for name, seconds in interleaved(works, quick=quick).items()}
            peer = spent["peer"] - spent["call"]
            table.add(pair, where, us(spent["distance"]), us(spent["both"]), us(peer), times(peer / spent["distance"]))
    return [table]


def _poses(apart: float) -> np.ndarray:
    """q [POSES, 14] of two free bodies."""
    rng = np.random.default_rng(0)
    way, quat = rng.normal(size=(POSES, 3)), rng.normal(size=(2, POSES, 4))
    place = apart * way / np.linalg.norm(way, axis=1, keepdims=True)
    first, second = quat / np.linalg.norm(quat, axis=2, keepdims=True)
    return np.concatenate((np.zeros((POSES, 3)), first, place, second), 1)


def _costate(*shapes: str) -> cs.Model:
    kinds = {"box": cs.Box(BOX), "hull": cs.Hull(POINTS), "cylinder": cs.Cylinder(*ROUND)}
    scene = cs.Scene()
    for name, shape in zip("ab", shapes, strict=True):
        scene.add_body(name, joint=cs.Free(), shapes=kinds[shape])
    return scene.build()


def _mujoco(*shapes: str) -> mujoco.MjModel:
    kinds = {
        "box": f'type="box" size="{_text(BOX)}"',
        "cylinder": f'type="cylinder" size="{_text(ROUND)}"',
        "hull": 'type="mesh" mesh="hull"',
        "sphere": 'type="sphere" size="0.05"',
    }
    bodies = "".join(f'<body><freejoint/><geom {kinds[shape]} density="1000"/></body>' for shape in shapes)
    mesh = f'<asset><mesh name="hull" vertex="{_text(POINTS.ravel())}"/></asset>'
    return mujoco.MjModel.from_xml_string(f"<mujoco>{mesh}<worldbody>{bodies}</worldbody></mujoco>")


def _text(numbers: tuple[float, ...] | np.ndarray) -> str:
    return " ".join(f"{x:.17g}" for x in numbers)


def _agree(model: cs.Model, peer: mujoco.MjModel, q: np.ndarray, agree: float) -> None:
    """Gaps of some poses must be the same."""
    data, some = mujoco.MjData(peer), q[:64]
    ours, theirs = cs.distance(model, some, 0, 1).gap, np.empty(len(some))
    for i, pose in enumerate(some):
        data.qpos[:] = pose
        mujoco.mj_kinematics(peer, data)
        theirs[i] = mujoco.mj_geomDistance(peer, data, 0, 1, 1.0, np.empty(6))
    worst = np.abs(ours - theirs).max()
    assert worst < agree, f"distances of costate and MuJoCo differ by {worst:.1e} m"


def _ours(model: cs.Model, q: np.ndarray) -> Work:
    poses = torch.tensor(q)
    return lambda: cs.distance(model, poses, 0, 1)


def _both(model: cs.Model, q: np.ndarray) -> Work:
    poses, params = torch.tensor(q, requires_grad=True), model.params(requires_grad=True)
    wanted = [x for x in (poses, *params.leaves()) if x.numel()]
    return lambda: torch.autograd.grad(cs.distance(model, poses, 0, 1, params).gap.sum(), wanted, allow_unused=True)


def _theirs(peer: mujoco.MjModel, q: np.ndarray) -> Work:
    """Poses are written where mj_kinematics would have written them."""
    data, places = mujoco.MjData(peer), []
    for pose in q:
        data.qpos[:] = pose
        mujoco.mj_kinematics(peer, data)
        places.append((data.geom_xpos.copy(), data.geom_xmat.copy()))
    line, distance = np.empty(6), mujoco.mj_geomDistance

    def work() -> None:
        for x, R in places:
            data.geom_xpos[:], data.geom_xmat[:] = x, R
            distance(peer, data, 0, 1, 1.0, line)

    return work
