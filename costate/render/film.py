"""Trajectories as moving pictures: frames at even times, files of them, and strips of a few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from costate.render import parts as p
from costate.render.artists import INK
from costate.render.files import GIF_FPS, WRITERS
from costate.render.picture import Picture
from costate.render.view import Limits, Look, Touch, check_look, fit, impulse_scale, padded, scene_of, touches, track
from costate.scene import Model, Params

if TYPE_CHECKING:
    from typing_extensions import Unpack

DPI = 100
WIDTH, TALLEST, LOWEST = 640, 640, 240  # pixels, where no size is given
USUAL = 0.9  # of all impulses: those of hits are much larger than what bodies rest with
EARLY = 1e-9  # of a step: times that rounding has moved before a state count as that state's


class Reel:
    """One world's trajectory, cut at some times: what films and strips show."""

    def __init__(
        self, where: str, model: Model, trajectory: Any, times: np.ndarray, *, dt: float, params: Params | None, world: Any,
        contacts: Any, trail: float, look: Look,
    ) -> None:  # fmt: skip
        check_look(where, look)
        _positive(where, dt=dt)
        if not trail >= 0:
            raise ValueError(f"{where}: trail must be 0 or more seconds, got {trail!r}")
        p.check_planar(where, model)
        q, one = p.world_of(where, model, p.configurations(where, trajectory), params, world, timed=True)
        self.times, self.dt, self.trail = times, dt, trail
        self._check_times(where, len(q) - 1)
        self.scene = scene_of(where, model, p.locate_bodies(model, _between(model, q, times / dt), one), look)
        self._now = track(self.scene, self.scene.world) if trail else None
        self._past = track(self.scene, p.locate_bodies(model, q, one)) if trail else None
        self._touch = self._contacts(where, contacts, world, len(q) - 1)
        limits = look.get("limits")
        self.limits: Limits = padded(fit(self.scene, self._now)) if limits is None else limits
        self._scale = impulse_scale(look, self._touch, self.limits, share=USUAL)
        self.look = look

    def show(self, picture: Picture, k: int) -> None:
        """Move a picture of this scene to the k-th time."""
        step = self.times[k] / self.dt + EARLY
        touch = self._touch[min(int(step), len(self._touch) - 1)] if self._touch else None
        picture.show(k, touch=touch, path=self._path(k), scale=self._scale)

    def _path(self, k: int) -> np.ndarray | None:
        """[n, points, 2] of the last `trail` seconds: the states that lie in them, and where it is now."""
        if self._past is None or self._now is None:
            return None
        now = self.times[k] / self.dt
        first = 0 if math.isinf(self.trail) else max(0, math.ceil(now - self.trail / self.dt - EARLY))
        return np.concatenate((self._past[first : math.floor(now + EARLY) + 1], self._now[k : k + 1]))

    def _check_times(self, where: str, steps: int) -> None:
        end = steps * self.dt
        wrong = ~((self.times >= 0) & (self.times <= end * (1 + EARLY)))
        if wrong.any():
            raise ValueError(
                f"{where}: times must be between 0 and {end:g} s, where the trajectory ends, got {self.times[wrong][0]:g}"
            )

    def _contacts(self, where: str, contacts: Any, world: Any, steps: int) -> list[Touch]:
        if contacts is None:
            return []
        alone = hasattr(contacts, "_fields")  # a named tuple, not a list of them
        if alone or len(contacts) != steps:
            count = "one" if alone else len(contacts)
            raise ValueError(f"{where}: contacts must be a list of the Infos of all {steps} steps, got {count}")
        return [touches(where, info, world) for info in contacts]


def _between(model: Model, q: torch.Tensor, steps: np.ndarray) -> torch.Tensor:
    """q [n, nq] at fractions of steps, between the states of q [T+1, nq] on the shortest way."""
    before = np.clip(np.floor(steps + EARLY), 0, max(len(q) - 2, 0)).astype(int)
    part = torch.from_numpy(np.clip(steps - before, 0.0, 1.0))[:, None]
    start, end = q[before], q[np.minimum(before + 1, len(q) - 1)]
    return model.integrate(start, part * model.difference(start, end))


