"""costate.render.frames, save and strip: how many frames there are, which instants they show, and what the files hold."""

from __future__ import annotations

import math
import stat
from functools import cache

import matplotlib
import numpy as np
import pytest
import torch

import costate as cs

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Circle
from PIL import Image

from costate import render
from costate.render.artists import HalfPlane
from costate.render.view import COLORS

DT, SPEED = 0.05, 2.0  # s, m/s
SMALL = {"size": (120, 80), "limits": ((-0.5, 2.5), (-0.5, 1.5))}


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


@cache
def rolling() -> tuple[cs.Model, cs.Trajectory]:
    """A ball that slides without friction along the ground for a second, in two worlds; the second is half as fast."""
    scene = cs.Scene(planar=True)
    scene.add_ground(friction=0.0)
    scene.add_body("ball", pos=(0.0, 0.2), shapes=cs.Circle(0.2, mass=1.0, friction=0.0))
    sim = cs.Simulator(scene.build(), dt=DT)
    start = sim.initial_state(worlds=2)
    start.v[:, 0] = torch.tensor((SPEED, SPEED / 2), dtype=torch.float64)
    return sim.model, sim.rollout(start, steps=20)


def middle(frame: np.ndarray) -> float:
    """x of the ball, m: the mean of all blue pixels."""
    colors = frame.astype(int)
    blue = colors[..., 2] - colors[..., 0] > 60
    return float(np.nonzero(blue)[1].mean() + 0.5) / frame.shape[1] * 3.0 - 0.5


def test_frames_show_the_right_instants():
    model, traj = rolling()
    film = render.frames(model, traj, dt=DT, fps=8.0, **SMALL)
    assert len(film) == 9 and np.allclose(film.times, np.arange(9) / 8)
    frames = np.stack(film)
    assert frames.shape == (9, 80, 120, 3) and frames.dtype == np.uint8
    # a pixel is 0.025 m
    assert np.allclose([middle(frame) for frame in frames], SPEED * film.times, atol=0.03)
    assert np.array_equal(film[3], frames[3]) and np.array_equal(film[-1], frames[8])
    assert np.array_equal(np.stack(film[2:4]), frames[2:4])
    with pytest.raises(IndexError):
        film[9]


def test_speed_and_worlds():
    model, traj = rolling()
    slow = render.frames(model, traj, dt=DT, fps=8.0, speed=0.25, world=1, **SMALL)
    assert len(slow) == 33 and np.allclose(slow.times, np.arange(33) / 32)
    assert middle(slow[32]) == pytest.approx(SPEED / 2, abs=0.03)
    # 1 s is 7.99.. frames of 8 per second, counted in floating point
    assert len(render.frames(model, traj, dt=DT, fps=0.1 * 80, **SMALL)) == 9
    assert len(render.frames(model, traj[0].q[None], dt=DT, **SMALL)) == 1


def test_size_follows_the_scene():
    model, traj = rolling()
    wide = render.frames(model, traj, dt=DT)[0].shape
    assert wide[1] == 640 and 240 <= wide[0] < 640 and wide[0] % 2 == 0
    odd = render.frames(model, traj, dt=DT, size=(121, 79))[0].shape
    assert odd == (80, 120, 3)  # most films want even numbers
    with_axes = render.frames(model, traj, dt=DT, axis=True, clock=True, size=(300, 200))[0]
    assert with_axes.shape == (200, 300, 3)


def test_clock_trail_and_contacts_are_drawn():
    model, traj = rolling()
    plain = render.frames(model, traj, dt=DT, fps=10, **SMALL)[10]
    assert not np.array_equal(plain, render.frames(model, traj, dt=DT, fps=10, clock=True, **SMALL)[10])
    trailed = render.frames(model, traj, dt=DT, fps=10, trail=math.inf, **SMALL)[10]
    short = render.frames(model, traj, dt=DT, fps=10, trail=0.2, **SMALL)[10]
    assert (trailed != plain).any(-1).sum() > (short != plain).any(-1).sum() > 0
    sim = cs.Simulator(model, dt=DT)
    infos = [sim.step(traj[t], info=True)[1] for t in range(20)]
    touching = render.frames(model, traj, dt=DT, fps=10, contacts=infos, **SMALL)[10]
    red = (touching[..., 0].astype(int) - touching[..., 1] > 80).nonzero()
    assert len(red[0]) and (red[1].mean() + 0.5) / 40 - 0.5 == pytest.approx(2.0, abs=0.1)
    for wrong in (infos[:5], infos[0]):
        with pytest.raises(ValueError, match="frames: contacts must be a list of the Infos of all 20 steps"):
            render.frames(model, traj, dt=DT, contacts=wrong)


@pytest.mark.parametrize("fps", [8.0, 30.0])
def test_gif(tmp_path, fps):
    model, traj = rolling()
    path = render.save(tmp_path / "ball.gif", model, traj, dt=DT, fps=fps, clock=False, progress=False, **SMALL)
    with Image.open(path) as gif:
        assert gif.n_frames == fps + 1 and gif.size == (120, 80) and gif.info["loop"] == 0
        lasts, places = [], []
        for k in range(gif.n_frames):
            gif.seek(k)
            lasts.append(gif.info["duration"])
            pixels = np.asarray(gif.convert("RGB"))
            places.append(middle(pixels))
            assert (pixels[5, 5] == 255).all()  # areas keep their colours
            assert tuple(pixels[49, int((places[-1] + 0.5) * 40)]) == tuple(int(COLORS[0][i : i + 2], 16) for i in (1, 3, 5))
    # hundredths of seconds that do not add up to a drift
    assert sum(lasts) == pytest.approx(1000 * (fps + 1) / fps, abs=5) and max(lasts) - min(lasts) <= 10
    assert np.allclose(places, SPEED * np.arange(len(places)) / fps, atol=0.03)


