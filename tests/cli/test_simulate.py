"""costate simulate: the same states as the library gives, controls, files, summaries, mistakes."""

import csv

import numpy as np
import pytest
import torch

import costate as cs
from costate.cli import record, simulate
from tests.cli.models import call, robot


def rollout(model, steps, control=None, dt=0.01):
    sim = cs.Simulator(model, dt)
    controls = None if control is None else torch.tensor(control, dtype=torch.float64).expand(steps, 1, model.nu)
    return sim.rollout(sim.initial_state(1), controls, steps=steps)


def test_states_are_those_of_a_rollout(capsys, saved, tmp_path):
    out = tmp_path / "states.npz"
    ran = call(capsys, "simulate", saved, "--time", 1.5, "--controls", "0.1,-0.2", "--out", out)
    assert ran.code == 0 and "150 steps" in ran.out and str(out) in ran.out and ran.err == ""
    expected = rollout(robot(), 150, (0.1, -0.2))
    with np.load(out, allow_pickle=False) as file:
        np.testing.assert_array_equal(file["q"], expected.q.numpy())
        np.testing.assert_array_equal(file["v"], expected.v.numpy())
        np.testing.assert_allclose(file["time"], 0.01 * np.arange(151), atol=1e-12)
        assert file["controls"].shape == (150, 1, 2) and file["q_names"].tolist()[6:] == ["base.qz", "front", "rear"]
    again = cs.Trajectory.load(out)
    assert torch.equal(again.q, expected.q) and not again.diverged.any()
    assert call(capsys, "simulate", saved, "--controls", out, "--json").json["steps"] == 150  # what was written can be read


def test_json(capsys, saved):
    found = call(capsys, "simulate", saved, "--worlds", 3, "--noise", 0.2, "--json").json
    assert (found["steps"], found["worlds"], found["dt"], found["time"]) == (100, 3, 0.01, 1.0)
    assert found["contacts"]["most"] >= 2 and found["energy"]["end"] < found["energy"]["start"]
    assert found["speed"]["steps_per_second"] > 0 and found["speed"]["times_real_time"] > 0
    assert found["solver"]["residual"] >= 0 and found["diverged"] == {} and found["out"] is None


def test_energy_of_a_free_fall_is_kept(capsys, tmp_path):
    scene = cs.Scene()
    scene.add_body("stone", joint=cs.Free(), pos=(0, 0, 1), shapes=cs.Sphere(0.1, mass=2.0))
    scene.build().save(tmp_path / "stone.npz")
    energy = call(capsys, "simulate", tmp_path / "stone.npz", "--time", 0.5, "--dt", 0.001, "--json").json["energy"]
    # semi-implicit Euler loses m g^2 h t / 2 in a free fall
    assert energy["start"] - energy["end"] == pytest.approx(2.0 * 9.81**2 * 0.001 * 0.5 / 2, rel=1e-6)
    assert energy["kinetic_end"] == pytest.approx(0.5 * 2.0 * (9.81 * 0.5) ** 2, rel=1e-9)


def test_parts_do_not_matter(capsys, saved, tmp_path, monkeypatch):
    states = []
    for first, most in ((1, 3), (16, 4096)):
        monkeypatch.setattr(simulate, "FIRST", first)
        monkeypatch.setattr(simulate, "MOST", most)
        call(capsys, "simulate", saved, "--worlds", 2, "--noise", 1, "--every", 7, "--out", tmp_path / "a.npz")
        with np.load(tmp_path / "a.npz") as file:
            states.append({name: file[name] for name in file.files})
    assert states[0]["q"].shape == (15, 2, 9)
    for name in states[0]:
        np.testing.assert_array_equal(states[0][name], states[1][name])
    np.testing.assert_allclose(states[0]["time"], 0.07 * np.arange(15), atol=1e-12)


def test_csv(capsys, saved, tmp_path):
    call(capsys, "simulate", saved, "--worlds", 2, "--time", 0.1, "--controls", 0.3, "--out", tmp_path / "a.csv")
    head, *rows = csv.reader((tmp_path / "a.csv").open())
    assert head[:4] == ["time", "world", "q.base.x", "q.base.y"] and head[-2:] == ["u.front", "u.rear"]
    assert len(head) == 2 + 9 + 8 + 2 and len(rows) == 22 and all(len(row) == len(head) for row in rows)
    expected = rollout(robot(), 10, (0.3, 0.3))
    last = np.array([float(cell) for cell in rows[-1]])
    np.testing.assert_array_equal(last[2:-2], torch.cat((expected.q[-1], expected.v[-1]), -1)[0].numpy())
    assert last[-2:].tolist() == [0.3, 0.3]