# ---- films -----------------------------------------------------------------------------------------------------------------
class Film(Sequence[np.ndarray]):
    """Frames of a trajectory, each drawn when it is asked for: a sequence of uint8 arrays [height, width, 3].

    `times` [n] : the instants they show, s. `np.stack(film)` is an array [n, height, width, 3].
    """

    def __init__(self, reel: Reel, size: tuple[int, int] | None, clock: bool, speed: float) -> None:
        self._reel, self.times = reel, reel.times
        axis = reel.look.get("axis", False)
        (x0, x1), (y0, y1) = reel.limits
        self.width, self.height = _size(size, (y1 - y0) / (x1 - x0))
        figure = Figure(figsize=(self.width / DPI, self.height / DPI), dpi=DPI, layout="constrained" if axis else None)
        self._canvas = FigureCanvasAgg(figure)
        ax = figure.add_subplot() if axis else figure.add_axes((0.0, 0.0, 1.0, 1.0))
        limits = reel.limits if axis or reel.look.get("limits") else _filled(reel.limits, self.height / self.width)
        self._picture = Picture(ax, reel.scene, limits, reel.look, axis=axis)
        self._clock = ax.text(0.015, 0.98, "", transform=ax.transAxes, va="top", fontsize=10, color=INK) if clock else None
        if self._clock is not None:
            self._clock.set_bbox({"facecolor": "white", "alpha": 0.7, "linewidth": 0, "boxstyle": "round,pad=0.2"})
        self._slow = "" if speed == 1 else f"   {speed:g} x"

    def __len__(self) -> int:
        return len(self.times)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> list[np.ndarray]: ...
    def __getitem__(self, index: int | slice) -> np.ndarray | list[np.ndarray]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        k = range(len(self))[index]
        self._reel.show(self._picture, k)
        if self._clock is not None:
            self._clock.set_text(f"{self.times[k]:.2f} s{self._slow}")
        self._canvas.draw()
        return np.asarray(self._canvas.buffer_rgba())[..., :3].copy()


def frames(
    model: Model, trajectory: Any, *, dt: float, fps: float = 30.0, speed: float = 1.0, size: tuple[int, int] | None = None,
    params: Params | None = None, world: Any = 0, contacts: Any = None, trail: float = 0.0, clock: bool = False,
    **look: Unpack[Look],
) -> Film:  # fmt: skip
    """One world of a trajectory as a film: a sequence of frames, uint8 [height, width, 3], drawn one by one when asked for.

    Times between two states are interpolated.

    Parameters
    ----------
    trajectory : Trajectory, State or q [T+1, ..., nq].
    dt : seconds between its states: the simulator's dt, times the substeps of the rollout.
    fps : frames per second of the film.
    speed : seconds of the world per second of the film; 0.25 is four times as slow.
    size : (width, height) in pixels; default: 640 wide, and as high as the scene needs.
    params, world : as in `draw`.
    contacts : the Infos of all T steps; frames show contacts and impulses of the step they are in.
    trail : seconds of the past that are drawn behind what moves; math.inf for all.
    clock : whether the time is shown.
    look : limits, colors, labels, joints, axis, trail_of, impulse_scale, as in `draw`.
    """
    return _film(
        "frames", model, trajectory, dt=dt, fps=fps, speed=speed, size=size, params=params, world=world, contacts=contacts,
        trail=trail, clock=clock, look=look,
    )  # fmt: skip


