"""A network of one attention layer on bits in tables, in balls and in floats: from the stored weights alone.

The tokens are 2 (in the row that is read) and the T bits. p_h(x) = sum_t e_th(x_t) v_th(x_t) / sum_t e_th(x_t), the row
that is read included, and r = rho + sum_h p_h W_O,h is that row behind the attention. A normalisation is
N(v) = s(v) v K + offset, s(v) = 1 / sqrt(|v C|^2 / d + eps) (C centres for LayerNorm and is the identity for RMSNorm).
Without one C has no columns, and s = 1. With the scales s_1 of r and s_2 of the row y before the read-out

    f = s_2 F + last,   F = k_0 + <straight, r> + s_1 <scaled, r> + sum_j g_j phi(z_j),   z_j = zeta_j + s_1 <units_j,
    r>,   y C = (s_1 or 1) r residual + phi(z) second + shift.

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
        centre: C.
    """

    architecture: Architecture
    heads: Heads
    rounding: float | None
    out: _Matrix
    centre: _Matrix
    rho: _Matrix
    units: _Matrix
    zeta: _Matrix
    g: _Matrix
    straight: _Matrix
    scaled: _Matrix
    k_0: _Matrix
    last: _Matrix
    residual: _Matrix
    second: _Matrix
    shift: _Matrix

    @property
    def T(self) -> int:  # noqa: N802 - as everywhere
        """Bits of an input."""
        return self.architecture.seq_len - 1

    @property
    def post(self) -> bool:
        """Whether the residual is the normalised row."""
        return self.architecture.style == "post"

    @property
    def eps(self) -> float:
        """What is added to the mean square of a row, in a scale: without a normalisation the scale is 1."""
        return 1.0 if self.architecture.normalisation == "none" else self.architecture.eps

    def scale_of_square(self, square: Any) -> Any:
        """1 / sqrt(|C row|^2 / d + eps)."""
        mean = square / self.architecture.d + self.eps
        return mean.rsqrt() if isinstance(mean, arb) else 1 / np.sqrt(mean)


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
        scale = self._scale(r @ self.centre)
        hidden = float_phi(self.architecture.activation, self.zeta + scale * (r @ self.units))
        f = self.k_0 + r @ self.straight + scale * (r @ self.scaled) + hidden @ self.g
        y = (scale if self.post else 1) * (r @ self.residual) + hidden @ self.second + self.shift
        return (self._scale(y) * f + self.last)[:, 0]

    def _scale(self, rows: Array) -> Array:
        return self.scale_of_square((rows**2).sum(1, keepdims=True))

    @cached_property
    def read(self) -> Array:
        """Columns of r whose ranges are wanted: of the hidden units, and of C."""
        return np.concatenate([self.units, self.centre], 1)

    @cached_property
    def through(self) -> Array:
        """`read` as the heads see it (heads, d_head, columns)."""
        return (self.out @ self.read).reshape(len(self.heads.relative), -1, self.read.shape[1])


