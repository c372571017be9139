"""Paper B's robots with servos, an arm and a quadruped: each as a tree, and out of free bodies held together by constraints.

Paper B (Degrave et al., 2019) simulates in maximal coordinates: every body has its six degrees of freedom, and constraints take
most of them away again. Here the same robots are also built as trees, from the same bodies, so that both can be compared.

The arm has a universal joint at its base and one in its elbow, is 1 m long and has 32 kg; servos of 30 N m and 45 degrees/s with
gain 30/s. A servo wishes the speed  gain (target - angle), at most its largest one, and has it wherever its torque is enough.
The quadruped has 28.7 kg, three quarters of them in its spine; a hip and a knee in each leg with servos of 4 N m; spheres as
feet, and four more inside the spine. Its 17 bodies have 102 speeds; 8 hinges (5 rows) and 8 welds (6 rows) hold them: 88 rows.
The paper counts exactly 100 constraints; 3 rows for each foot on the ground make it that. It trots open-loop, at its 1.5 Hz.

Not told by the paper, and chosen here: all sizes but the arm's length; where masses sit; gain and speed of the quadruped's
servos, its friction, and the gait. Spread over the arm, 32 kg would take 157 N m to hold level: 25.5 kg are in a base that stands
still. The quadruped's legs are short, since two of them, bent, carry 28.7 kg when it trots, with 4 N m in each joint.

    python examples/servo_robots.py [--quick] [--out outputs]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, radians
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import costate as cs

Place: TypeAlias = tuple[float, float, float]
X, Y = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
DT = 0.01  # s, the paper's step

ARM_SERVO = {"gain": 30.0, "max_force": 30.0, "max_speed": radians(45)}  # 1/s, N m, rad/s
ARM_LENGTH = 1.0  # m, the elbow is in the middle
ARM_MASS = {"base": 25.5, "shoulder": 0.5, "upper": 3.5, "elbow": 0.5, "fore": 2.0}  # kg
TARGET = (0.5, 0.5, 0.5)  # m, where paper B's arm learns to go

SERVO = {"gain": 30.0, "max_force": 4.0, "max_speed": pi}
SPINE_MASS = 21.5  # kg
LEG_MASS = {"shoulder": 0.4, "upper": 0.6, "lower": 0.5, "foot": 0.3}  # kg
SPINE = (0.25, 0.1, 0.06)  # m, half of its extents
HIP = (0.2, 0.13)  # m, from the middle of the spine
LEG, FOOT = 0.07, 0.02  # m: half a leg from joint to joint, radius of a foot
LEGS = {"front left": (1, 1), "front right": (1, -1), "hind left": (-1, 1), "hind right": (-1, -1)}
FRICTION = 0.6
HERTZ, SWING, LIFT, LEAN, OVERLAP = 1.5, 0.25, 0.6, 0.05, 0.2  # of the gait, see there


class Assembly:
    """Puts bodies together: as a tree of joints, or each of them free and held to its parent by a constraint.

    All frames are parallel to the world's at first, and hinges at zero: both ways have the same poses and the same angles.
    """

    def __init__(self, *, maximal: bool, collisions: bool = True) -> None:
        self.scene, self.maximal = cs.Scene(collisions=collisions), maximal
        self._at: dict[str | None, Place] = {None: (0.0, 0.0, 0.0)}

    def add(self, name: str, at: Place, shapes: Any, *, parent: str | None = None, free: bool = False) -> None:
        """A body with its frame `at` a point (m, world), fixed to its parent (default: the world) or free."""
        self._put(name, at, shapes, cs.Free() if free or self.maximal else cs.Fixed(), parent)
        if self.maximal and not free:
            self.scene.add_weld(parent, name, pos=self._from(parent, at))

    def add_hinged(
        self,
        name: str,
        at: Place,
        shapes: Any,
        *,
        parent: str,
        axis: Place,
        joint: str,
        servo: dict[str, float],
    ) -> None:
        """A body that turns about an axis through its frame, driven by a servo; the joint has its own name."""
        self._put(name, at, shapes, cs.Free() if self.maximal else cs.Revolute(axis, name=joint), parent)
        if self.maximal:
            self.scene.add_hinge(parent, name, axis=axis, pos=self._from(parent, at), name=joint)
        self.scene.add_servo(joint, **servo)

    def _put(self, name: str, at: Place, shapes: Any, joint: Any, parent: str | None) -> None:
        world = isinstance(joint, cs.Free)
        self.scene.add_body(
            name, parent=None if world else parent, joint=joint, pos=at if world else self._from(parent, at), shapes=shapes
        )
        self._at[name] = at

    def _from(self, parent: str | None, at: Place) -> Place:
        (x, y, z), (px, py, pz) = at, self._at[parent]
        return x - px, y - py, z - pz


def arm(*, maximal: bool = False) -> cs.Model:
    """Paper B's arm, upright; servos "shoulder x", "shoulder y", "elbow x", "elbow y" and a site "tip". Nothing collides."""
    robot, half = Assembly(maximal=maximal, collisions=False), ARM_LENGTH / 2
    robot.add("base", (0.0, 0.0, 0.0), cs.Cylinder(0.15, 0.1, mass=ARM_MASS["base"], pos=(0.0, 0.0, -0.1)))
    parent = "base"
    for cross, link, z in (("shoulder", "upper", 0.0), ("elbow", "fore", half)):
        at, ball = (0.0, 0.0, z), cs.Sphere(0.06, mass=ARM_MASS[cross])
        rod = cs.Cylinder(0.04, half / 2, mass=ARM_MASS[link], pos=(0.0, 0.0, half / 2))
        robot.add_hinged(cross, at, ball, parent=parent, axis=X, joint=f"{cross} x", servo=ARM_SERVO)
        robot.add_hinged(link, at, rod, parent=cross, axis=Y, joint=f"{cross} y", servo=ARM_SERVO)
        parent = link
    robot.scene.add_site("tip", body="fore", pos=(0.0, 0.0, half))
    return robot.scene.build()


