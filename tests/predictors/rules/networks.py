"""Small networks on bits, with weights drawn or set by hand, and their values by definition."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import numpy as np
from flint import arb, arb_mat

from boundcalc.predictors.data import Array
from boundcalc.predictors.rules.support import HeadOn, Inputs
from boundcalc.predictors.rules.tables import FloatTables, HeadTable, Tables
from boundcalc.setting import Architecture


def architecture(
    T: int, d: int = 8, heads: int = 2, d_ff: int = 12, activation: str = "gelu", **more: object
) -> Architecture:
    """The kind of network that rules are proved of."""
    fields: dict[str, object] = {
        "depth": 1,
        "seq_len": T + 1,
        "heads": heads,
        "d": d,
        "d_ff": d_ff,
        "style": "post",
        "activation": activation,
        "normalisation": "none",
        "residual": True,
        "bias": True,
        "vocabulary": 3,
        "own_row": 2,
        "positions": "learned",
    }
    return Architecture(**{**fields, **more})  # type: ignore[arg-type]


def drawn(a: Architecture, seed: int, size: float = 0.5) -> dict[str, Array]:
    """Weights for it, float32; gains around 1."""
    g = np.random.default_rng(seed)
    T, d, h, f = a.seq_len - 1, a.d, a.heads, a.d_ff
    norms = [f"norm_{name}" for name in ("attention.{}[0]", "ffn.{}[0]", "final.{}")[: 3 if a.style == "pre" else 2]]
    parts = {"none": (), "rmsnorm": ("gain",), "layernorm": ("gain", "offset")}[a.normalisation]
    shapes = {
        "embedding": (3, d),
        "positions": (T + 1, d),
        **dict.fromkeys(("W_Q[0]", "W_K[0]", "W_V[0]"), (h, d, d // h)),
        **dict.fromkeys(("b_Q[0]", "b_K[0]", "b_V[0]"), (h, d // h)),
        "W_O[0]": (d, d),
        "b_O[0]": (d,),
        "W_1[0]": (d, f),
        "b_1[0]": (f,),
        "W_2[0]": (f, d),
        "b_2[0]": (d,),
        "readout": (d, 1),
        "b_readout": (1,),
        **{norm.format(part): (d,) for norm in norms for part in parts},
    }
    weights = {name: (size * g.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}
    return {name: value + np.float32("gain" in name) for name, value in weights.items()}


def looking_at(T: int, positions: Sequence[int], seed: int = 1, strength: float = 6.0, **more: object):
    """A network whose first head looks at these positions, with small random weights besides; above 0 where one shows
    1."""
    a = architecture(T, **more)  # type: ignore[arg-type]
    w = drawn(a, seed, 0.05 if len(positions) > 1 else 0.2)
    for position in positions:
        w["positions"][position + 1, 0] += 1
    w["embedding"][0, 1] -= 1
    w["embedding"][1, 1] += 1
    w["W_K[0]"][0, 0, 0] += 1
    w["b_Q[0]"][0, 0] += 2 * strength
    w["W_V[0]"][0, 1, 0] += 1
    w["W_O[0]"][0, 2] += 1
    w["readout"][2, 0] += 4
    w["b_readout"][:] = 4.0 * (len(positions) - 1) / len(positions)
    return a, w


@cache
def all_inputs(T: int) -> Array:
    """All rows of T bits."""
    return np.array(list(itertools.product((0, 1), repeat=T)))


def head(scores: Array, values: Array, own_score: float, own_value: Array) -> tuple[HeadTable, FloatTables]:
    """A head from scores (T, 2) and values (T, 2, d), without anything behind it."""
    top = max(float(scores.max()), own_score)
    weights = [[(arb(float(s)) - arb(top)).exp() for s in scores[:, c]] for c in (0, 1)]
    rows = [[[arb(float(a)) for a in row] for row in values[:, c]] for c in (0, 1)]
    d = values.shape[2]
    own = (arb(own_score) - arb(top)).exp(), [arb(float(a)) for a in own_value]
    table = HeadTable((weights[0], weights[1]), (rows[0], rows[1]), *own, arb_mat(d, d))
    a, column, nothing = architecture(len(scores), d, 1, 1), arb_mat(d, 1), arb(0)
    tables = (
        arb_mat(1, d),
        column,
        [nothing],
        [nothing],
        column,
        column,
        nothing,
        nothing,
        None,
        (arb_mat(1, d), [nothing] * d, None),
    )
    return table, Tables(a, (table,), *tables).floats


def largest_by_listing(
    scores: Array, values: Array, own_score: float, own_value: Array, w: Array, inputs: Inputs
) -> Array:
    """The largest <w, p(x)> over the inputs, each listed, in extended precision; one per row of w."""
    top = max(float(scores.max()), own_score)
    e = np.exp((scores - top).astype(np.longdouble))
    x = all_inputs(len(scores))
    keep = np.ones(len(x), dtype=bool)
    for t, c in inputs.fixed:
        keep &= x[:, t] == c
    ones = x[:, inputs.free].sum(1)
    x = x[keep & (ones >= inputs.low) & (ones <= inputs.high)]
    places = np.arange(len(scores))
    mass, rows = e[places, x], values[places, x].astype(np.longdouble)
    own = np.exp(np.longdouble(own_score - top))
    p = ((mass[..., None] * rows).sum(1) + own * own_value) / (mass.sum(1) + own)[:, None]
    return (p @ w.T.astype(np.longdouble)).max(0)


def on(table: HeadTable, floats: FloatTables, inputs: Inputs) -> HeadOn:
    """The head on these inputs."""
    return HeadOn(table, floats, 0, inputs)
