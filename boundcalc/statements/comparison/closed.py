"""K: where Gaussian comparison applies, what it needs of a network, and the gap in elementary functions.

Nothing is tuned, and nothing depends on T or on the width.
"""

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


_LOWEST_QUARTER = 1.2711
"""Below 4 phi(t), Phi(t) = 1/4: minus the mean of a Gaussian that is in its lowest quarter."""
LEFT = 0.51
"""Over m: what the mean of the m lowest of 4m Gaussians falls short of it, at most."""
_NEXT_TO_NOTHING = 1e-40
"""Stands for parts that are 0 or smaller still: whatever holds for larger ones holds for them."""


def hoelder(ns: NumberSystem, *parts: Number) -> Number:
    """(a^(2/3) + b^(2/3) + ...)^(3/2): the smallest sum of a/sqrt(p), b/sqrt(q), ... with p + q + ... = 1."""
    power, least = ns.number(2) / 3, ns.number(_NEXT_TO_NOTHING)
    total = ns.number(0)
    for part in parts:
        total = total + (least if bool(part <= least) else part) ** power
    return total ** (ns.number(3) / 2)


def excess(ns: NumberSystem, x: Number) -> Number:
    """At least e^x - 1 - x, for x >= 0; without cancellation where x is small."""
    if bool(x < 1 / ns.number(1024)):
        return x**2 / 2 * ns.exp(x)
    return ns.expm1(x) - x


def hyperbolic(ns: NumberSystem, x: Number) -> tuple[Number, Number]:
    """Cosh x and sinh x."""
    up = ns.exp(x)
    return (up + 1 / up) / 2, (ns.expm1(x) - ns.expm1(-x)) / 2


def kappa(ns: NumberSystem, r: Number) -> Number:
    """The largest |tau (phi - mean)| in L2, of weights within a factor e^(2r) and phi in an interval of length 1."""
    cosh, sinh = hyperbolic(ns, r)
    theta = 2 * sinh / (cosh + ns.sqrt(cosh**2 + 8 * sinh**2))
    return ns.sqrt(1 - theta**2) * (cosh + theta * sinh) / 2


def mean_of_signs(ns: NumberSystem) -> Number:
    """Beta = E|g| = sqrt(2/pi)."""
    return ns.sqrt(2 / ns.pi)


def expected_gap(ns: NumberSystem, complexity: Number, steep: Number, m: Number) -> Number:
    """Above E sup (P - P_m) loss, for losses in [0, 1] that are `steep`-Lipschitz in outputs of so large a complexity.

    Three ghosts an example, and Gaussians for the choice among them.
    """
    return 2 * steep * complexity / _root_of_samples(ns, m)


def of_outputs(ns: NumberSystem, network: Network, scale: Number, gaussian: Number) -> Number:
    """The complexity of outputs, from G of the last block."""
    neurons = gaussian + mean_of_signs(ns) / 2
    outputs = scale * neurons
    if network.acts:
        outputs = hoelder(ns, outputs, _lengths(ns, network, gaussian, neurons))
    return network.readout * outputs


def _lengths(ns: NumberSystem, network: Network, gaussian: Number, neurons: Number) -> Number:
    """Complexity of half the squared lengths that the two projections of a network of one block divide by."""
    block, radius = network.blocks[0], network.radius
    before, values, total = radius * block.values_op, radius * block.values_fro, ns.number(0)
    if not bool(before <= 1):
        total = total + values**2 * gaussian
    if not bool(block.hidden_op * ns.minimum(ns.number(1), before) <= 1):
        squares = block.hidden_fro**2 * before * values * neurons
        hull = block.hidden_op * ns.minimum(
            block.hidden_op * (radius * block.values_columns) ** 2, block.hidden_fro * values**2
        )
        products = (1 + ns.sqrt(ns.number(2))) * gaussian + mean_of_signs(ns)
        total = total + ns.minimum(squares, hull * products / 2)
    return total


def _root_of_samples(ns: NumberSystem, m: Number) -> Number:
    """Sqrt(m) times the mean that the m lowest of 4m Gaussians are below 0 by, at least."""
    return ns.number(_LOWEST_QUARTER) * (1 - LEFT / m) * ns.sqrt(m)


def score_complexity(ns: NumberSystem, gaussian: Number) -> Number:
    """Psi: complexity of centred scores in the hull of products of two neurons."""
    half, beta = ns.number(1) / 2, mean_of_signs(ns)
    plain = half + ns.sqrt(ns.number(2))
    mixed = (plain + hoelder(ns, half, ns.number(1))) / 2
    return ns.minimum(plain * gaussian + beta / 2, mixed * gaussian + beta / 4)


def closed(ns: NumberSystem, network: Network) -> Number:
    """K1: the complexity of outputs."""
    sizes = sizes_of(ns, network, columns=False)
    beta = mean_of_signs(ns)
    fro, most = network.blocks[0].scores_fro * network.radius**2, sizes[0].half_range
    _, sinh = hyperbolic(ns, most)
    first = hoelder(ns, sinh, 2 * fro * kappa(ns, most))
    second = fro + hoelder(ns, excess(ns, most), fro * ns.expm1(most))
    gaussian = ns.sqrt(1 + ns.minimum(first, second) ** 2)
    for size in sizes[1:-1]:
        cosh, sinh = hyperbolic(ns, size.half_range)
        scores = kappa(ns, size.half_range) * size.hull * score_complexity(ns, gaussian)
        gaussian = ns.minimum(
            hoelder(ns, cosh * (gaussian + beta / 2), scores),
            gaussian + beta / 2 + hoelder(ns, sinh * (gaussian + beta / 4), scores),
        )
    return of_outputs(ns, network, sizes[-1].scale, gaussian)