def quadruped(*, maximal: bool = False) -> cs.Model:
    """Paper B's quadruped, standing on straight legs; servos "front left hip", "front left knee", "front right hip", ..."""
    robot, height = Assembly(maximal=maximal), 2 * LEG + FOOT
    robot.scene.add_ground(friction=FRICTION)
    touch = {"friction": FRICTION, "group": 2, "mask": 1}  # the ground only
    inner = [cs.Sphere(SPINE[2], mass=0.0, pos=(0.19 * x, 0.04 * y, 0.0), **touch) for x, y in LEGS.values()]
    robot.add("spine", (0.0, 0.0, height), [cs.Box(SPINE, mass=SPINE_MASS, collide=False), *inner], free=True)
    for leg, (forward, left) in LEGS.items():
        x, y = forward * HIP[0], left * HIP[1]
        down = {"pos": (0.0, 0.0, -LEG / 2), "collide": False}
        box = cs.Box((0.03, 0.03, 0.03), mass=LEG_MASS["shoulder"], collide=False)
        robot.add(f"{leg} shoulder", (x, y, height), box, parent="spine")
        for part, above, joint, z in (("upper", "shoulder", "hip", height), ("lower", "upper", "knee", height - LEG)):
            rod = cs.Capsule(0.015, LEG / 2, mass=LEG_MASS[part], **down)
            names = {"parent": f"{leg} {above}", "joint": f"{leg} {joint}"}
            robot.add_hinged(f"{leg} {part}", (x, y, z), rod, axis=Y, servo=SERVO, **names)
        robot.add(f"{leg} foot", (x, y, FOOT), cs.Sphere(FOOT, mass=LEG_MASS["foot"], **touch), parent=f"{leg} lower")
    return robot.scene.build()


def to_maximal(tree: cs.Model, maximal: cs.Model, state: cs.State) -> cs.State:
    """The state of all free bodies of the maximal robot where the tree is in `state`; bodies are found by name."""
    order = [tree.body(name) for name in maximal.body_names]
    position, quaternion, velocity = (x[..., order, :] for x in cs.kinematics(tree, state.q, state.v)[:3])
    # a free body's spin is in its own axes: turned back by the quaternion
    spin, u = torch.broadcast_tensors(velocity[..., :3], -quaternion[..., 1:])
    t = 2 * torch.linalg.cross(u, spin)
    spin = spin + quaternion[..., :1] * t + torch.linalg.cross(u, t)
    q, v = torch.cat((position, quaternion), -1), torch.cat((velocity[..., 3:], spin), -1)
    return cs.State(q.flatten(-2), v.flatten(-2))


