"""What theorem K needs of a network: norms of its blocks, sizes of rows and scores, and where it applies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from boundcalc.base.numbers import FLOAT, Number, NumberSystem
from boundcalc.layers.attention import Attention
from boundcalc.layers.base import of_class
from boundcalc.setting import Budget, Setting
from boundcalc.statements.weights import Weights


@dataclass(frozen=True)
class Budgets:
    """The norms of one block in a number system: scores, values (sums over heads), linear map behind."""

    scores_op: Number
    scores_fro: Number
    values_op: Number
    values_fro: Number
    values_columns: Number
    hidden_op: Number
    hidden_fro: Number


@dataclass(frozen=True)
class Network:
    """What theorem K needs of a network.

    Attributes:
        blocks: their norms, first to last; scores are divided by the temperature.
        radius: of an input row.
        readout: spectral norm of the read-out.
        heads: query heads of a block.
        acts: whether projections may act, in a network of one block.
    """

    blocks: tuple[Budgets, ...]
    radius: Number
    readout: Number
    heads: int
    acts: bool = False


@dataclass(frozen=True)
class Sizes:
    """Of block l: the scale b of its rows, the size S of the hull of its scores, and half their oscillation r."""

    scale: Number
    hull: Number
    half_range: Number


def sizes_of(ns: NumberSystem, network: Network, *, columns: bool) -> list[Sizes]:
    """Sizes of every block; `columns`: values are counted by the (2,1) norm, not by the Frobenius norm."""
    radius, scale = network.radius, network.radius
    sizes: list[Sizes] = []
    before: Budgets | None = None
    for block in network.blocks:
        most = block.scores_op * radius**2
        hull = block.scores_fro * scale**2
        if before is not None and not columns:
            hull = ns.minimum(hull, block.scores_op * (before.hidden_op * before.values_columns * sizes[-1].scale) ** 2)
        half = most if before is None else ns.minimum(hull / 2, most)
        sizes.append(Sizes(scale, hull, half))
        scale = block.hidden_op * (block.values_columns if columns else block.values_fro) * scale
        radius = block.hidden_op * block.values_op * radius
        before = block
    sizes.append(Sizes(scale, ns.number(0), ns.number(0)))
    return sizes


_LARGEST_RANGE = 100
"""Half the range of scores."""


def of_plain_heads(setting: Setting) -> Iterator[tuple[bool, str]]:
    """What makes a network one of relu and softmax heads on vectors, its projections acting or not."""
    a = setting.architecture
    yield a.layers is None and a.style == "edelman", "style edelman"
    yield a.normaliser.name == "softmax", "softmax"
    yield a.activation == "relu", "relu, which is positively homogeneous"
    yield a.normalisation in ("ball", "none"), "the projection onto the ball, or no normalisation"
    yield a.classes == 1, "one output"
    yield not a.causal, "attention to every row"
    yield not (a.vocabulary or a.d_patch or a.embedding_norm or a.pooler), "vector inputs, no embedding and no pooler"
    yield a.positions == "none", "rows without positions of their own"


def refusal(setting: Setting) -> str | None:
    """Why theorem K is not about a setting, or None."""
    a = setting.architecture
    missing = next((what for holds, what in of_plain_heads(setting) if not holds), None)
    if missing is not None:
        return f"theorem K needs {missing}"
    return (_active_ball(setting) if a.normalisation == "ball" and a.depth > 1 else None) or _far_scores(setting)


def _far_scores(setting: Setting) -> str | None:
    """Why exponentials of scores are beyond floats; every value would be vacuous."""
    try:
        sizes = sizes_of(FLOAT, network_of(FLOAT, setting), columns=False)
    except OverflowError:
        sizes = None
    if sizes is not None and all(size.half_range <= _LARGEST_RANGE for size in sizes):
        return None
    return f"theorem K needs scores that lie within {2 * _LARGEST_RANGE}"


def _active_ball(setting: Setting) -> str | None:
    """Why the projections may act; decided exactly, as norms of 1 are the usual case."""
    norms, radius = setting.norms, Fraction(setting.architecture.input_radius)
    heads = range(setting.architecture.heads)
    for block in range(setting.architecture.depth):
        values = sum((_least(norms.find("W_V", block, head)) for head in heads), start=Fraction(0))
        inside, after = values * radius, values * radius * _least(norms.find("W_1", block))
        if max(inside, after) > 1:
            longest = float(min(max(inside, after), Fraction(10) ** 300))
            return (
                f"theorem K needs norms at which no projection acts: in block {block} rows may be {longest:.4g} "
                "long (sum of |W_V| over heads, times |W_1|, times the length of a row)"
            )
        radius = after
    return None


def _least(budget: Budget) -> Fraction:
    """The spectral norm of a budget, exactly."""
    norms = (budget.op, budget.fro, budget.two_one, budget.two_one_t, budget.one_one, budget.nuclear)
    return min((Fraction(value) for value in norms if value is not None), default=Fraction(0))


def network_of(ns: NumberSystem, setting: Setting) -> Network:
    """The norms that theorem K needs of a setting that it does not refuse."""
    a, weights = setting.architecture, Weights(ns, setting.norms)
    heads = range(a.heads)
    blocks: list[Budgets] = []
    for layer in of_class(a.stages, Attention):
        temperature = ns.number(layer.temperature)
        scores = [weights.scores(layer.scores, head, layer.d_head).whole for head in heads]
        values = [weights.matrix("W_V", layer.block, head, a.d, a.d).whole for head in heads]
        hidden = weights.matrix("W_1", layer.block, None, a.d, a.d).whole
        zero = ns.number(0)
        blocks.append(
            Budgets(
                reduce(ns.maximum, [score.op for score in scores]) / temperature,
                reduce(ns.maximum, [score.fro for score in scores]) / temperature,
                sum((value.op for value in values), start=zero),
                sum((value.fro for value in values), start=zero),
                sum((value.two_one for value in values), start=zero),
                hidden.op,
                hidden.fro,
            )
        )
    acts = a.normalisation == "ball" and _active_ball(setting) is not None
    readout = weights.matrix("readout", None, None, a.d, 1).whole.op
    return Network(tuple(blocks), ns.number(a.input_radius), readout, a.heads, acts)
