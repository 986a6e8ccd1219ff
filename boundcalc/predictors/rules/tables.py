"""A network of one attention layer on bits in tables, in balls and in floats: from the stored weights alone.

The tokens are 2 (in the row that is read) and the T bits. p_h(x) = sum_t e_th(x_t) v_th(x_t) / sum_t e_th(x_t), the row
that is read included, and r = rho + sum_h p_h W_O,h is that row behind the attention. Then

    f = k_0 + <readout, r> + sum_j g_j phi(z_j),   z_j = zeta_j + <units_j, r>.

docs/certificates.md proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.layers.base import weights_of
from boundcalc.predictors.data import Array
from boundcalc.predictors.rules._hidden import float_phi
from boundcalc.predictors.rules._rounding import float32_error
from boundcalc.predictors.rules.heads import HALF, Heads, rounded, weights_of_scores
from boundcalc.setting import Architecture

_READ_TOKEN = 2
_Matrix = TypeVar("_Matrix", arb_mat, Array)


@dataclass(frozen=True)
class Tables(Generic[_Matrix]):
    """Everything the formula needs, named as there: matrices, vectors being rows or columns as they are multiplied.

    Attributes:
        architecture: of the network.
        heads: their weights and values, in floats.
        rounding: how far a float32 pass is off at most, where this is known.
        out: W_O.
    """

    architecture: Architecture
    heads: Heads
    rounding: float | None
    out: _Matrix
    rho: _Matrix
    units: _Matrix
    zeta: _Matrix
    g: _Matrix
    readout: _Matrix
    k_0: _Matrix

    @property
    def T(self) -> int:  # noqa: N802 - as everywhere
        """Bits of an input."""
        return self.architecture.seq_len - 1


class FloatTables(Tables[Array]):
    """Midpoints, for searches."""

    def forward(self, x: Array) -> Array:
        """The output f for rows of bits."""
        ones, T, sums = np.ascontiguousarray(x, dtype=np.float64), self.T, self.sums
        return self._behind((1 - ones) @ sums[:, :T] + ones @ sums[:, T:-1] + sums[:, -1:])

    def flips(self, x: Array) -> Array:
        """The outputs for one row of bits with each of its bits flipped, one after the other."""
        T, place, sums = self.T, np.arange(self.T), self.sums
        shown, other = sums[:, place + T * x], sums[:, place + T * (1 - x)]
        around = np.concatenate([sums[:, -1:], shown], 1).cumsum(1)  # sums without a bit, and not by subtraction
        after = np.concatenate([shown[:, :0:-1].cumsum(1)[:, ::-1], np.zeros_like(shown[:, :1])], 1)
        return self._behind(around[:, :-1] + after + other)

    @property
    def sums(self) -> Array:
        """E v and, last, e of every head at every place."""
        return self.heads.columns[..., :-1]

    def _behind(self, sums: Array) -> Array:
        """The output from the sums of every head (heads, rows, d_head + 1)."""
        p = (sums[..., :-1] / sums[..., -1:]).swapaxes(0, 1)
        r = self.rho + p.reshape(len(p), -1) @ self.out
        hidden = float_phi(self.architecture.activation, self.zeta + r @ self.units)
        return (self.k_0 + r @ self.readout + hidden @ self.g)[:, 0]

    @cached_property
    def through(self) -> Array:
        """The units as the heads see them (heads, d_head, units)."""
        return (self.out @ self.units).reshape(len(self.heads.relative), -1, self.units.shape[1])


class BallTables(Tables[arb_mat]):
    """Balls around the numbers of the formula, for proofs."""

    @cached_property
    def floats(self) -> FloatTables:
        """Midpoints, for searches."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {name: rounded(value)[0] for name, value in values.items() if isinstance(value, arb_mat)}
        return FloatTables(**values)

    @cached_property
    def through(self) -> arb_mat:
        """The units as the heads see them, one head below the other."""
        return self.out * self.units

    @cached_property
    def both_ways(self) -> tuple[Array, Array]:
        """The units and their opposites, as directions of the heads."""
        w, off = self.directions(self.units)
        return np.concatenate([w, -w], 1), np.concatenate([off, off], 1)

    def directions(self, columns: arb_mat) -> tuple[Array, Array]:
        """Columns w as directions W_O,h w of the heads (heads, columns, d_head), and what each is off by in all."""
        shape = (self.architecture.heads, -1, columns.ncols())
        w, off = (part.reshape(shape).swapaxes(1, 2) for part in rounded(self.out * columns))
        return w, (off + HALF * np.abs(w)).sum(2)


