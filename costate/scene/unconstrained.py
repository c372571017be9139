"""Coordinates in which every value is physical, so that no optimiser step can leave the physical set.

mass          m = exp(log_mass)
inertia       I = tr(S) 1 - S,  S = L L^T,  L lower triangular with an exponential diagonal:
              log_cholesky = (log L00, log L11, log L22, L10, L20, L21).
              S is the second moment of the mass distribution. It is positive definite exactly if the principal
              moments of I are positive and keep the triangle inequality (Rucker & Wensing 2022).
damping, stiffness, armature: exp(log_...) where they are positive; zeros stay zero.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from costate.scene.fields import Selection, select
from costate.scene.inertia import to_matrix

if TYPE_CHECKING:
    from costate.scene.params import Params

LOGARITHMIC = ("mass", "damping", "stiffness", "armature")
BOUNDARY = 1e-12  # relative; second moments flatter than this have no usable logarithm


class Unconstrained:
    """Leaves for an optimiser, and the Params they stand for. Fields that were not chosen stay as they are.

    Attributes
    ----------
    tensors : log_mass [*batch, n], log_cholesky [*batch, n, 6] of the n bodies with mass; log_damping, log_stiffness,
        log_armature [*batch, n] of the n positive entries; any other field under its own name and shape.
    """

    def __init__(self, params: Params, fields: Selection = ("mass", "inertia")) -> None:
        params.check()
        self._base = params
        self._fields = select(fields, "unconstrained")
        self._index = {field: _index(params, field) for field in self._fields}
        self.tensors: dict[str, Tensor] = {}
        for field, index in self._index.items():
            value = _encode(params, field, index)
            self.tensors[_key(field)] = value.clone(memory_format=torch.contiguous_format).requires_grad_()

    def leaves(self) -> list[Tensor]:
        """The leaf tensors, as an optimiser wants them."""
        return list(self.tensors.values())

    def params(self) -> Params:
        """The physical parameters, with the graph back to the leaves."""
        return self._base.replace(**{field: self._decode(field, index) for field, index in self._index.items()})

    def __repr__(self) -> str:
        return f"Unconstrained({', '.join(f'{name} {tuple(t.shape)}' for name, t in self.tensors.items())})"

    def _decode(self, field: str, index: Tensor) -> Tensor:
        leaf = self.tensors[_key(field)]
        if field == "inertia":
            return _scatter(_inertia(leaf), index, self._base.model.nb, dim=-2)
        if field in LOGARITHMIC:
            return _scatter(leaf.exp(), index, self._base[field].shape[-1], dim=-1)
        return leaf


def _key(field: str) -> str:
    return "log_cholesky" if field == "inertia" else f"log_{field}" if field in LOGARITHMIC else field


def _index(params: Params, field: str) -> Tensor:
    """Which entries of `field` get coordinates: bodies with mass, numbers that are positive (in all worlds), or all."""
    if field in ("mass", "inertia"):
        return torch.tensor(params.model.massless).logical_not().nonzero().flatten()
    value = params[field].detach()
    if field not in LOGARITHMIC:
        return torch.arange(value.shape[-1])
    positive = value > 0
    used = positive.reshape(prod(value.shape[:-1]), value.shape[-1]).any(0)
    if not used.any():
        raise ValueError(f"unconstrained: no entry of {field} is positive, so none has a logarithm, got {value.tolist()}")
    if (positive != used).any():
        raise ValueError(f"unconstrained: entries of {field} are zero in some worlds only, got {value.tolist()}")
    return used.nonzero().flatten()


def _encode(params: Params, field: str, index: Tensor) -> Tensor:
    value = params[field].detach()
    if field == "inertia":
        return _log_cholesky(params, value.index_select(-2, index), index)
    return value.index_select(-1, index).log() if field in LOGARITHMIC else value


def _log_cholesky(params: Params, six: Tensor, index: Tensor) -> Tensor:
    inertia = to_matrix(six.double())  # near the bound float32 would lose the smallest root
    trace = inertia.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
    second = trace / 2 * torch.eye(3, dtype=inertia.dtype) - inertia
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


def _scatter(rows: Tensor, index: Tensor, count: int, *, dim: int) -> Tensor:
    """`rows` placed at `index` of `count` entries along `dim`, zeros elsewhere."""
    if len(index) == count:
        return rows
    shape = list(rows.shape)
    shape[dim] = count
    return rows.new_zeros(shape).index_copy(dim, index, rows)
