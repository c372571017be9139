"""Coordinates in which every value is physical, so that no optimiser step can leave the physical set.

mass          m = exp(log_mass)
inertia       I = tr(S) 1 - S,  S = L L^T,  L lower triangular with an exponential diagonal:
              log_cholesky = (log L00, log L11, log L22, L10, L20, L21).
              S is the second moment of the mass distribution. It is positive definite exactly if the principal
              moments of I are positive and keep the triangle inequality (Rucker & Wensing 2022).
              In a plane only the moment about z counts, and it is exp(log_inertia).
damping, stiffness, armature, friction, torsion, rolling, softness, dry_friction, kp, kd, gain, max_speed, shape_size,
tie_length, tie_softness, coupling_softness:
              exp(log_...) where they are positive; zeros stay zero.
restitution   1 / (1 + exp(-logit_restitution)) where it lies between 0 and 1; zeros and ones stay.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.scene.fields import Selection, select
from costate.scene.inertia import lamina, to_matrix

if TYPE_CHECKING:
    from costate.scene.params import Params

LOGARITHMIC = (
    "mass", "damping", "stiffness", "armature", "friction", "torsion", "rolling", "softness", "dry_friction", "kp", "kd", "gain",
    "max_speed",
    "shape_size", "tie_length", "tie_softness", "coupling_softness",
)  # fmt: skip
BOUNDARY = 1e-12  # relative; second moments flatter than this have no usable logarithm


class Unconstrained:
    """Leaves for an optimiser, and the Params they stand for. Fields that were not chosen stay as they are.

    Attributes
    ----------
    tensors : log_mass [*batch, n], log_cholesky [*batch, n, 6] (planar: log_inertia [*batch, n]) of the n bodies with mass;
        log_damping, log_friction, ...
        [*batch, n] of the n positive entries, logit_restitution [*batch, n] of the n entries between 0 and 1; any other
        field under its own name and shape.
    """

    def __init__(self, params: Params, fields: Selection = ("mass", "inertia")) -> None:
        params.check()
        self._base = params
        self._fields = select(fields, "unconstrained")
        self._index = {field: _index(params, field) for field in self._fields}
        self.tensors: dict[str, Tensor] = {}
        for field, index in self._index.items():
            value = _encode(params, field, index)
            self.tensors[self._key(field)] = value.clone(memory_format=torch.contiguous_format).requires_grad_()

    def leaves(self) -> list[Tensor]:
        """The leaf tensors, as an optimiser wants them."""
        return list(self.tensors.values())

    def params(self) -> Params:
        """The physical parameters, with the graph back to the leaves."""
        return self._base.replace(**{field: self._decode(field, index) for field, index in self._index.items()})

    def __repr__(self) -> str:
        return f"Unconstrained({', '.join(f'{name} {tuple(t.shape)}' for name, t in self.tensors.items())})"

    def _decode(self, field: str, index: Tensor) -> Tensor:
        leaf = self.tensors[self._key(field)]
        if field == "inertia":
            rows = lamina(leaf.exp()) if self._base.model.planar else _inertia(leaf)
            return _insert(self._base[field].detach(), index, rows, dim=-2)
        if field not in LOGARITHMIC and field != "restitution":
            return leaf
        value = _insert(_flat(self._base, field), index, leaf.exp() if field in LOGARITHMIC else leaf.sigmoid(), dim=-1)
        return value.reshape(value.shape[:-1] + self._base.model.field_shapes[field])

    def _key(self, field: str) -> str:
        if field == "inertia":
            return "log_inertia" if self._base.model.planar else "log_cholesky"
        return f"log_{field}" if field in LOGARITHMIC else "logit_restitution" if field == "restitution" else field


def _index(params: Params, field: str) -> Tensor:
    """Which entries of `field` get coordinates: bodies with mass, numbers inside their range (in all worlds), or all."""
    if field in ("mass", "inertia"):
        return torch.tensor(params.model.massless, device=params[field].device).logical_not().nonzero().flatten()
    value = _flat(params, field)
    if field not in LOGARITHMIC and field != "restitution":
        return torch.arange(value.shape[-1], device=value.device)
    inside = value > 0 if field in LOGARITHMIC else (value > 0) & (value < 1)
    used = inside.reshape(prod(value.shape[:-1]), value.shape[-1]).any(0)
    got = params[field].tolist()
    if not used.any():
        none = "is positive, so none has a logarithm" if field in LOGARITHMIC else "lies between 0 and 1, so none can move"
        raise ValueError(f"unconstrained: no entry of {field} {none}, got {got}")
    if (inside != used).any():
        edge = "zero" if field in LOGARITHMIC else "0 or 1"
        raise ValueError(f"unconstrained: entries of {field} are {edge} in some worlds only, got {got}")
    return used.nonzero().flatten()


def _flat(params: Params, field: str) -> Tensor:
    """The numbers of `field` [*batch, n], detached."""
    value, lead = params[field].detach(), params[field].ndim - len(params.model.field_shapes[field])
    return value.reshape(*value.shape[:lead], prod(value.shape[lead:]))


def _encode(params: Params, field: str, index: Tensor) -> Tensor:
    if field == "inertia":
        six = params[field].detach().index_select(-2, index)
        return six[..., 2].log() if params.model.planar else _log_cholesky(params, six, index)
    if field not in LOGARITHMIC and field != "restitution":
        return params[field].detach()
    value = _flat(params, field).index_select(-1, index)
    return value.log() if field in LOGARITHMIC else value.logit()


def _log_cholesky(params: Params, six: Tensor, index: Tensor) -> Tensor:
    inertia = to_matrix(six.double())  # near the bound float32 would lose the smallest root
    trace = inertia.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
    second = trace / 2 * torch.eye(3, dtype=inertia.dtype, device=inertia.device) - inertia
    flat = torch.linalg.eigvalsh(second)[..., 0] <= BOUNDARY * trace[..., 0, 0]
    if flat.any():
        *_, item = flat.nonzero()[0].tolist()
        name = params.model.body_names[int(index[item])]
        value = tuple(six[flat][0].tolist())
        raise ValueError(f"unconstrained: inertia of body {name!r} lies on the bound of the triangle inequality, got {value}")
    lower = torch.linalg.cholesky(second)
    diagonal = lower.diagonal(dim1=-2, dim2=-1).log()
    return torch.cat((diagonal, lower[..., [1, 2, 2], [0, 0, 1]]), -1).to(six.dtype)


def _inertia(log_cholesky: Tensor) -> Tensor:
    """[..., 6] -> inertia [..., 6]."""
    a, b, c, d, e, f = torch.cat((log_cholesky[..., :3].exp(), log_cholesky[..., 3:]), -1).unbind(-1)
    # S = L L^T, L = [[a, 0, 0], [d, b, 0], [e, f, c]]
    xx, yy, zz = a * a, d * d + b * b, e * e + f * f + c * c
    xy, xz, yz = a * d, a * e, d * e + b * f
    return torch.stack((yy + zz, xx + zz, xx + yy, -xy, -xz, -yz), -1)


def _insert(base: Tensor, index: Tensor, rows: Tensor, *, dim: int) -> Tensor:
    """`base` with `rows` at `index` along `dim`."""
    return rows if len(index) == base.shape[dim] else base.index_copy(dim, index, rows)
