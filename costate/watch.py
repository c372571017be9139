"""What a GPU finds wrong, told without waiting for it: flags travel beside the work, and are looked at once they are there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from costate.autodiff.torch import transforming

_MOST = 64  # looks that may be pending; a further one waits for the oldest


def find_device(device: Any) -> torch.device:
    """The device a simulator is asked to run on; errors say what is missing."""
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}") from error
    if place.type == "cpu":
        return torch.device("cpu")
    if place.type != "cuda":
        raise ValueError(f"device must be 'cpu' or 'cuda', got {device!r}: other devices are not supported")
    if not torch.cuda.is_available():
        built = "this torch was built without CUDA" if torch.version.cuda is None else "torch finds no NVIDIA GPU"
        raise RuntimeError(f"device={str(place)!r} needs an NVIDIA GPU, and torch with CUDA: {built} (torch {torch.__version__})")
    from costate._native.cuda.build import require_cupy

    require_cupy()
    index = torch.cuda.current_device() if place.index is None else place.index
    if index >= torch.cuda.device_count():
        raise ValueError(f"device {device!r}: there are {torch.cuda.device_count()} GPUs")
    return torch.device("cuda", index)


def _beside(x: Tensor) -> Tensor:
    """A copy on the cpu that nobody waits for."""
    return torch.empty(x.shape, dtype=x.dtype, pin_memory=True).copy_(x, non_blocking=True)


class Watch:
    """Looks at tensors of a GPU that are still being computed, each together with what shall be done about them."""

    def __init__(self) -> None:
        self._pending: deque[tuple[torch.cuda.Event, tuple[Tensor | None, ...], Callable[..., None]]] = deque()

    def later(self, tensors: tuple[Tensor | None, ...], tell: Callable[..., None]) -> None:
        """Call tell(*copies on the cpu) at a later look, or at `finish`; first look at what is there by now.

        Not while a CUDA graph is captured, nor inside functional transforms: there is nothing to look at.
        """
        if transforming() or torch.cuda.is_current_stream_capturing():
            return
        copies = tuple(None if x is None else _beside(x.detach()) for x in tensors)
        event = torch.cuda.Event()
        event.record()
        self._pending.append((event, copies, tell))
        self.look(wait=len(self._pending) > _MOST)

    def look(self, *, wait: bool = False) -> None:
        """Tell of everything that is there; wait: for the oldest at least."""
        while self._pending and (wait or self._pending[0][0].query()):
            event, copies, tell = self._pending.popleft()
            event.synchronize()
            wait = False
            tell(*copies)

    def finish(self) -> None:
        """Wait for everything, and tell."""
        while self._pending:
            self.look(wait=True)
