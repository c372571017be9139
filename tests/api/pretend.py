"""A GPU that is only pretended, for machines without one: its tensors are in the CPU's memory, and marked.

They say that they are on cuda:0. As with a real one, it is an error to mix them with tensors of the CPU (but those of no
dimension), or to ask for them as numpy arrays. The calls of the engine are made on the CPU.
While a graph is `captured` it is also an error to wait for the GPU: to look at a number, or to copy to it or from it, which every
new tensor of given numbers and every index in a list does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

CPU, GPU = torch.device("cpu"), torch.device("cuda:0")
LOOKS = {"item", "tolist", "nonzero", "equal", "allclose", "__bool__", "__int__", "__float__", "__index__", "__contains__"}
ARRAYS = {"numpy", "__array__"}
FROM_NUMBERS = {"tensor", "as_tensor", "asarray", "new_tensor"}


class WrongDeviceError(RuntimeError):
    """What would be an error on a GPU, or a wait during a capture."""


def on_gpu(x: Any) -> bool:
    return getattr(x, "pretended", False)


def mark(x: Any) -> Any:
    if isinstance(x, Tensor):
        x.pretended = True  # type: ignore[attr-defined]
    return x


def _is_device(x: Any) -> bool:
    return isinstance(x, torch.device) or (isinstance(x, str) and x.split(":")[0] in ("cpu", "cuda"))


class PretendedGpu(TorchFunctionMode):
    """While it is entered, tensors can be `put` on the GPU, and all that torch does with them is watched."""

    def __init__(self) -> None:
        super().__init__()
        self.capturing = False

    def put(self, tree: Any) -> Any:
        """Copies of all tensors of a tree, on the GPU; differentiable."""
        return pytree.tree_map(lambda x: x.to(GPU) if isinstance(x, Tensor) else x, tree)

    @contextmanager
    def captured(self) -> Iterator[None]:
        self.capturing = True
        try:
            yield
        finally:
            self.capturing = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.device:
            return func(*args, **kwargs)
        name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__
        leaves = pytree.tree_leaves((args, kwargs))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        there = any(map(on_gpu, tensors))
        if name in ("device", "is_cuda"):
            return there if name == "is_cuda" else GPU if there else CPU
        if there and name in ARRAYS:
            raise WrongDeviceError(f"{name} of a tensor on {GPU}")
        if there and name in LOOKS:
            self._wait(name)
        given = [torch.device(x) for x in leaves if _is_device(x)]
        args, kwargs = pytree.tree_map(lambda x: CPU if _is_device(x) else x, (args, kwargs))
        if name in ("to", "cpu", "cuda"):
            return self._move(name, func, args, kwargs, given)
        if name in FROM_NUMBERS and (there if name == "new_tensor" else GPU in given and not there):
            self._wait(name)
        if name in ("__getitem__", "__setitem__") and there:
            self._check_index(args[1])
        if there and any(not on_gpu(x) and x.ndim for x in tensors):
            raise WrongDeviceError(f"{name} of tensors on {GPU} and on the cpu")
        out = func(*args, **kwargs)
        return pytree.tree_map(mark, out) if there or GPU in given else out

    def _move(self, name: str, func: Any, args: Any, kwargs: Any, given: list[torch.device]) -> Tensor:
        x, others = args[0], [y for y in pytree.tree_leaves((args[1:], kwargs)) if isinstance(y, Tensor)]
        new = func(x, *args[1:], **kwargs) if name == "to" else x
        goes = given[0] == GPU if given else name == "cuda" if name != "to" else on_gpu(others[0] if others else x)
        if goes != on_gpu(x):
            self._wait(f"a copy by .{name}")
        new = new.clone() if new is x and goes != on_gpu(x) else new
        return mark(new) if goes else new

    def _check_index(self, index: Any) -> None:
        for i in index if isinstance(index, tuple) else (index,):
            if isinstance(i, (list, np.ndarray)) or (isinstance(i, Tensor) and i.dtype == torch.bool):
                self._wait("an index in a list, or by a mask,")

    def _wait(self, what: str) -> None:
        if self.capturing:
            raise WrongDeviceError(f"{what} waits for the GPU while a graph is captured")


class Kernels:
    """In place of costate._native.cuda.engine.CudaEngine: the same calls, by the engine of the CPU."""

    def __init__(self, engine: Any) -> None:
        self.tree = engine.tree

    def op(self, op: Any, worlds: int, inputs: Any, outputs: Any, options: Any) -> None:
        with torch._C.DisableTorchFunction():
            self.tree.op(op, worlds, _arrays(inputs), _arrays(outputs), options)

    def rollout(
        self, worlds: int, steps: int, substeps: int, inputs: Any, q: Tensor, v: Tensor, at: Tensor, options: Any, told: Any
    ) -> None:
        with torch._C.DisableTorchFunction():
            more = (*_arrays(told), *(None,) * (4 - len(told)))
            self.tree.rollout(worlds, steps, substeps, *_arrays(inputs), *_arrays((q, v, at)), options, *more)

    def rollout_adj(
        self, worlds: int, steps: int, substeps: int, inputs: Any, states: Any, at: Any, bars: Any, decay: float, truncate: int,
        options: Any, clip: float, contacts_bar: Any, norms: Any,
    ) -> None:  # fmt: skip
        with torch._C.DisableTorchFunction():
            q, v, at, q_bar, v_bar, contacts_bar, norms = _arrays((*states[:2], at, *states[2:], contacts_bar, norms))
            after, counts, how = (q, v, at, q_bar, v_bar), (worlds, steps, substeps), (decay, truncate, options, clip)
            self.tree.rollout_adj(*counts, _arrays(inputs), *after, _arrays(bars), *how, contacts_bar, norms)

    def prepare_adjoint(self, *_: Any) -> None:
        pass


def _arrays(tensors: Any) -> list[np.ndarray | None]:
    return [None if x is None else x.detach().contiguous().numpy() for x in tensors]
