"""A network of one attention layer on bits in tables, in balls: from the stored weights alone.

The tokens are 2 (in the row that is read) and the T bits. p_h(x) = sum_t e_th(x_t) v_th(x_t) / sum_t e_th(x_t), the row
that is read included, and r = rho + sum_h p_h W_O,h is that row behind the attention. With the scales
s_1, s_2 = 1 / sqrt(|C v|^2 / d + eps) of the normalisations (1 where there is none; C centres for LayerNorm, and is the
identity for RMSNorm)

    f = s_2 F + last,   F = k_0 + <straight, r> + s_1 <scaled, r> + sum_j g_j phi(z_j),   z_j = zeta_j + s_1 <units_j,
    r>.

docs/certificates.md proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.predictors.data import Array
from boundcalc.predictors.rules._heads import Directions, HeadTable
from boundcalc.predictors.rules._hidden import float_phi
from boundcalc.setting import Architecture

_READ_TOKEN = 2


@dataclass(frozen=True)
class Tables:
    """Everything the formula needs, in balls; vectors are rows or columns as they are multiplied.

    Attributes:
        architecture: of the network.
        heads: one table for each.
        rho: the row that is read without what the heads add.
        units: the columns m_j that hidden units read.
        zeta: their offsets.
        g: how they act on F.
        straight: a column, how r acts on F.
        scaled: the same of s_1 r.
        k_0: offset of F.
        last: offset of f.
        centre: the matrix C, where something is normalised.
        behind: W_2, b_2, and gain and offset of s_1 C r besides them (None: r is), for the row before the read-out.
        weights: as they are stored.
    """

    architecture: Architecture
    heads: tuple[HeadTable, ...]
    rho: arb_mat
    units: arb_mat
    zeta: list[arb]
    g: list[arb]
    straight: arb_mat
    scaled: arb_mat
    k_0: arb
    last: arb
    centre: arb_mat | None
    behind: tuple[arb_mat, list[arb], tuple[list[arb], list[arb]] | None]
    weights: Mapping[str, Array]

    @property
    def T(self) -> int:  # noqa: N802 - as everywhere
        """Bits of an input."""
        return self.architecture.seq_len - 1

    @cached_property
    def read(self) -> arb_mat:
        """Columns of r whose ranges are wanted: those of the hidden units, then those of C."""
        if self.centre is None:
            return self.units
        rows = zip(self.units.tolist(), self.centre.tolist(), strict=True)
        return arb_mat([[*a, *b] for a, b in rows])

    @cached_property
    def through(self) -> list[arb_mat]:
        """`read` as the heads see it."""
        return [head.out * self.read for head in self.heads]

    @cached_property
    def both_ways(self) -> list[Directions]:
        """The columns of `through` and their opposites, as directions of the heads."""
        return [Directions.both_ways(matrix.transpose().tolist()) for matrix in self.through]

    @cached_property
    def axes(self) -> Directions:
        """The coordinates of a head's values, and their opposites."""
        width = self.architecture.head_width
        return Directions.both_ways([[arb(int(i == j)) for j in range(width)] for i in range(width)])

    @cached_property
    def sizes(self) -> list[arb_mat]:
        """The absolute values of `through`."""
        return [arb_mat([[abs(entry) for entry in row] for row in matrix.tolist()]) for matrix in self.through]

    @cached_property
    def floats(self) -> FloatTables:
        """Midpoints, for searches."""
        return FloatTables(self)

    def scale_of_square(self, square: arb) -> arb:
        """1 / sqrt(|C row|^2 / d + eps)."""
        return (square / self.architecture.d + arb(self.architecture.eps)).rsqrt()