def save(
    path: str | PathLike[str], model: Model, trajectory: Any, *, dt: float, fps: float = 30.0, speed: float = 1.0,
    size: tuple[int, int] | None = None, params: Params | None = None, world: Any = 0, contacts: Any = None, trail: float = 0.0,
    clock: bool = True, progress: bool = True, **look: Unpack[Look],
) -> Path:  # fmt: skip
    """Write one world of a trajectory as a film and return its path: .gif, or .mp4 where ffmpeg or imageio-ffmpeg is there.

    progress : whether a bar shows how far it is. All else is as in `frames`.
    """
    path = Path(path)
    if path.suffix.lower() not in WRITERS:
        raise ValueError(f"save: the file must end in {' or '.join(WRITERS)}, got {path.name!r}")
    if path.suffix.lower() == ".gif" and fps > GIF_FPS:
        raise ValueError(f"save: a .gif has at most {GIF_FPS} frames per second, got fps {fps!r}")
    film = _film(
        "save", model, trajectory, dt=dt, fps=fps, speed=speed, size=size, params=params, world=world, contacts=contacts,
        trail=trail, clock=clock, look=look,
    )  # fmt: skip
    WRITERS[path.suffix.lower()](path, film, fps, progress)
    return path


def _film(
    where: str, model: Model, trajectory: Any, *, dt: float, fps: float, speed: float, size: tuple[int, int] | None,
    params: Params | None, world: Any, contacts: Any, trail: float, clock: bool, look: Look,
) -> Film:  # fmt: skip
    p.check_planar(where, model)
    _positive(where, dt=dt, fps=fps, speed=speed)
    seconds = (len(p.configurations(where, trajectory)) - 1) * dt
    times = np.arange(math.floor(seconds * fps / speed + EARLY) + 1) * (speed / fps)
    reel = Reel(
        where, model, trajectory, times, dt=dt, params=params, world=world, contacts=contacts, trail=trail, look=look
    )  # fmt: skip
    return Film(reel, size, clock, speed)


def _positive(where: str, **numbers: float) -> None:
    for name, number in numbers.items():
        if not (number > 0 and math.isfinite(number)):
            raise ValueError(f"{where}: {name} must be positive, got {number!r}")


def _size(size: tuple[int, int] | None, ratio: float) -> tuple[int, int]:
    """Width and height in pixels, even: most films need that."""
    width, height = (WIDTH, min(max(WIDTH * ratio, LOWEST), TALLEST)) if size is None else size
    even = 2 * round(width / 2), 2 * round(height / 2)
    if min(even) < 2:
        raise ValueError(f"size must be (width, height) in pixels, got {size!r}")
    return even


def _filled(limits: Limits, ratio: float) -> Limits:
    """Limits made wider or higher, so that a picture of this ratio (height to width) is full."""
    (x0, x1), (y0, y1) = limits
    width = max(x1 - x0, (y1 - y0) / ratio)
    (x, y), half = ((x0 + x1) / 2, (y0 + y1) / 2), width / 2
    return (x - half, x + half), (y - half * ratio, y + half * ratio)


# ---- strips ----------------------------------------------------------------------------------------------------------------
def strip(
    model: Model, trajectory: Any, times: Sequence[float], *, dt: float, columns: int | None = None, width: float = 9.0,
    params: Params | None = None, world: Any = 0, contacts: Any = None, trail: float = 0.0, **look: Unpack[Look],
) -> Figure:  # fmt: skip
    """A figure with one world of a trajectory at several `times` (s), side by side in the same view.

    columns : pictures in a row; default: all of them.
    width : of the figure, inches; its height follows.
    All else is as in `frames`.
    """
    at = np.asarray(times, dtype=np.float64)
    if at.ndim != 1 or not len(at):
        raise ValueError(f"strip: times must be a list of seconds, got {times!r}")
    p.check_planar("strip", model)
    reel = Reel("strip", model, trajectory, at, dt=dt, params=params, world=world, contacts=contacts, trail=trail, look=look)
    columns = min(len(at), columns or len(at))
    rows = math.ceil(len(at) / columns)
    (x0, x1), (y0, y1) = reel.limits
    height = rows * (width / columns * (y1 - y0) / (x1 - x0) + 0.3)
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, layout="constrained")
    for ax in axes.flat[len(at) :]:
        ax.remove()
    for k, ax in enumerate(axes.flat[: len(at)]):
        reel.show(Picture(ax, reel.scene, reel.limits, look, axis=look.get("axis", False)), k)
        ax.set_title(f"{at[k]:g} s", fontsize=9, color=INK)
    return figure
