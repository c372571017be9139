"""Params: every physical number of a model as a tensor, shared by all worlds or one row per world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from costate.scene.checks import check_params
from costate.scene.fields import FIELD_NAMES, FIELDS, Selection, select
from costate.scene.joints import Free, Planar
from costate.scene.unconstrained import Unconstrained
from costate.scene.values import Numbers, read

if TYPE_CHECKING:
    from costate.scene.model import Model


class Params(Mapping[str, Tensor]):
    """Immutable mapping from field name to tensor [*batch, *shape]; fields that are not given get the model's defaults.

    Names, shapes, dtypes and devices are checked here; values by `check()`, and by the engine when it uses them.
    Two Params are equal only if they are the same object.
    """

    __slots__ = ("__weakref__", "_batch_shape", "_flat", "_model", "_tensors")

    def __init__(self, model: Model, tensors: Mapping[str, Tensor]) -> None:
        select(tensors, "Params")
        self._model = model
        # defaults are copied: writing to a parameter must never write to the model
        self._tensors = {name: tensors[name] if name in tensors else model.defaults[name].clone() for name in FIELD_NAMES}
        self._batch_shape = _batch_shape(model, self._tensors)
        self._flat: tuple[tuple[object, ...], Tensor] | None = None

    @property
    def model(self) -> Model:
        """The model whose numbers these are."""
        return self._model

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Leading dimensions of all fields, broadcast; () where all worlds share them."""
        return self._batch_shape

    @property
    def requires_grad(self) -> bool:
        """Whether any field requires grad."""
        return any(tensor.requires_grad for tensor in self._tensors.values())

    def replace(self, **fields: Numbers) -> Params:
        """The same parameters with other `fields`; numbers and arrays are broadcast to the shape of the field."""
        select(fields, "replace")
        return Params(self._model, {**self._tensors, **{name: self._fit(name, value) for name, value in fields.items()}})

    def place(self, body: str | int, pos: Numbers | None = None, quat: Numbers | None = None) -> Params:
        """The same parameters with the joint frame of `body` (name or index) elsewhere in its parent; mocap bodies: in the world.

        pos : m [*batch, 3]. quat : wxyz [*batch, 4]. What is None stays; tensors keep their graph. A body that moves freely has
        its place in the state, not here.
        """
        index = self._model.body(body) if isinstance(body, str) else range(self._model.nb)[body]
        name = self._model.body_names[index]
        kind, parent = self._model.joint_type[index], self._model.parent[index]
        if kind == Free.code or (self._model.planar and kind == Planar.code and parent < 0):
            raise ValueError(f"place: body {name!r} moves freely, its place is part of the state, got pos {pos}")
        fields: dict[str, Tensor] = {}
        for field, value in (("joint_pos", pos), ("joint_quat", quat)):
            if value is None:
                continue
            old, width = self._tensors[field], self._tensors[field].shape[-1]
            row = value if isinstance(value, Tensor) else read(f"place: {field}", value).to(old)
            if row.ndim == 0 or row.shape[-1] != width:
                raise ValueError(f"place: {field} must be {width} numbers, or [*batch, {width}], got shape {tuple(row.shape)}")
            batch = torch.broadcast_shapes(row.shape[:-1], old.shape[:-2])
            kept = old.expand(*batch, *old.shape[-2:])
            where = torch.tensor([index], device=old.device)
            fields[field] = kept.index_copy(-2, where, row.to(old).expand(*batch, width)[..., None, :])
        return Params(self._model, {**self._tensors, **fields})

    def leaves(self) -> list[Tensor]:
        """The leaf tensors that require grad, as an optimiser wants them."""
        return list({id(t): t for t in self._tensors.values() if t.requires_grad and t.is_leaf}.values())

    def expand(self, worlds: int | tuple[int, ...]) -> Params:
        """Every field as [*worlds, *shape], a view through which gradients flow back to the shared numbers."""
        batch = (worlds,) if isinstance(worlds, int) else tuple(worlds)
        try:
            fields = {name: t.expand(*batch, *self._model.field_shapes[name]) for name, t in self._tensors.items()}
        except RuntimeError:
            raise ValueError(f"expand: params of batch shape {self._batch_shape} do not expand to worlds {batch}") from None
        return Params(self._model, fields)

    def detach(self, *, requires_grad: Selection = ()) -> Params:
        """Without graph; the fields named in `requires_grad` (True: all) become fresh leaves with storage of their own."""
        chosen = select(requires_grad)
        fields = {name: tensor.detach() for name, tensor in self._tensors.items()}
        for name in chosen:
            fields[name] = fields[name].clone(memory_format=torch.contiguous_format).requires_grad_()
        return Params(self._model, fields)

    def to(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Params:
        """Every field in `dtype` and on `device`, differentiably."""
        return Params(self._model, {name: tensor.to(device=device, dtype=dtype) for name, tensor in self._tensors.items()})

    def flat(self, dtype: torch.dtype = torch.float64) -> Tensor:
        """theta [*batch, P]: the engine's fields in order in one tensor; differentiable, not to be written to.

        It is on the GPU if any field is.
        """
        tensors = [self._tensors[field.name] for field in FIELDS]
        if torch.is_inference_mode_enabled() or any(t.requires_grad or t.is_inference() for t in tensors):
            return self._concatenate(tensors, dtype)
        # The tensors live as long as self, so their version counters tell whether anybody wrote to them.
        key = (dtype, *(t._version for t in tensors))
        if self._flat is None or self._flat[0] != key or self._flat[1]._version != 0:
            self._flat = (key, self._concatenate(tensors, dtype))
        return self._flat[1]

    def check(self) -> None:
        """Raise ValueError, naming field, body, world and value, unless all values are finite and physical."""
        check_params(self)

    def unconstrained(self, fields: Selection = ("mass", "inertia")) -> Unconstrained:
        """`fields` in coordinates where every value is physical, as fresh leaves for an optimiser."""
        return Unconstrained(self, fields)

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        grad = ", ".join(name for name, tensor in self._tensors.items() if tensor.requires_grad)
        return f"Params({self._model.nb} bodies, batch {self._batch_shape}, requires_grad ({grad}))"

    def __reduce__(self) -> tuple[Any, ...]:
        return Params, (self._model, self._tensors)

    def _fit(self, name: str, value: Numbers) -> Tensor:
        """`value` as a tensor that ends in the field's shape; what is no tensor takes the dtype of the present one."""
        shape = self._model.field_shapes[name]
        tensor = value if isinstance(value, Tensor) else read(f"replace: {name}", value).to(self._tensors[name])
        if tensor.shape[-len(shape) :] == shape:
            return tensor
        try:
            whole = torch.broadcast_shapes(tensor.shape, shape)
        except RuntimeError:
            whole = ()
        if whole[-len(shape) :] != shape:
            raise ValueError(f"replace: {name} must have shape {shape} or [*batch, *{shape}], got {tuple(tensor.shape)}")
        return tensor.expand(whole)

    def _concatenate(self, tensors: list[Tensor], dtype: torch.dtype) -> Tensor:
        batch, rows, device = self._batch_shape, [], next((t.device for t in tensors if t.is_cuda), None)
        for field, tensor in zip(FIELDS, tensors, strict=True):
            shape = self._model.field_shapes[field.name]
            size = prod(shape)
            row = tensor if len(shape) == 1 else tensor.reshape(*tensor.shape[:-2], size)
            row = row.to(dtype) if device is None else row.to(device, dtype)
            rows.append(row.expand(*batch, size) if batch else row)
        return torch.cat(rows, -1)


def _batch_shape(model: Model, tensors: Mapping[str, Tensor]) -> tuple[int, ...]:
    """Check type, dtype, device and shape of each tensor, and broadcast their leading dimensions."""
    leading: dict[str, torch.Size] = {}
    for name, shape in model.field_shapes.items():
        tensor = tensors[name]
        if not isinstance(tensor, Tensor):
            raise TypeError(f"params: {name} must be a torch tensor, got {type(tensor).__name__} {tensor!r}")
        if tensor.dtype not in (torch.float64, torch.float32):
            raise TypeError(f"params: {name} must be float64 or float32, got {tensor.dtype}")
        if tensor.device.type not in ("cpu", "cuda"):
            raise TypeError(f"params: {name} must be on the cpu or cuda, got {tensor.device}")
        lead = tensor.ndim - len(shape)
        if lead < 0 or tensor.shape[lead:] != shape:
            raise ValueError(f"params: {name} must have shape {shape} or [*batch, *{shape}], got {tuple(tensor.shape)}")
        if lead > 0:
            leading[name] = tensor.shape[:lead]
    if not leading:
        return ()
    try:
        return tuple(torch.broadcast_shapes(*leading.values()))
    except RuntimeError:
        shapes = ", ".join(f"{name} {tuple(lead)}" for name, lead in leading.items())
        raise ValueError(f"params: batch shapes do not broadcast: {shapes}") from None