class FloatTables:
    """Midpoints of the tables, for searches."""

    def __init__(self, tables: Tables) -> None:
        self.sums = np.stack([head.sums for head in tables.heads])  # (heads, 2 T + 1, d_head + 1): e v, and last e
        self.out = np.stack([_floats_of(head.out) for head in tables.heads])
        self.through = np.stack([_floats_of(matrix) for matrix in tables.through])
        self.rho = _floats_of(tables.rho)[0]
        self.units, self.read = _floats_of(tables.units), _floats_of(tables.read)
        self.straight, self.scaled = _floats_of(tables.straight)[:, 0], _floats_of(tables.scaled)[:, 0]
        self.zeta, self.g = np.array(_mids(tables.zeta)), np.array(_mids(tables.g))
        self.k_0, self.last = float(tables.k_0.mid()), float(tables.last.mid())
        self.centre = None if tables.centre is None else _floats_of(tables.centre)
        w_2, b_2, residual = tables.behind
        self.w_2, self.b_2 = _floats_of(w_2), np.array(_mids(b_2))
        self.residual = None if residual is None else [np.array(_mids(part)) for part in residual]
        self.activation, self.eps, self.T = tables.architecture.activation, tables.architecture.eps, tables.T

    def forward(self, x: Array) -> Array:
        """The output f for rows of bits."""
        ones, T = np.ascontiguousarray(x, dtype=np.float64), self.T
        return self._behind((1 - ones) @ self.sums[:, :T] + ones @ self.sums[:, T:-1] + self.sums[:, -1:])

    def flips(self, x: Array) -> Array:
        """The outputs for one row of bits with each of its bits flipped, one after the other."""
        T, place = self.T, np.arange(self.T)
        shown, other = self.sums[:, place + T * x], self.sums[:, place + T * (1 - x)]
        around = np.concatenate([self.sums[:, -1:], shown], 1).cumsum(1)  # sums without a bit, and not by subtraction
        after = np.concatenate([shown[:, :0:-1].cumsum(1)[:, ::-1], np.zeros_like(shown[:, :1])], 1)
        return self._behind(around[:, :-1] + after + other)

    def _behind(self, sums: Array) -> Array:
        """The output from the sums of every head (heads, rows, d_head + 1)."""
        r = self.rho + np.einsum("hri,hid->rd", sums[..., :-1] / sums[..., -1:], self.out, optimize=True)
        first = self._scale(r)
        hidden = float_phi(self.activation, self.zeta + first[:, None] * (r @ self.units))
        f = self.k_0 + r @ self.straight + first * (r @ self.scaled) + hidden @ self.g
        if self.centre is None:
            return f + self.last
        base = r
        if self.residual is not None:
            base = self.residual[0] * first[:, None] * (r @ self.centre) + self.residual[1]
        return self._scale(base + hidden @ self.w_2 + self.b_2) * f + self.last

    def _scale(self, rows: Array) -> Array:
        if self.centre is None:
            return np.ones(len(rows))
        return 1 / np.sqrt(((rows @ self.centre) ** 2).mean(1) + self.eps)


def _normalisations(a: Architecture) -> list[tuple[str, ...]]:
    """The names of gain (and offset) of every normalisation, in their order."""
    parts = {"none": (), "rmsnorm": ("gain",), "layernorm": ("gain", "offset")}[a.normalisation]
    places = ("norm_attention.{}[0]", "norm_ffn.{}[0]", "norm_final.{}")[: 3 if a.style == "pre" else 2]
    return [tuple(place.format(part) for part in parts) for place in places if parts]


def _refuse_other_architectures(architecture: Architecture) -> None:
    """Raises `InvalidSetting` for every architecture that the tables do not describe."""
    a = architecture
    fields = ("seq_len", "heads", "d", "d_ff", "style", "activation", "normalisation", "vocabulary", "own_row", "eps")
    values = {name: getattr(a, name) for name in fields if a.unread(name) is None}
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


def tables_of(architecture: Architecture, weights: Mapping[str, Array]) -> Tables:
    """The tables of stored weights; refuses tensors that are missing, too many, of another shape or not finite."""
    _refuse_other_architectures(architecture)
    _check(architecture, weights)
    a = architecture

    def balls(name: str, *index: int) -> arb_mat:
        return _matrix(weights[name][index] if index else weights[name])

    centre = _centre(a)

    def around(which: int) -> tuple[list[arb], list[arb]]:
        """Gain and offset of a normalisation."""
        gain, *offset = _normalisations(a)[which]
        return balls(gain).entries(), balls(offset[0]).entries() if offset else [arb(0)] * a.d

    def behind(which: int, matrix: arb_mat) -> tuple[arb_mat, list[arb]]:
        """What a matrix behind a normalisation does to the row before it, once scaled, and to its offset."""
        if centre is None:
            return matrix, [arb(0)] * matrix.ncols()
        gain, offset = around(which)
        scaled = arb_mat([[g * entry for entry in row] for g, row in zip(gain, matrix.tolist(), strict=True)])
        return centre * scaled, (arb_mat([offset]) * matrix).entries()

    (zero, one, token), (first, *others) = balls("embedding").tolist(), balls("positions").tolist()
    rows = [*(_add(p, zero) for p in others), *(_add(p, one) for p in others), _add(first, token)]
    read = arb_mat(rows[-1:])
    if a.style == "pre" and centre is not None:  # every row is normalised before the attention, by itself
        rows = [_normalised(a, row, centre, *around(0)) for row in rows]
    seen, queried, width = arb_mat(rows), arb_mat(rows[-1:]), a.head_width
    out = balls("W_O[0]")
    heads: list[HeadTable] = []
    for h in range(a.heads):
        query = (queried * balls("W_Q[0]", h) + balls("b_Q[0]", h)) * (1 / arb(width).sqrt())
        scores = (seen * (balls("W_K[0]", h) * query.transpose())).entries()
        top = arb(max(_mids(scores)))
        own = arb_mat(out.tolist()[h * width : (h + 1) * width])
        heads.append(HeadTable([(s - top).exp() for s in scores], (seen * balls("W_V[0]", h)).tolist(), own))
    rho = read + balls("b_O[0]") + _matrix(weights["b_V[0]"].reshape(1, -1)) * out
    inner = 1 if a.style == "pre" else 0
    second, b_2 = balls("W_2[0]"), balls("b_2[0]").entries()
    units, zeta = behind(inner, balls("W_1[0]"))
    last, shift = behind(-1, balls("readout"))
    k_0, nothing, residual = (arb_mat([b_2]) * last)[0, 0], arb_mat(a.d, 1), None
    straight, scaled = last, nothing
    if a.style == "post" and centre is not None:  # the residual is the normalised row
        straight, (scaled, more), residual = nothing, behind(inner, last), around(inner)
        k_0 = k_0 + more[0]
    zeta, b = _add(zeta, balls("b_1[0]").entries()), shift[0] + balls("b_readout")[0, 0]
    g = (second * last).entries()
    return Tables(
        a, tuple(heads), rho, units, zeta, g, straight, scaled, k_0, b, centre, (second, b_2, residual), weights
    )