def test_names_of_all_coordinates():
    scene = cs.Scene(collisions=False)
    box = cs.Box((0.1, 0.1, 0.1))
    for name, joint in {"a": cs.Free(), "b": cs.Ball(), "c": cs.Planar(), "d": cs.Fixed(), "e": cs.Prismatic()}.items():
        scene.add_body(name, joint=joint, shapes=box)
    model = scene.build()
    assert len(record.q_names(model)) == model.nq == 15 and len(record.v_names(model)) == model.nv == 13
    assert record.q_names(model)[-4:] == ["c.x", "c.y", "c.angle", "e"] and record.v_names(model)[-4:] == [
        "c.vx",
        "c.vy",
        "c.w",
        "e",
    ]


def test_control_files(capsys, saved, tmp_path):
    table = 0.1 * np.random.default_rng(0).normal(size=(20, 2))
    np.save(tmp_path / "a.npy", table)
    np.savez(tmp_path / "b.npz", anything=table)
    np.savez(tmp_path / "c.npz", controls=table[:, None], more=[1])
    lines = [",".join(map(repr, row)) for row in table.tolist()]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n\n")
    swapped = [",".join(map(repr, row[::-1])) for row in table.tolist()]
    (tmp_path / "e.csv").write_text("\n".join(["rear, front", *swapped]))
    found = []
    for name in ("a.npy", "b.npz", "c.npz", "d.csv", "e.csv"):
        ran = call(capsys, "simulate", saved, "--controls", tmp_path / name, "--out", tmp_path / "out.npz")
        assert ran.code == 0, ran.err
        with np.load(tmp_path / "out.npz") as file:
            found.append(file["q"])
            np.testing.assert_array_equal(file["controls"][:, 0], table)
    assert len(found[0]) == 21 and all(np.array_equal(q, found[0]) for q in found)
    short = call(capsys, "simulate", saved, "--controls", tmp_path / "a.npy", "--time", 0.1, "--json").json
    assert short["steps"] == 10


def test_each_world_its_controls(capsys, saved, tmp_path):
    np.save(tmp_path / "a.npy", np.stack((np.zeros((10, 2)), np.ones((10, 2))), 1))
    call(capsys, "simulate", saved, "--worlds", 2, "--controls", tmp_path / "a.npy", "--out", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as file:
        for world, control in enumerate(((0.0, 0.0), (1.0, 1.0))):
            np.testing.assert_array_equal(file["q"][:, world], rollout(robot(), 10, control).q[:, 0].numpy())


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("a.npy", np.zeros((5, 3)), "shape [steps, 2] or [steps, 1, 2], got [5, 3]"),
        ("a.npy", np.zeros(2), "got [2]"),
        ("a.npy", np.zeros((0, 2)), "got [0, 2]"),
        ("a.npy", np.zeros((5, 4, 2)), "those of 4 worlds, but --worlds is 1"),
        ("a.npy", np.array([[0.0, 0.0], [np.nan, 0.0]]), "got nan for 'front' in step 1"),
        ("a.npy", np.array([["a", "b"]]), "must be real numbers"),
        ("a.npy", np.array([[1, None]], dtype=object), "not a numpy file of numbers"),
        ("a.npz", b"PK\x03\x04 broken", "not a numpy file"),
        ("a.npz", b"", "not a numpy file"),
        ("a.csv", b"1,2,3\n", "line 1: needs 2 numbers, one per actuator, got 3"),
        ("a.csv", b"1,2\n3,x\n", "line 2: must be numbers, got 'x'"),
        ("a.csv", b"front,rar\n1,2\n", "no actuator named 'rar'; did you mean 'rear'?"),
        ("a.csv", b"front,front\n1,2\n", "'front' is missing or there twice"),
        ("a.csv", b"front,rear\n", "got [0, 2]"),
        ("a.csv", b"\xff\xfe\x00", "cannot be read as CSV"),
        ("a.csv", b"1,inf\n", "got inf for 'rear' in step 0"),
        ("a.txt", b"1,2\n", "must be numbers separated by commas or a file"),
    ],
)
def test_bad_control_files(capsys, saved, tmp_path, name, content, wanted):
    path = tmp_path / name
    if isinstance(content, np.ndarray):
        np.save(path, content)
    else:
        path.write_bytes(content)
    ran = call(capsys, "simulate", saved, "--controls", path)
    assert ran.code == 2 and wanted in ran.complaint


