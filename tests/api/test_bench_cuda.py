"""The benchmarks of the GPU and of paper B, small and on the CPU: tables come out, and robots do what they are said to do."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import costate as cs
from bench import crowd as c
from bench import cuda, paper_b
from bench.humanoid import humanoid, humanoid_model
from bench.ours import neighbours
from bench.walkers import ant, standing_quadruped

SMALL = cuda.Plan("cpu", worlds=(4,), steps=3, seconds=0.0, quick=True)


def number(cell: str) -> float:
    """Of a cell such as 1,296, 8.1e-14, 99.70% or 1.2x."""
    return float(cell.replace(",", "").rstrip("%x"))


def column(table, name: str) -> list[float]:
    cells = [row[table.columns.index(name)] for row in table.rows]
    return [number(cell) for cell in cells if cell]


# ---- the humanoid -------------------------------------------------------------------------------------------------------
def test_humanoid_has_27_dof_and_stands_on_its_feet():
    robot, model = humanoid(), humanoid_model()
    assert (robot.nv, robot.nu, model.nv, model.nu) == (27, 21, 27, 21)
    assert model.defaults["mass"].sum().item() == pytest.approx(40.84, abs=0.05)  # MuJoCo's
    sim = cs.Simulator(model, 0.005)
    _, info = sim.step(sim.initial_state(), info=True)
    touching = {model.shape_names[i].split("/")[0] for i in info.contacts.shape_b[info.contacts.active].tolist()}
    assert touching == {"left_ankle_x", "right_ankle_x"}
    assert info.contacts.gap[info.contacts.active].abs().max() < 1e-9  # four capsules lie on the ground, at both ends
    assert info.contacts.active.sum() == 8


def test_humanoid_touches_itself_but_not_its_neighbours():
    model = humanoid_model()
    owner = [name.split("/")[0] for name in model.shape_names]
    pairs = {frozenset((owner[a], owner[b])) for a, b in model.pairs.tolist()}
    assert frozenset(("left_ankle_x", "right_ankle_x")) in pairs and frozenset(("torso", "left_elbow")) in pairs
    for a, b in (("torso", "abdomen_y"), ("abdomen_x", "left_hip_y"), ("torso", "right_shoulder2"), ("abdomen_y", "left_hip_y")):
        assert frozenset((a, b)) not in pairs
    assert len(neighbours(humanoid())) == 12  # 13 links have shapes


def test_humanoid_is_symmetric():
    """With the same angles on both sides the centre of mass stays in the middle."""
    model = humanoid_model()
    q = torch.tensor(model.q0)
    for i, name in enumerate(model.body_names):
        if name.startswith("right_"):
            mirrored = model.body(name.replace("right", "left"))
            q[model.q_address[i]] = q[model.q_address[mirrored]] = 0.1 * (i % 7 - 3)
    assert q[7:].abs().sum() > 1 and cs.centre_of_mass(model, q)[1].abs() < 1e-12


def test_humanoid_moves_as_in_mujoco(rng):
    mujoco = pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    from bench import models

    mj = models.mujoco_model(humanoid())
    data, q, v = mujoco.MjData(mj), humanoid_model().q0.copy(), rng.normal(size=27)
    q[2], q[7:] = 5.0, rng.uniform(-0.03, 0.03, 21)  # off the ground, within all limits
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(mj, data)
    found = cs.forward_dynamics(humanoid_model(), q, v, np.zeros(27))
    assert abs(found - data.qacc).max() < 1e-9 * abs(data.qacc).max()


def test_a_humanoid_falls_and_lies():
    case = cuda.CASES["humanoid"]
    crowd = case.crowd(SMALL, 256, torch.float64)
    sim = crowd.simulator()
    seen = c.look(sim, crowd)
    assert 0 < seen.deepest < 0.002
    assert 10 <= seen.contacts <= 30 and seen.lost == 0
    assert (crowd.start.q[:, 2] < 0.4).double().mean() > 0.95  # a few sit
    before, after = (sum(cs.energy(crowd.model, *state)) for state in (sim.initial_state(256), crowd.start))
    assert after.isfinite().all() and (after < before - 150).all()  # 41 kg are more than 0.5 m lower


# ---- crowds -------------------------------------------------------------------------------------------------------------
def test_crowds_are_drawn_as_in_the_other_tables():
    pytest.importorskip("mujoco")
    pytest.importorskip("pinocchio")
    from bench import contact, gait

    for name, robot in (("quadruped", standing_quadruped()), ("ant", ant())):
        assert (cuda.CASES[name].dt, cuda.CASES[name].burn_in) == (contact.DT[robot.name], gait.BURN_IN)
        ours = cuda.CASES[name].crowd(cuda.Plan("cpu", steps=50), 256, torch.float64)
        theirs = gait.walk(robot, 256, 50, dt=contact.DT[robot.name])
        for a, b in ((ours.controls, theirs.controls), (ours.start.q, theirs.q), (ours.start.v, theirs.v)):
            a, b = a.flatten(0, -2), torch.tensor(b).flatten(0, -2)
            assert ((a.mean(0) - b.mean(0)).abs() < 0.3 * b.std(0)).all() and torch.allclose(a.std(0), b.std(0), rtol=0.3)


def test_worlds_of_a_crowd_differ_and_come_again():
    case = cuda.CASES["quadruped"]
    one, two = (case.crowd(SMALL, 4) for _ in range(2))
    assert torch.equal(one.controls, two.controls) and torch.equal(one.start.q, two.start.q)
    assert one.controls.dtype == torch.float32 and one.world_steps == 12
    for x in (*one.start, *one.controls):
        assert (torch.cdist(x, x) + torch.eye(4) > 1e-3).all()
    assert (one.controls.diff(dim=0).abs() > 0).all()
    assert (one.start.q[:, 2] - standing_quadruped().links[0].pos[2]).abs().max() < 0.04


# ---- tables -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["quadruped", "policy", "ant", "humanoid"])
def test_throughput(name):
    (table,) = cuda.tables(SMALL, [name])
    assert len(table.rows) == {"quadruped": 6, "humanoid": 3}.get(name, 2) and "failed" not in table.markdown()
    assert min(column(table, "M steps/s")) > 0
    assert all(
        math.isfinite(x) for what in ("unsolved", "largest residual, m/s", "largest gradient") for x in column(table, what)
    )
    assert len(column(table, "largest gradient")) == sum("backward" in row[0] for row in table.rows)
    assert column(table, "lost") == [0.0] * len(table.rows)


def test_targets_say_reached_or_missed():
    table = cuda.Table("", ("a",))
    cuda.aim(table, "forward", 40e6, 80e6)
    cuda.aim(table, "forward", 96e6, 80e6)
    cuda.aim(table, "forward", None, 80e6)
    assert [reached for _, reached in table.targets] == [False, True, False]
    assert "40 M, 0.5x" in table.targets[0][0] and "failed" in table.targets[2][0]


def test_a_way_that_fails_has_a_row(monkeypatch):
    def fail(*args, **options):
        raise torch.OutOfMemoryError("no memory\nmore words")

    monkeypatch.setattr(c, "both", fail)
    table = cuda.other(SMALL, "ant")
    assert [row[3].split(":")[0] for row in table.rows][1] == "failed" and number(table.rows[0][3]) > 0


def test_first_states_and_gradient():
    states, gradient = cuda.measure_first("ant", "cpu")
    assert 0 < states < gradient


@pytest.mark.slow
def test_first_use_in_processes_of_its_own():
    table = cuda.first_use(SMALL)
    assert [row[:2] for row in table.rows] == [("quadruped", "empty"), ("quadruped", "filled")]
    assert len(table.targets) == 4 and min(column(table, "first states, s")) >= 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_both_say_so(capsys):
    (table,) = cuda.run(quick=True)
    assert "no CUDA device" in table.markdown() and not table.targets
    for main in (cuda.main, paper_b.main):
        with pytest.raises(SystemExit):
            main(["--device", "cuda"])
        assert "no CUDA device" in capsys.readouterr().err


def test_they_need_no_peers():
    code = "import sys; sys.modules.update(dict.fromkeys(['mujoco', 'pinocchio', 'gymnasium'])); import bench.cuda, bench.paper_b"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# ---- paper B ------------------------------------------------------------------------------------------------------------
def test_paper_b_has_all_cells():
    table = paper_b.table_of(paper_b.Plan("cpu", steps=3, robots=(1,)))
    assert len(table.rows) == 8 and len(table.targets) == 4
    assert all(math.isfinite(x) and x > 0 for x in column(table, "s for 10 s") + column(table, "norm of the gradient"))
    assert max(column(table, "largest residual, m/s")) < 1.0
    assert "scaled: 0.03 s" in table.notes
    # the second half of the paper's table, which it rounds
    printed = {(1, 1296): 8.17, (1, 1_147_904): 13.2, (128, 1296): 2.05, (128, 1_147_904): 2.43}
    for (count, parameters), ms in printed.items():
        assert paper_b._ms(paper_b.PAPER[count, parameters]["cpu"][0], count) == pytest.approx(ms, rel=0.005)


def test_paper_b_reads_81_sensors_with_all_its_weights():
    for parameters in paper_b.LAYERS:
        job = paper_b.Job(paper_b.Plan("cpu", steps=4), 2, parameters, maximal=True)
        assert (job.sim.model.nb, job.sim.model.nv, job.sim.model.ne, job.controller.sensors.width) == (17, 102, 88, 81)
        assert sum(x.numel() for x in job.controller.parameters()) == parameters
        traj, norm = job.travel(4, gradient=True)
        assert norm > 0 and (traj.q[-1, 0] != traj.q[-1, 1]).any()