class BallTables(Tables[arb_mat]):
    """Balls around the numbers of the formula, for proofs."""

    @cached_property
    def floats(self) -> FloatTables:
        """Midpoints, for searches."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {name: rounded(value)[0] for name, value in values.items() if isinstance(value, arb_mat)}
        return FloatTables(**values)

    @cached_property
    def read(self) -> arb_mat:
        """Columns of r whose ranges are wanted: of the hidden units, of C, and in style post of the residual."""
        return beside(self.units, self.centre, *[self.residual] * self.post)

    @cached_property
    def through(self) -> arb_mat:
        """`read` as the heads see it, one below the other."""
        return self.out * self.read

    @cached_property
    def both_ways(self) -> tuple[Array, Array]:
        """The columns that are read and their opposites, as directions of the heads."""
        w, off = self.directions(self.read)
        return np.concatenate([w, -w], 1), np.concatenate([off, off], 1)

    def directions(self, columns: arb_mat) -> tuple[Array, Array]:
        """Columns w as directions W_O,h w of the heads (heads, columns, d_head), and what each is off by in all."""
        shape = (self.architecture.heads, -1, columns.ncols())
        w, off = (part.reshape(shape).swapaxes(1, 2) for part in rounded(self.out * columns))
        return w, (off + HALF * np.abs(w)).sum(2)


def absolute(matrix: arb_mat) -> arb_mat:
    """The absolute values of a matrix."""
    return arb_mat([[abs(entry) for entry in row] for row in matrix.tolist()])


def beside(*matrices: arb_mat) -> arb_mat:
    """Matrices side by side."""
    return arb_mat([column for matrix in matrices for column in matrix.transpose().tolist()]).transpose()


def _refuse_other_architectures(architecture: Architecture) -> None:
    """Raises `InvalidSetting` for every architecture that the tables do not describe."""
    a = architecture
    names = ("seq_len", "heads", "d", "d_ff", "style", "activation", "normalisation", "vocabulary", "own_row", "eps")
    values = {name: getattr(a, name) for name in names if a.unread(name) is None}
    alike = a.own_row in (None, _READ_TOKEN) and a.vocabulary == _READ_TOKEN + 1 and a.activation in ("gelu", "relu")
    alike &= a.style in ("pre", "post") and a.normalisation in ("none", "layernorm", "rmsnorm") and a.seq_len > 1
    if alike:
        expected = Architecture(depth=1, residual=True, bias=True, positions="learned", **values)
        alike = a.stages == expected.stages and a.classes == expected.classes
    if not alike:
        raise InvalidSetting(
            "a rule is proved of networks that read bits (tokens 0, 1) and token 2 in the row that is read, by one "
            "attention layer (softmax, residuals, biases, learned positions, no mask or cap), GELU (exact) or ReLU, "
            "style pre or post with layernorm, rmsnorm or none, as one number; this architecture is another"
        )


def tables_of(architecture: Architecture, weights: Mapping[str, Array]) -> BallTables:
    """The tables of stored weights; refuses tensors that are missing, too many, of another shape or not finite."""
    _refuse_other_architectures(architecture)
    shapes = _shapes_of(architecture)
    _check(shapes, weights)
    a, normal, post = architecture, architecture.normalisation != "none", architecture.style == "post"

    def balls(name: str, *index: int) -> arb_mat:
        """Exact: every stored float is a binary number. Vectors are rows."""
        array = np.atleast_2d(weights[name][index]).astype(np.float64)
        return arb_mat(array.tolist())

    mean = arb(int(a.normalisation == "layernorm")) / a.d
    centre = arb_mat([[int(i == j) - mean for j in range(a.d)] for i in range(a.d)]) if normal else arb_mat(a.d, 0)

    def around(which: int) -> tuple[list[arb], arb_mat]:
        """Gain and offset of a normalisation."""
        gain = [name for name in shapes if ".gain" in name][which]
        offset = gain.replace("gain", "offset")
        return balls(gain).entries(), balls(offset) if offset in shapes else arb_mat(1, a.d)

    def behind(which: int, matrix: arb_mat) -> tuple[arb_mat, arb_mat]:
        """K M and offset M, for a matrix M behind a normalisation; M and 0 without."""
        if not normal:
            return matrix, arb_mat(1, matrix.ncols())
        gain, offset = around(which)
        scaled = [[g * entry for entry in row] for g, row in zip(gain, matrix.tolist(), strict=True)]
        return centre * arb_mat(scaled), offset * matrix

    (zero, one, token), (first, *others) = balls("embedding").tolist(), balls("positions").tolist()
    rows = arb_mat([*others, *others, first]) + arb_mat([zero] * len(others) + [one] * len(others) + [token])
    read, seen = arb_mat(rows.tolist()[-1:]), rows
    if normal and not post:  # every row is normalised before the attention, by itself
        gain, offset = around(0)
        seen = arb_mat([_normalised(a, row, gain, offset.entries()) for row in (rows * centre).tolist()])
    query, scores, values = arb_mat(seen.tolist()[-1:]), list[arb_mat](), list[arb_mat]()
    for h in range(a.heads):
        q = (query * balls("W_Q[0]", h) + balls("b_Q[0]", h)) * (1 / arb(a.head_width).sqrt())
        scores.append(seen * (balls("W_K[0]", h) * q.transpose()))
        values.append(seen * balls("W_V[0]", h))
    out, w_2, b_2 = balls("W_O[0]"), balls("W_2[0]"), balls("b_2[0]")
    inner = 0 if post else 1
    (units, zeta), (readout, last) = behind(inner, balls("W_1[0]")), behind(-1, balls("readout"))
    straight, (scaled, k_0) = readout, (arb_mat(a.d, 1), arb_mat(1, 1))
    residual, shift = centre, arb_mat(1, centre.ncols())
    if post:  # the residual is the normalised row
        straight, (scaled, k_0), (residual, shift) = scaled, behind(inner, readout), behind(inner, centre)
    return BallTables(
        a,
        Heads.of([weights_of_scores(column.entries()) for column in scores], values),
        float32_error(a, weights),
        out=out,
        rho=read + balls("b_O[0]") + arb_mat([balls("b_V[0]").entries()]) * out,
        units=units,
        zeta=zeta + balls("b_1[0]"),
        g=w_2 * readout,
        straight=straight,
        scaled=scaled,
        k_0=b_2 * readout + k_0,
        last=last + balls("b_readout"),
        centre=centre,
        residual=residual,
        second=w_2 * centre,
        shift=b_2 * centre + shift,
    )


def _normalised(a: Architecture, centred: list[arb], gain: list[arb], offset: list[arb]) -> list[arb]:
    """A row behind a normalisation, from the row times C."""
    scale = (sum((ball * ball for ball in centred), arb(0)) / a.d + arb(a.eps)).rsqrt()
    return [x * scale * g + o for x, g, o in zip(centred, gain, offset, strict=True)]


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
