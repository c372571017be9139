"""Films as files: GIF by pillow, MP4 by ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from costate.render.film import Film

AREAS = 64  # how many colours of a GIF are kept exactly
GIF_FPS = 50  # what viewers show of a GIF as it is: below 20 ms they slow down


def _write_gif(path: Path, film: Film, fps: float, progress: bool) -> None:
    """A GIF counts hundredths of seconds: frames last so many that the film as a whole has its length."""
    ends = np.round(np.arange(1, len(film) + 1) * 100 / fps)
    lasts = [int(10 * hundredths) for hundredths in np.diff(ends, prepend=0)]
    some = sorted({0, len(film) // 3, 2 * len(film) // 3, len(film) - 1})
    paint = Palette(np.concatenate([film[k] for k in some])).paint  # one for all frames: colours must not flicker
    first, *others = [paint(frame) for frame in _shown(film, path, len(film), progress)]
    first.save(path, save_all=True, append_images=others, duration=lasts, loop=0, optimize=False)


class Palette:
    """256 colours: the most frequent ones of some `pixels` [..., 3], which fill whole areas, as they are, others by median cut.

    Pillow's own search for the nearest colour is coarse: it makes white a light grey.
    """

    def __init__(self, pixels: np.ndarray) -> None:
        colors, counts = np.unique(pixels.reshape(-1, 3), axis=0, return_counts=True)
        frequent = colors[np.argsort(-counts)[:AREAS]]
        cut = Image.fromarray(pixels).quantize(256 - len(frequent), method=Image.Quantize.MEDIANCUT).getpalette() or []
        self._colors = np.concatenate((frequent, np.array(cut).reshape(-1, 3))).astype(np.int32)[:256]
        self._nearest = np.full(1 << 24, -1, dtype=np.int16)  # of every colour that has come up so far

    def paint(self, frame: np.ndarray) -> Image.Image:
        """A frame [height, width, 3] in these colours."""
        packed = frame.astype(np.int32) @ np.array((1 << 16, 1 << 8, 1), dtype=np.int32)
        new = np.unique(packed[self._nearest[packed] < 0])
        far = np.stack((new >> 16, new >> 8 & 255, new & 255), -1)[:, None] - self._colors
        self._nearest[new] = (far**2).sum(-1).argmin(-1)
        picture = Image.fromarray(self._nearest[packed].astype(np.uint8))
        picture.putpalette(self._colors.reshape(-1).tolist())
        return picture


def _write_mp4(path: Path, film: Film, fps: float, progress: bool) -> None:
    """Raw frames go through a pipe to ffmpeg."""
    command = [
        _ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{film.width}x{film.height}",
        "-r", f"{fps:g}", "-i", "-", "-an", "-c:v", "libx264", "-pix_fmt", "yuv420p", str(path),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as errors:
        writer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=errors)
        assert writer.stdin is not None
        try:
            for frame in _shown(film, path, len(film), progress):
                writer.stdin.write(frame.tobytes())
        except BrokenPipeError:
            pass  # it says why
        finally:
            _close(writer)
        if writer.wait() != 0:
            errors.seek(0)
            raise RuntimeError(f"save: ffmpeg could not write {path}: {errors.read().decode(errors='replace').strip()}")


def _close(writer: subprocess.Popen[bytes]) -> None:
    try:
        if writer.stdin is not None:
            writer.stdin.close()
    except BrokenPipeError:
        pass
    writer.wait()


def _ffmpeg() -> str:
    """Where the program is."""
    found = shutil.which("ffmpeg")
    if found is not None:
        return found
    try:
        from imageio_ffmpeg import get_ffmpeg_exe  # type: ignore[import-not-found]
    except ModuleNotFoundError:
        raise ModuleNotFoundError("save: .mp4 needs ffmpeg, or pip install imageio-ffmpeg; .gif needs neither") from None
    return get_ffmpeg_exe()


def _shown(items: Iterable[Any], path: Path, total: int, progress: bool) -> Iterable[Any]:
    """The items, with a bar that counts them where rich is installed and `progress` is wanted."""
    if not progress:
        return items
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        return items

    def counted() -> Iterator[Any]:
        with Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()) as bar:
            yield from bar.track(items, total=total, description=path.name)

    return counted()


WRITERS = {".gif": _write_gif, ".mp4": _write_mp4}
