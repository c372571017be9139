"""Paper B's quadruped with its 81 sensors, and a network that reads them: trained by gradients through sensors and steps.

Paper B (Degrave et al., 2019) gives its quadruped "81 sensors, e.g. encoders and an inertial measurement unit (IMU)", read by a
network in closed loop. It does not list them. Here they are angle, speed and torque of 8 joints (24); an IMU with gyro,
accelerometer, orientation, compass and velocity (16); where the feet are and how they move, as the spine sees them (24); the
force on each foot (12); and how hard feet and spine touch (5).

The task is a small one: pushed at random, bring the spine 3 cm forward and 1 cm down, in 0.3 s. The network's output is added to
the angles of a stance, and is zero at first, as in the paper. It reads the forces that the control before would exert, since its
own is not there yet.

Joints are driven by springs and dampers here. With the servos of examples/servo_robots.py, which keep their speed whatever it
takes, four feet on hard ground are a table with four legs: which of them carries how much is decided by micrometres, and so are
gradients. Torques of servos have no gradient in the engine either; their sensor would need detach=True.

    python examples/sensors.py [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch
from torch import Tensor, nn

import costate as cs

DT, STEPS, WORLDS = 0.01, 30, 8
KP = 60.0  # N m/rad, of the joints' springs
STANCE = torch.tensor([0.5, -1.0] * 4, dtype=torch.float64)  # rad, hips and knees
LEAN = torch.tensor([0.03, 0.0, -0.01], dtype=torch.float64)  # m, where the spine shall go
LEGS = {"front left": (1, 1), "front right": (1, -1), "hind left": (-1, 1), "hind right": (-1, -1)}
FEET = [f"{leg} foot" for leg in LEGS]
Y = (0.0, 1.0, 0.0)


def quadruped() -> cs.Model:
    """28.7 kg, a hip and a knee in each leg, spheres as feet; sizes as in examples/servo_robots.py."""
    scene = cs.Scene(self_collision=False)
    scene.add_ground(friction=0.6)
    inner = [cs.Sphere(0.06, mass=0.0, pos=(0.19 * x, 0.04 * y, 0), friction=0.6) for x, y in LEGS.values()]
    trunk = cs.Box((0.25, 0.1, 0.06), mass=23.1, collide=False)
    scene.add_body("spine", joint=cs.Free(), pos=(0, 0, 0.16), shapes=[trunk, *inner])
    for leg, (x, y) in LEGS.items():
        rod = {"pos": (0, 0, -0.035), "collide": False}
        foot = cs.Sphere(0.02, mass=0.3, pos=(0, 0, -0.07), friction=0.6, name=f"{leg} foot")
        upper, lower = cs.Capsule(0.015, 0.035, mass=0.6, **rod), cs.Capsule(0.015, 0.035, mass=0.5, **rod)
        hip, knee = cs.Revolute(Y, name=f"{leg} hip"), cs.Revolute(Y, name=f"{leg} knee")
        scene.add_body(f"{leg} upper", parent="spine", pos=(0.2 * x, 0.13 * y, 0), joint=hip, shapes=upper)
        scene.add_body(f"{leg} lower", parent=f"{leg} upper", pos=(0, 0, -0.07), joint=knee, shapes=[lower, foot])
        scene.add_site(f"{leg} foot", body=f"{leg} lower", pos=(0, 0, -0.07))
        for joint in (hip, knee):
            scene.add_position(joint.name, kp=KP, kd=2.0)
    scene.add_site("imu", body="spine", pos=(0.05, 0, 0.03))
    return scene.build()


def senses(model: cs.Model) -> cs.Sensors:
    """The 81, each divided by a typical size."""
    return cs.Sensors(
        model,
        [
            cs.Encoder(),
            cs.EncoderRate(scale=3.0),
            cs.ActuatorForce(scale=4.0),
            cs.Gyro("imu"),
            cs.Accelerometer("imu", scale=10.0),
            cs.FrameQuaternion("imu"),
            cs.Magnetometer("imu", scale=0.5),
            cs.Velocimeter("imu"),
            cs.FramePosition(FEET, relative_to="spine", scale=0.2),
            cs.FrameVelocity(FEET, relative_to="spine"),
            cs.ContactForce(FEET, axes="spine", scale=100.0),
            cs.Touch([*FEET, "spine"], scale=100.0),
        ],
    )


class Policy(nn.Module):
    """The stance, and what a network adds to it; its carry is the control before."""

    def __init__(self, sim: cs.Simulator, sensors: cs.Sensors) -> None:
        super().__init__()
        self.sim, self.sensors = sim, sensors
        last = nn.Linear(32, sim.model.nu)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.layers = nn.Sequential(nn.Linear(sensors.width, 32), nn.Tanh(), last).double()

    def forward(self, state: cs.State, control: Tensor, t: int) -> tuple[Tensor, Tensor]:
        reading = self.sensors(self.sim, state, control)
        control = STANCE + 0.5 * self.layers(reading).tanh()
        return control, control


def standing(sim: cs.Simulator) -> cs.State:
    """In its stance, at rest on its feet."""
    q = sim.initial_state().q
    q[7:] = STANCE
    feet = cs.kinematics(sim.model, q).site_position[:4, 2]
    q[2] += 0.02 - feet.min()
    return sim.rollout(cs.State(q, q.new_zeros(sim.model.nv)), STANCE.expand(400, -1))[-1]


def pushed(rest: cs.State, worlds: int, random: torch.Generator) -> cs.State:
    """That state in many worlds, each with another horizontal velocity, 0.05 m/s."""
    push = torch.zeros(worlds, len(rest.v), dtype=torch.float64)
    push[:, :2] = 0.05 * torch.randn(worlds, 2, dtype=torch.float64, generator=random)
    return cs.State(rest.q.expand(worlds, -1), rest.v + push)


def missed(policy: Policy, rest: cs.State, start: cs.State, *, steps: int = STEPS) -> Tensor:
    """Mean squared distance of the spine from where it shall be, cm^2, over the last two thirds of the time."""
    before = STANCE.expand(*start.q.shape[:-1], -1)
    traj = policy.sim.rollout(start, policy, steps=steps, carry=before)
    off = traj.q[steps // 3 :, ..., :3] - (rest.q[:3] + LEAN)
    return 1e4 * off.square().sum(-1).mean()


def train(policy: Policy, *, iterations: int) -> list[float]:
    """What is missed at every iteration, cm^2."""
    rest, losses = standing(policy.sim), []
    optimiser = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for _ in range(iterations):
        optimiser.zero_grad()
        loss = missed(policy, rest, pushed(rest, WORLDS, torch.Generator().manual_seed(1)))
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    return losses


def main(argv: Sequence[str] | None = None) -> list[float]:
    """Show the sensors and train."""
    parser = argparse.ArgumentParser(description="paper B's quadruped with 81 sensors, read by a network")
    parser.add_argument("--quick", action="store_true", help="10 iterations instead of 60")
    args = parser.parse_args(argv)
    torch.manual_seed(0)
    sim = cs.Simulator(quadruped(), dt=DT)
    policy = Policy(sim, senses(sim.model))
    print(policy.sensors.summary())
    losses = train(policy, iterations=10 if args.quick else 60)
    print("cm^2 missed:", " ".join(f"{loss:.2f}" for loss in losses[::5]), f"{losses[-1]:.2f}")
    return losses


def check() -> None:
    """81 numbers that say what they should, and a network that learns by them."""
    sim = cs.Simulator(quadruped(), dt=DT)
    sensors, rest = senses(sim.model), standing(sim)
    assert sensors.width == 81
    found = sensors.named(sensors(sim, rest, STANCE))
    weight = 9.81 * sim.model.defaults["mass"].sum()
    assert torch.allclose(100 * found["touch"][:4].sum(), weight, rtol=1e-6) and found["touch"][4] == 0
    assert abs(10 * found["accelerometer imu"].norm() - 9.81) < 1e-4
    assert torch.allclose(4 * found["actuator force"], KP * (STANCE - found["encoder"]), atol=1e-6)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a network this small only waits for other threads, for long on a busy machine
    try:
        losses = main(["--quick"])
    finally:
        torch.set_num_threads(threads)
    assert losses[-1] < 0.5 * losses[0], losses


if __name__ == "__main__":
    torch.set_num_threads(1)
    cs.set_num_threads(1)
    main()