def test_progress_bar(tmp_path, capsys):
    model, traj = rolling()
    render.save(tmp_path / "ball.gif", model, traj, dt=DT, fps=4, **SMALL)
    assert "ball.gif" in (shown := capsys.readouterr().out) and "5/5" in shown
    render.save(tmp_path / "ball.gif", model, traj, dt=DT, fps=4, progress=False, **SMALL)
    assert capsys.readouterr().out == ""


def fake_ffmpeg(folder, monkeypatch, script: str) -> None:
    """A program of that name, found before any other."""
    program = folder / "ffmpeg"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_mp4_frames_go_to_ffmpeg(tmp_path, monkeypatch):
    model, traj = rolling()
    fake_ffmpeg(tmp_path, monkeypatch, f'echo "$@" > {tmp_path}/arguments; cat > {tmp_path}/frames')
    path = render.save(tmp_path / "ball.mp4", model, traj, dt=DT, fps=8, progress=False, **SMALL)
    words = (tmp_path / "arguments").read_text().split()
    assert path == tmp_path / "ball.mp4" and words[-1] == str(path)
    assert words[words.index("-s") + 1] == "120x80" and words[words.index("-r") + 1] == "8"
    raw = np.fromfile(tmp_path / "frames", np.uint8).reshape(-1, 80, 120, 3)
    assert len(raw) == 9 and middle(raw[4]) == pytest.approx(SPEED / 2, abs=0.03)


def test_mp4_without_or_with_a_broken_ffmpeg(tmp_path, monkeypatch):
    model, traj = rolling()
    fake_ffmpeg(tmp_path, monkeypatch, "echo no such codec >&2; exit 1")
    with pytest.raises(RuntimeError, match=r"ffmpeg could not write .*ball.mp4: no such codec"):
        render.save(tmp_path / "ball.mp4", model, traj, dt=DT, progress=False, **SMALL)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setitem(__import__("sys").modules, "imageio_ffmpeg", None)
    with pytest.raises(ModuleNotFoundError, match=r"\.mp4 needs ffmpeg, or pip install imageio-ffmpeg"):
        render.save(tmp_path / "ball.mp4", model, traj, dt=DT, progress=False, **SMALL)


def test_strip():
    model, traj = rolling()
    figure = render.strip(model, traj, (0.0, 0.5, 0.525, 1.0), dt=DT, world=1)
    assert len(figure.axes) == 4 and [ax.get_title() for ax in figure.axes] == ["0 s", "0.5 s", "0.525 s", "1 s"]
    balls = [next(patch for patch in ax.patches if isinstance(patch, Circle)) for ax in figure.axes]
    # 0.525 s lies between two states
    assert np.allclose([ball.center[0] for ball in balls], SPEED / 2 * np.array((0.0, 0.5, 0.525, 1.0)), atol=1e-9)
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in figure.axes}) == 1
    assert all(any(isinstance(patch, HalfPlane) for patch in ax.patches) for ax in figure.axes)
    rows = render.strip(model, traj, (0.0, 0.5, 1.0), dt=DT, columns=2)
    assert len(rows.axes) == 3
    tops = [ax.get_subplotspec().rowspan.start for ax in rows.axes]
    assert tops == [0, 0, 1]


def test_refused(tmp_path):
    model, traj = rolling()
    with pytest.raises(ValueError, match=r"save: the file must end in .gif or .mp4, got 'ball.avi'"):
        render.save(tmp_path / "ball.avi", model, traj, dt=DT)
    with pytest.raises(ValueError, match="at most 50 frames per second"):
        render.save(tmp_path / "ball.gif", model, traj, dt=DT, fps=60)
    for name in ("dt", "fps", "speed"):
        with pytest.raises(ValueError, match=f"frames: {name} must be positive, got -1"):
            render.frames(model, traj, **{"dt": DT, name: -1})
    with pytest.raises(ValueError, match="trail must be 0 or more seconds"):
        render.frames(model, traj, dt=DT, trail=-1.0)
    with pytest.raises(ValueError, match="strip: times must be between 0 and 1 s"):
        render.strip(model, traj, (0.0, 1.1), dt=DT)
    with pytest.raises(ValueError, match="strip: times must be a list of seconds"):
        render.strip(model, traj, (), dt=DT)
    with pytest.raises(TypeError, match="frames: unknown option 'label'"):
        render.frames(model, traj, dt=DT, label=True)
    with pytest.raises(ValueError, match="frames: world must be below 2"):
        render.frames(model, traj, dt=DT, world=2)
    scene = cs.Scene()
    scene.add_body("ball", joint=cs.Free(), shapes=cs.Sphere(0.1))
    sim = cs.Simulator(scene.build(), dt=DT)
    for call in (
        render.frames,
        lambda *a, **k: render.save(tmp_path / "a.gif", *a, **k),
        lambda m, t, dt: render.strip(m, t, [0.0], dt=dt),
    ):
        with pytest.raises(NotImplementedError, match="only planar scenes"):
            call(sim.model, sim.rollout(sim.initial_state(), steps=2), dt=DT)
