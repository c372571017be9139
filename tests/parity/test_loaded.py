"""Robots of public files against MuJoCo: mass matrix, bias forces, poses, accelerations, a second of motion without contact.

14 MJCF files of Gymnasium and 10 URDF files of pybullet_data (MuJoCo gets the repaired text), 7 of these with a free base, too.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("mujoco", reason="MuJoCo is not installed (extra: dev)")
pytest.importorskip("gymnasium", reason="Gymnasium is not installed (extra: dev)")
pytest.importorskip("pybullet_data", reason="pybullet has no wheel for this Python")

import costate as cs
from tests.load.compare import body_names
from tests.parity.loaded import MODELS, both, instant, mujoco_rollout, our_instant, random_controls, random_states

ROOT = Path(__file__).parents[2]
EXACT = 1e-11  # relative; 1e-8 is promised: the same formulas in double leave 2e-13 at most
WAY = 1e-9  # m and rad; 1e-5 is promised: the same scheme in double leaves 2e-12 at most
STATES = 5
LEAST = 0.01  # m or rad that something must move by, so that there is something to compare


@pytest.mark.parametrize("name", MODELS)
def test_instants(name):
    model, params, m = both(name)
    assert (model.nq, model.nv, model.nu, model.ns) == (m.nq, m.nv, m.nu, m.nsite)
    states = random_states(m, STATES, size=0.5, speed=1.0)
    theirs = [instant(m, *state) for state in zip(*states)]
    theirs = {word: np.array([found[word] for found in theirs]) for word in theirs[0]}
    force = theirs.pop("actuators")
    assert np.abs(force).max() > 0
    ours = our_instant(model, params, body_names(m), states, force)
    assert set(ours) == set(theirs)
    for word, expected in theirs.items():
        assert ours[word].shape == expected.shape, word
        error = np.abs(ours[word] - expected).max(initial=0.0)
        assert error <= EXACT * max(1.0, np.abs(expected).max(initial=0.0)), (word, error)


@pytest.mark.parametrize("name", MODELS)
def test_a_second_of_motion(name):
    model, params, m = both(name)
    steps, rng = round(1 / m.opt.timestep), np.random.default_rng(1)
    (q,), (v,), _ = random_states(m, 1, size=0.1, speed=0.1)
    controls = random_controls(m, steps, rng)
    qs, _ = mujoco_rollout(m, q, v, controls)
    assert model.timestep == m.opt.timestep
    ours = cs.Simulator(model, dt=m.opt.timestep).rollout(
        cs.State(torch.tensor(q), torch.tensor(v)), torch.tensor(controls), params
    )
    assert not ours.diverged.any()
    assert np.abs(ours.q.numpy() - qs).max() < WAY
    assert np.abs(qs[-1] - q).max() > LEAST


def test_there_are_enough_models():
    files = {found.file for found in MODELS.values()}
    assert len(files) >= 16 and sum(file.endswith(".xml") for file in files) >= 9


def test_the_page_of_models_is_true():
    run = subprocess.run(
        [sys.executable, "docs/sync_models.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
