"""A network of one attention layer on bits as its tables, formula (N), in balls: from the stored weights alone.

    f(x) = c_0 + sum_h <u_h, p_h(x)> + sum_j g_j phi(z_j(x)),   z_j(x) = zeta_j + sum_h <M_hj, p_h(x)>,
    p_h(x) = sum_t e_th(x_t) v_th(x_t) / sum_t e_th(x_t),

t = 0 (the row that is read, which shows token 2) included. docs/certificates.md proves it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from flint import arb, arb_mat

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.predictors.data import Array
from boundcalc.setting import Architecture

Balls = list[list[arb]]
_READ_TOKEN = 2
MODEL_FORMAT = "boundcalc-model/1"


@dataclass(frozen=True)
class Shape:
    """The numbers that a network's architecture is known by once it is of the kind described here."""

    T: int
    d: int
    heads: int
    d_head: int
    d_ff: int
    activation: str
    temperature: float


@dataclass(frozen=True)
class HeadTable:
    """One head: its unnormalised weights and values.

    Attributes:
        weights: e_t(c), for c = 0 and 1; all positive.
        values: v_t(c) likewise, each of d_head numbers.
        own_weight: of the row that is read.
        own_value: of the row that is read.
        hidden: M_h, d_head rows of d_ff numbers.
        out: u_h.
    """

    weights: tuple[list[arb], list[arb]]
    values: tuple[Balls, Balls]
    own_weight: arb
    own_value: list[arb]
    hidden: Balls
    out: list[arb]


@dataclass(frozen=True)
class Tables:
    """Everything (N) needs, in balls.

    Attributes:
        shape: of the network.
        heads: one table for each.
        zeta: the hidden layer's offsets.
        g: how a hidden unit acts on the output.
        c_0: the output's offset.
    """

    shape: Shape
    heads: tuple[HeadTable, ...]
    zeta: list[arb]
    g: list[arb]
    c_0: arb

    @cached_property
    def floats(self) -> FloatTables:
        """Midpoints, for searches."""
        return FloatTables.of(self)

    def value(self, x: Array) -> arb:
        """The output f(x), enclosed."""
        bits = [int(bit) for bit in x]
        total, z = self.c_0, list(self.zeta)
        for head in self.heads:
            chosen = [head.weights[bit][t] for t, bit in enumerate(bits)]
            rows = [head.values[bit][t] for t, bit in enumerate(bits)]
            mass = arb_mat(1, len(bits) + 1, [*chosen, head.own_weight])
            sums = mass * arb_mat([*rows, head.own_value])
            whole = sum(chosen, head.own_weight)
            pooled = arb_mat(1, len(head.out), [each / whole for each in sums.entries()])
            total = total + (pooled * arb_mat([[u] for u in head.out]))[0, 0]
            z = [a + b for a, b in zip(z, (pooled * arb_mat(head.hidden)).entries(), strict=True)]
        for g, each in zip(self.g, z, strict=True):
            total = total + g * phi(self.shape.activation, each)
        return total


@dataclass(frozen=True)
class FloatTables:
    """The same in floats: e (H, T, 2), v (H, T, 2, d_head), own weights and values, M (H, d_head, d_ff), u, zeta, g, c_0."""

    e: Array
    v: Array
    own_e: Array
    own_v: Array
    M: Array
    u: Array
    zeta: Array
    g: Array
    c_0: float
    activation: str

    @classmethod
    def of(cls, tables: Tables) -> FloatTables:
        """Midpoints of balls."""
        heads = tables.heads
        e = np.array([[_mids(side) for side in head.weights] for head in heads]).transpose(0, 2, 1)
        v = np.array([[[_mids(row) for row in side] for side in head.values] for head in heads]).transpose(0, 2, 1, 3)
        return cls(
            e,
            v,
            np.array(_mids([head.own_weight for head in heads])),
            np.array([_mids(head.own_value) for head in heads]),
            np.array([[_mids(row) for row in head.hidden] for head in heads]),
            np.array([_mids(head.out) for head in heads]),
            np.array(_mids(tables.zeta)),
            np.array(_mids(tables.g)),
            float(tables.c_0.mid()),
            tables.shape.activation,
        )

    def forward(self, x: Array) -> Array:
        """The output f for rows of bits."""
        found = np.full(len(x), self.c_0)
        z = np.tile(self.zeta, (len(x), 1))
        ones = np.ascontiguousarray(x, dtype=np.float64)
        for h in range(len(self.u)):
            mass = self.e[h][..., None]
            both = np.concatenate([mass, mass * self.v[h]], -1)  # (T, 2, 1 + d_head)
            own = np.concatenate([[1.0], self.own_v[h]]) * self.own_e[h]
            sums = (1 - ones) @ both[:, 0] + ones @ both[:, 1] + own
            p = sums[:, 1:] / sums[:, :1]
            found += p @ self.u[h]
            z += p @ self.M[h]
        return found + float_phi(self.activation, z) @ self.g


def phi(name: str, z: arb) -> arb:
    """The activation of a ball: GELU is z times the normal distribution function, exactly; or ReLU."""
    if name == "relu":
        return arb.max(z, arb(0))
    return z * (1 + (z / arb(2).sqrt()).erf()) / 2


def phi_slope(z: arb) -> arb:
    """The derivative of GELU."""
    root = arb(2).sqrt()
    return (1 + (z / root).erf()) / 2 + z * (-z * z / 2).exp() / (root * arb.const_sqrt_pi())