def _refuse_other_architectures(architecture: Architecture) -> None:
    """Raises `InvalidSetting` for every architecture that the tables do not describe."""
    a = architecture
    alike = a.own_row in (None, _READ_TOKEN) and a.activation in ("gelu", "relu") and a.seq_len > 1
    if alike:
        names = ("seq_len", "heads", "d", "d_ff", "activation", "own_row")
        read = {"vocabulary": _READ_TOKEN + 1, "positions": "learned", **{name: getattr(a, name) for name in names}}
        expected = Architecture(depth=1, style="post", normalisation="none", residual=True, bias=True, **read)
        alike = a.stages == expected.stages and a.classes == expected.classes
    if not alike:
        raise InvalidSetting(
            "a rule is proved of networks that read bits (tokens 0, 1) and token 2 in the row that is read, by one "
            "attention layer (softmax, residuals, biases, learned positions, no mask, cap or normalisation), GELU "
            "(exact) or ReLU, as one number; this architecture is another"
        )


def tables_of(architecture: Architecture, weights: Mapping[str, Array]) -> BallTables:
    """The tables of stored weights; refuses tensors that are missing, too many, of another shape or not finite."""
    _refuse_other_architectures(architecture)
    _check(_shapes_of(architecture), weights)

    def balls(name: str, *index: int) -> arb_mat:
        """Exact: every stored float is a binary number. Vectors are rows."""
        return arb_mat(np.atleast_2d(weights[name][index]).astype(np.float64).tolist())

    (zero, one, token), (first, *others) = balls("embedding").tolist(), balls("positions").tolist()
    rows = arb_mat([*others, *others, first]) + arb_mat([zero] * len(others) + [one] * len(others) + [token])
    read, scores, values = arb_mat(rows.tolist()[-1:]), list[arb_mat](), list[arb_mat]()
    for h in range(architecture.heads):
        q = (read * balls("W_Q[0]", h) + balls("b_Q[0]", h)) * (1 / arb(architecture.head_width).sqrt())
        scores.append(rows * (balls("W_K[0]", h) * q.transpose()))
        values.append(rows * balls("W_V[0]", h))
    out, readout = balls("W_O[0]"), balls("readout")
    return BallTables(
        architecture,
        Heads.of([weights_of_scores(column.entries()) for column in scores], values),
        float32_error(architecture, weights),
        out=out,
        rho=read + balls("b_O[0]") + arb_mat([balls("b_V[0]").entries()]) * out,
        units=balls("W_1[0]"),
        zeta=balls("b_1[0]"),
        g=balls("W_2[0]") * readout,
        readout=readout,
        k_0=balls("b_2[0]") * readout + balls("b_readout"),
    )


def _shapes_of(a: Architecture) -> dict[str, tuple[int, ...]]:
    """The shapes of all weights by name, as files have them: of heads one behind the other."""
    shapes: dict[str, tuple[int, ...]] = {}
    for weight in weights_of(a.stages, a.seq_len):
        for part in weight.factors or (weight,):
            name = part.kind if part.block is None else f"{part.kind}[{part.block}]"
            shapes[name] = (part.copies, *part.shape) if part.heads else part.shape
    return shapes | {"b_K[0]": shapes["b_Q[0]"]}  # offsets of keys change nothing, but are there


def _check(shapes: Mapping[str, tuple[int, ...]], weights: Mapping[str, Array]) -> None:
    if weights.keys() != shapes.keys():
        odd = sorted(weights.keys() ^ shapes.keys())
        raise CertificateError(f"the weights do not fit their architecture: {odd[0]} is missing or too much")
    for name, shape in shapes.items():
        value = weights[name]
        if value.shape != shape or value.dtype not in (np.float32, np.float64, np.float16):
            raise CertificateError(f"{name} has shape {value.shape} of {value.dtype}, its architecture needs {shape}")
        if not bool(np.isfinite(value).all()):
            raise CertificateError(f"{name} holds numbers that are not finite")