def gait(time: Tensor) -> Tensor:
    """Targets [..., 8] of the quadruped's servos at `time` [...] (s): a trot that grows in the first half second.

    Diagonal legs swing together. A knee bends while its hip swings forwards, for a little less than half of the time.
    """
    phase = 2 * pi * HERTZ * time.unsqueeze(-1) + torch.tensor([0.0, pi, pi, 0.0], dtype=time.dtype)
    hip = LEAN + SWING * phase.sin()
    knee = -LIFT * (-phase.cos() - OVERLAP).clamp(min=0) / (1 - OVERLAP)
    return (2 * time).clamp(max=1)[..., None] * torch.stack((hip, knee), -1).flatten(-2)


# ---- the arm moves ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Motion:
    """What servos did, step by step: when it ended (s), angle, speed, the speed they wished (rad/s) and torque (N m), [T, n]."""

    time: Tensor
    angle: Tensor
    speed: Tensor
    wish: Tensor
    torque: Tensor


def drive(model: cs.Model, controls: Tensor, servo: dict[str, float], *, dt: float) -> Motion:
    """Run a tree whose last joints are driven by servos like `servo`; controls [T, n]."""
    sim, kept, joints = cs.Simulator(model, dt=dt), [], slice(-controls.shape[-1], None)
    state = sim.initial_state()
    for control in controls:
        wish = (servo["gain"] * (control - state.q[joints])).clamp(-servo["max_speed"], servo["max_speed"])
        state, info = sim.step(state, control, info=True)
        kept.append((state.q[joints], state.v[joints], wish, info.rows.impulse / dt))
    return Motion(dt * torch.arange(1, len(kept) + 1), *map(torch.stack, zip(*kept, strict=True)))


def pose_for(model: cs.Model, target: Place) -> Tensor:
    """Angles [4] with which the arm's tip is at `target`: Gauss-Newton from a bent arm."""
    q, goal = torch.tensor([-0.3, 0.3, -0.6, 0.6], dtype=torch.float64), torch.tensor(target, dtype=torch.float64)
    for _ in range(20):
        J = cs.point_jacobian(model, q, "fore", (0.0, 0.0, ARM_LENGTH / 2))[3:]
        q = q + torch.linalg.pinv(J) @ (goal - cs.kinematics(model, q).site_position[0])
    return q


def move_arm(model: cs.Model) -> Motion:
    """From upright to where the tip is at TARGET, in 2 s."""
    return drive(model, pose_for(model, TARGET).repeat(round(2.0 / DT), 1), ARM_SERVO, dt=DT)


# ---- the quadruped walks, both ways -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Comparison:
    """Both robots under the same controls; distance (m) and angle (rad) [T+1]: the largest between a body here and there."""

    tree: cs.Trajectory
    maximal: cs.Trajectory
    distance: Tensor
    angle: Tensor


def compare(tree: cs.Model, maximal: cs.Model, controls: Tensor, *, dt: float) -> Comparison:
    """Rollouts of both from the tree's first state; controls [T, nu]."""
    here, there = cs.Simulator(tree, dt=dt), cs.Simulator(maximal, dt=dt)
    start = here.initial_state()
    a, b = here.rollout(start, controls), there.rollout(to_maximal(tree, maximal, start), controls)
    apart = maximal.difference(to_maximal(tree, maximal, cs.State(a.q, a.v)).q, b.q)
    distance, angle = apart.unflatten(-1, (maximal.nb, 2, 3)).norm(dim=-1).amax(-2).unbind(-1)
    return Comparison(a, b, distance, angle)


def walk(seconds: float, dt: float) -> Tensor:
    """Controls [T, 8] of the gait."""
    return gait(dt * torch.arange(round(seconds / dt), dtype=torch.float64))