def float_phi(name: str, z: Array) -> Array:
    """The activation in floats."""
    if name == "relu":
        return np.maximum(z, 0)
    from scipy.special import ndtr

    return z * ndtr(z)


def described(architecture: Architecture) -> Shape:
    """The network's shape; refuses every architecture that (N) does not describe."""
    a = architecture
    if a.own_row != _READ_TOKEN or a.vocabulary != _READ_TOKEN + 1 or a.activation not in ("gelu", "relu"):
        raise InvalidSetting(
            "a rule is proved of networks that read bits (tokens 0, 1), show token 2 in the row that is read, and use "
            "GELU (exact) or ReLU"
        )
    expected = Architecture(
        depth=1,
        seq_len=a.seq_len,
        heads=a.heads,
        d=a.d,
        d_ff=a.d_ff,
        style="post",
        activation=a.activation,
        normalisation="none",
        residual=True,
        bias=True,
        vocabulary=a.vocabulary,
        own_row=a.own_row,
        positions="learned",
    )
    if a.stages != expected.stages or a.classes != expected.classes or a.seq_len < 2:
        raise InvalidSetting(
            "a rule is proved of one attention layer with residuals and biases, learned positions, softmax and no "
            "normalisation, mask or cap, read at its first row as one number; this architecture is another"
        )
    from boundcalc.setting.attention import attentions

    layer = next(attentions(a.stages))
    assert layer.d_head is not None  # noqa: S101 - by the comparison
    assert a.d_ff is not None  # noqa: S101 - by the comparison
    return Shape(a.seq_len - 1, a.d, a.heads, layer.d_head, a.d_ff, a.activation, layer.temperature)


def read_weights(path: Path | str) -> tuple[Architecture, dict[str, Array]]:
    """Architecture and tensors of a model's file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="np") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != MODEL_FORMAT:
                raise InvalidSetting(f"{path} is not a model of boundcalc: it has no architecture in its metadata")
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (OSError, SafetensorError) as error:
        raise CertificateError(f"cannot read the weights {path}: {error}") from None
    return Architecture.from_json(json.loads(metadata["architecture"])), weights


def tables_of(architecture: Architecture, weights: Mapping[str, Array]) -> Tables:
    """The tables of stored weights; refuses tensors that are missing, too many, of another shape or not finite."""
    n = described(architecture)
    _check(n, weights)

    def balls(name: str, *index: int) -> arb_mat:
        return _matrix(weights[name][index] if index else weights[name])

    embedding, positions = balls("embedding"), balls("positions")
    rows = arb_mat([*positions.tolist()[1:], *embedding.tolist()[:2]])
    read = arb_mat([[a + b for a, b in zip(positions.tolist()[0], embedding.tolist()[2], strict=True)]])
    scale = arb(n.temperature).union(arb(n.d_head).sqrt())  # whichever of the two the root of d_head is meant to be
    behind, first, second = balls("W_O[0]"), balls("W_1[0]"), balls("W_2[0]")
    last = balls("readout")
    to_hidden, to_out = (behind * first).tolist(), (behind * last).tolist()
    row = read + balls("b_O[0]") + _matrix(weights["b_V[0]"].reshape(1, -1)) * behind
    heads: list[HeadTable] = []
    for h in range(n.heads):
        query = (read * balls("W_Q[0]", h) + balls("b_Q[0]", h)) * (1 / scale)
        key = balls("W_K[0]", h) * query.transpose()
        value = balls("W_V[0]", h)
        scores, own = (rows * key).entries(), (read * key)[0, 0]
        values = (rows * value).tolist()
        by_bit = [[scores[t] + scores[n.T + c] for t in range(n.T)] for c in (0, 1)]
        shift = arb(max(float(each.mid()) for each in (*by_bit[0], *by_bit[1], own)))
        part = slice(h * n.d_head, (h + 1) * n.d_head)
        heads.append(
            HeadTable(
                tuple([(each - shift).exp() for each in side] for side in by_bit),  # type: ignore[arg-type]
                tuple([_add(values[t], values[n.T + c]) for t in range(n.T)] for c in (0, 1)),  # type: ignore[arg-type]
                (own - shift).exp(),
                (read * value).entries(),
                to_hidden[part],
                [each[0] for each in to_out[part]],
            )
        )
    c_0 = (row * last)[0, 0] + (balls("b_2[0]") * last)[0, 0] + balls("b_readout")[0, 0]
    return Tables(n, tuple(heads), (row * first + balls("b_1[0]")).entries(), (second * last).entries(), c_0)


def _check(n: Shape, weights: Mapping[str, Array]) -> None:
    each = {"W_Q[0]": (n.d, n.d_head), "W_K[0]": (n.d, n.d_head), "W_V[0]": (n.d, n.d_head)}
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (_READ_TOKEN + 1, n.d),
        "positions": (n.T + 1, n.d),
        **{name: (n.heads, *shape) for name, shape in each.items()},
        **dict.fromkeys(("b_Q[0]", "b_K[0]", "b_V[0]"), (n.heads, n.d_head)),
        "W_O[0]": (n.d, n.d),
        "b_O[0]": (n.d,),
        "W_1[0]": (n.d, n.d_ff),
        "b_1[0]": (n.d_ff,),
        "W_2[0]": (n.d_ff, n.d),
        "b_2[0]": (n.d,),
        "readout": (n.d, 1),
        "b_readout": (1,),
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
    return [x + y for x, y in zip(a, b, strict=True)]


def _mids(balls: list[arb]) -> list[float]:
    return [float(each.mid()) for each in balls]