def _centre(a: Architecture) -> arb_mat | None:
    """C: I - 1 1'/d for LayerNorm, I for RMSNorm, None where nothing is normalised."""
    if a.normalisation == "none":
        return None
    mean = arb(int(a.normalisation == "layernorm")) / a.d
    return arb_mat([[int(i == j) - mean for j in range(a.d)] for i in range(a.d)])


def _normalised(a: Architecture, row: list[arb], centre: arb_mat, gain: list[arb], offset: list[arb]) -> list[arb]:
    centred = (arb_mat([row]) * centre).entries()
    scale = (sum((ball * ball for ball in centred), arb(0)) / a.d + arb(a.eps)).rsqrt()
    return [x * scale * g + o for x, g, o in zip(centred, gain, offset, strict=True)]


def _check(a: Architecture, weights: Mapping[str, Array]) -> None:
    d, heads, width, hidden = a.d, a.heads, a.head_width, a.d_ff or 4 * a.d
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (_READ_TOKEN + 1, d),
        "positions": (a.seq_len, d),
        **dict.fromkeys(("W_Q[0]", "W_K[0]", "W_V[0]"), (heads, d, width)),
        **dict.fromkeys(("b_Q[0]", "b_K[0]", "b_V[0]"), (heads, width)),
        "W_O[0]": (heads * width, d),
        **dict.fromkeys(("b_O[0]", "b_2[0]"), (d,)),
        "W_1[0]": (d, hidden),
        "b_1[0]": (hidden,),
        "W_2[0]": (hidden, d),
        "readout": (d, 1),
        "b_readout": (1,),
        **dict.fromkeys((name for norm in _normalisations(a) for name in norm), (d,)),
    }
    if weights.keys() != shapes.keys():
        odd = sorted(weights.keys() ^ shapes.keys())
        raise CertificateError(f"the weights do not fit their architecture: {odd[0]} is missing or too much")
    for name, shape in shapes.items():
        value = weights[name]
        if value.shape != shape or value.dtype not in (np.float32, np.float64, np.float16):
            raise CertificateError(f"{name} has shape {value.shape} of {value.dtype}, its architecture needs {shape}")
        if not bool(np.isfinite(value).all()):
            raise CertificateError(f"{name} holds numbers that are not finite")


def _matrix(array: Array) -> arb_mat:
    """Exact balls: every stored float is a binary number. Vectors are rows."""
    flat = np.atleast_2d(array).astype(np.float64)
    return arb_mat(flat.shape[0], flat.shape[1], flat.ravel().tolist())


def _add(a: list[arb], b: list[arb]) -> list[arb]:
    """Entry by entry."""
    return [x + y for x, y in zip(a, b, strict=True)]


def _mids(balls: list[arb]) -> list[float]:
    """Midpoints of balls."""
    return [float(ball.mid()) for ball in balls]


def _floats_of(matrix: arb_mat) -> Array:
    """Midpoints of a matrix."""
    return np.array(_mids(matrix.entries())).reshape(matrix.nrows(), matrix.ncols())