def microseconds(model: cs.Model, controls: Tensor, *, dt: float, worlds: int) -> float:
    """Time of one step of one world while `worlds` of them walk side by side, no two of them alike; median of three."""
    sim, spent = cs.Simulator(model, dt=dt), []
    offset = 0.02 * torch.randn(worlds, model.nu, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for _ in range(3):
        began = perf_counter()
        sim.rollout(sim.initial_state(worlds), controls.unsqueeze(1) + offset)
        spent.append(perf_counter() - began)
    return 1e6 * median(spent) / len(controls) / worlds


def report(ways: dict[str, cs.Model], walks: dict[str, cs.Trajectory], *, timed: bool) -> Table:
    """Size, drift, distance and, if asked for, time of both ways."""
    table = Table("quadruped", *ways, title="The same robot, two ways")
    table.add_row("speeds", *(str(model.nv) for model in ways.values()))
    table.add_row("equality rows", *(str(model.ne) for model in ways.values()))
    table.add_row("largest error of a constraint, m or rad", *(f"{traj.status.drift.item():.1e}" for traj in walks.values()))
    seconds = DT * len(walks["tree"].controls)
    table.add_row(f"walked in {seconds:g} s, m", *(f"{traj.q[-1, 0].item():.3f}" for traj in walks.values()))
    for worlds in (1, 64) if timed else ():
        spent = [microseconds(model, walk(1.0, DT), dt=DT, worlds=worlds) for model in ways.values()]
        table.add_row(f"us per step of a world, {worlds} at once", *(f"{x:.1f}" for x in spent))
    return table


def main(argv: Sequence[str] | None = None) -> tuple[Motion, Comparison, dict[str, cs.Trajectory]]:
    """Move the arm, walk, compare, draw."""
    parser = argparse.ArgumentParser(description="paper B's robots with servos, as trees and in maximal coordinates")
    parser.add_argument("--quick", action="store_true", help="walk for 3 s instead of 10 s, and take no times")
    parser.add_argument("--out", type=Path, default=Path("outputs"), help="folder of the pictures; '-' draws none")
    args = parser.parse_args(argv)
    console, robot = Console(), arm()
    motion = move_arm(robot)
    tip = cs.kinematics(robot, motion.angle[-1]).site_position[0]
    peak, most = motion.speed.abs().max().rad2deg().item(), motion.torque.abs().max().item()
    console.print(
        f"arm: {peak:.3f} degrees/s and {most:.3f} N m at most; the tip ends at {[round(x, 4) for x in tip.tolist()]} m"
    )
    ways = {"tree": quadruped(), "maximal": quadruped(maximal=True)}
    short = compare(*ways.values(), walk(0.5, 1e-3), dt=1e-3)
    console.print(
        f"quadruped, 0.5 s in steps of 1 ms: tree and maximal robot at most {short.distance.max().item():.1e} m and "
        f"{short.angle.max().item():.1e} rad apart, constraints missed by {short.maximal.status.drift.item():.1e} at most"
    )
    far = compare(*ways.values(), walk(3.0 if args.quick else 10.0, DT), dt=DT)
    walks = {"tree": far.tree, "maximal": far.maximal}
    console.print(report(ways, walks, timed=not args.quick))
    if str(args.out) != "-":
        from pictures.servos import draw_arm, draw_quadruped

        console.print(f"pictures: {draw_arm(robot, motion, args.out)}, {draw_quadruped(ways['maximal'], far, short, args.out)}")
    return motion, short, walks


def check() -> None:
    """Servos keep their word, the arm arrives, both quadrupeds stand and walk, and they do so alike."""
    motion, short, walks = main(["--quick", "--out", "-"])
    within = motion.torque.abs() < ARM_SERVO["max_force"] * (1 - 1e-6)
    assert motion.torque.abs().max() <= ARM_SERVO["max_force"] * (1 + 1e-9) and not within.all()
    assert ((motion.speed - motion.wish).abs() < 1e-4)[within].all()  # of the softness that every row has
    assert abs(motion.speed.abs().max() - ARM_SERVO["max_speed"]) < 1e-4
    tip = cs.kinematics(arm(), motion.angle[-1]).site_position[0]
    assert (tip - torch.tensor(TARGET)).norm() < 1e-4
    assert short.distance.max() < 1e-3 and short.maximal.status.drift < 1e-6
    assert short.angle.max() < 5e-3  # a foot that lands one step later turns by 3e-3 less
    stand = compare(quadruped(), quadruped(maximal=True), torch.zeros(100, 8, dtype=torch.float64), dt=DT)
    assert (stand.tree.q[-1] - stand.tree.q[0]).abs().max() < 1e-4 and stand.distance.max() < 1e-4
    for traj in walks.values():
        assert traj.q[-1, 0] > 0.3 and traj.q[:, 2].min() > 0.9 * traj.q[0, 2], traj.q[-1, :3]


if __name__ == "__main__":
    torch.set_num_threads(1)
    cs.set_num_threads(1)
    main()