def test_bad_controls(capsys, saved, tmp_path):
    assert "one number, or 2: front, rear; got 3" in call(capsys, "simulate", saved, "--controls", "1,2,3").complaint
    assert "must be finite, got nan for 'front'" in call(capsys, "simulate", saved, "--controls", "nan").complaint
    np.save(tmp_path / "walk.npy", np.zeros((10, 2)))
    assert "walk.npy'?" in call(capsys, "simulate", saved, "--controls", tmp_path / "wlk.npy").complaint
    ran = call(capsys, "simulate", saved, "--controls", tmp_path / "walk.npy", "--time", 1)
    assert "needs 100 steps of controls, got 10, which last 0.1 s" in ran.complaint
    scene = cs.Scene()
    scene.add_body("stone", joint=cs.Free(), shapes=cs.Sphere(0.1))
    scene.build().save(tmp_path / "stone.npz")
    assert "has no actuators" in call(capsys, "simulate", tmp_path / "stone.npz", "--controls", 1).complaint


def test_bad_outputs(capsys, saved, tmp_path):
    assert "must end in .npz or .csv" in call(capsys, "simulate", saved, "--out", tmp_path / "a.txt").complaint
    assert "there is no folder" in call(capsys, "simulate", saved, "--out", tmp_path / "no" / "a.npz").complaint
    (tmp_path / "b.npz").mkdir()
    assert "is a folder" in call(capsys, "simulate", saved, "--out", tmp_path / "b.npz").complaint
    ran = call(capsys, "simulate", saved, "--worlds", 100000, "--time", 1000, "--out", tmp_path / "a.npz")
    assert "GiB" in ran.complaint and "--every" in ran.complaint
    assert "steps, more than" in call(capsys, "simulate", saved, "--time", 1e30, "--dt", 1e-300).complaint


def test_keyframes_and_time_steps_of_a_file(capsys, mjcf, tmp_path):
    out = tmp_path / "a.npz"
    found = call(capsys, "simulate", mjcf, "--keyframe", "crouch", "--time", 0.1, "--out", out, "--json").json
    assert found["dt"] == 0.004 and found["steps"] == 25
    with np.load(out) as file:
        assert file["q"][0, 0].tolist() == [0, 0, 0.5, 1, 0, 0, 0, 0.3] and file["v"][0, 0].tolist() == [0, 0, 0, 0, 0, 0, 1]
        assert (file["controls"] == 0.5).all()
    assert "did you mean 'crouch'?" in call(capsys, "simulate", mjcf, "--keyframe", "crouc").complaint


def test_refused_files_exit_with_1(capsys, fluid):
    ran = call(capsys, "simulate", fluid, "--json")
    assert ran.code == 1 and "density" in ran.complaint and "--lenient" in ran.complaint and len(ran.json["refused"]) == 1
    ran = call(capsys, "simulate", fluid, "--lenient", "--time", 0.1)
    assert ran.code == 0 and ran.err.startswith("warning: ") and "density" in ran.err


def test_float32(capsys, saved, tmp_path):
    assert call(capsys, "simulate", saved, "--float32", "--out", tmp_path / "a.npz").code == 0
    with np.load(tmp_path / "a.npz") as file:
        np.testing.assert_allclose(file["q"][10], rollout(robot(), 10).q[-1].numpy(), atol=1e-5)  # a few roundings of 6e-8


def test_worlds_that_diverge_are_told(capsys, tmp_path):
    scene = cs.Scene(collisions=False)
    scene.add_body("rod", joint=cs.Revolute((0, 1, 0)), shapes=cs.Capsule(0.05, 0.3, pos=(0, 0, -0.3)))
    scene.add_motors(gear=1e200)
    scene.build().save(tmp_path / "rod.npz")
    ran = call(capsys, "simulate", tmp_path / "rod.npz", "--controls", 1e200, "--time", 0.5, "--worlds", 2, "--json")
    assert ran.code == 0 and set(ran.json["diverged"]) == {"0", "1"} and len(ran.json["warnings"]) == 1
    assert "2 of 2 worlds diverged" in ran.err
