"""X3k, X4 and X5: checked values of attention as inference. X3 and X4 for any keys are formulas of `theorems`."""

from __future__ import annotations

import math
from collections.abc import Callable

from flint import arb

from boundcalc.base import validate
from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float
from boundcalc.base.numbers import FLOAT, Number, NumberSystem, golden
from boundcalc.base.value import Value
from boundcalc.layers.facts import Target
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.network import Network, Piece

_COVERS = ("T4", "T5", "T8", "T9", "T10")
"""Volumetric and low-rank covers, and those of offsets, gains and token tables."""


def key_bound(weights: float, power: float, *, noise: float, norm: float, delta: float = 0.05) -> float:
    """X3k: error at one query given the keys, from |alpha|_2 and the distance P(q) they leave; |v - f*(k)| <= noise."""
    validate.fraction("delta", delta, ends=False)
    for name, x in (("|alpha|", weights), ("P(q)", power), ("noise", noise), ("|f*|", norm)):
        validate.positive(name, x, zero=True)
    return upper_float(arb(noise) * weights * (2 * (2 / arb(delta)).log()).sqrt() + arb(norm) * power)


# -- X4, keys uniform on the unit sphere


def softmax_bound(n: int, p: int, *, tau: float, most: float = 1.0, delta: float = 0.05) -> float:
    """X4: softmax attention over n pairs, keys uniform on the unit sphere of R^p, values up to `most`, to its limit."""
    validate.size("L", n)
    validate.size("p", p, least=2)
    for name, x in (("temperature tau", tau), ("M", most)):
        validate.positive(name, x)
    validate.fraction("delta", delta, ends=False)
    always = 2 * arb(most)  # two means of values are never further apart
    moments, log = _sphere_moments(tau, p), (2 / arb(delta)).log()
    second, spread, top = (float(x.upper()) for x in moments)
    if math.isinf(top):
        return upper_float(always)
    tilt = _least(
        lambda x: self_normalised_error(FLOAT, n, second, spread, top, float(log), x),
        math.sqrt(2 * float(log) / (n * spread)),
    )
    value = arb(most) * self_normalised_error(INTERVAL, arb(n), *moments, log, arb(tilt))
    return upper_float(INTERVAL.minimum(value, always) if value.is_finite() else always)


def self_normalised_error(
    ns: NumberSystem, n: Number, second: Number, spread: Number, top: Number, log_term: Number, tilt: Number
) -> Number:
    """X4: the least t with -tilt t + tilt^2/2 (psi spread + 2t sqrt(second spread) + t^2 second) = -log(2/delta)/n.

    psi = 2 (e^b - 1 - b)/b^2 at b = 2 tilt top, for values of norm at most 1; any tilt above 0 is valid. With W = E w
    and u = v - mu, E w^2 <= second W^2, E w^2 |u|^2 <= spread W^2 and w <= top W.
    """
    b = 2 * tilt * top
    psi = 2 * (ns.expm1(b) - b) / b**2
    a = tilt**2 * second / 2
    half = (tilt - tilt**2 * ns.sqrt(second * spread)) / 2
    c = tilt**2 * spread * psi / 2 + log_term / n
    return c / (half + ns.sqrt(half**2 - a * c))


def _least(cost: Callable[[float], float], start: float) -> float:
    """A positive number that nearly minimises a unimodal cost, by golden section in its logarithm."""

    def at(x: float) -> float:
        try:
            value = cost(start * math.exp(x))
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.inf
        return value if value > 0 else math.inf

    best = min(range(-30, 31), key=at)
    return start * math.exp(golden(at, best - 1, best + 1, 80))


def _sphere_mass(kappa: arb, p: int) -> arb:
    """E exp(kappa <q, k>) for k uniform on the unit sphere of R^p: 0F1(; p/2; kappa^2/4)."""
    return (kappa**2 / 4).hypgeom_0f1(arb(p) / 2)


def _sphere_moments(tau: float, p: int) -> tuple[arb, arb, arb]:
    """(second, spread, top) of X4; E w^2|u|^2 is at most max w E[w|u|^2], E[w|u|^2] <= W, and |u| <= 2."""
    kappa = 1 / arb(tau)
    mass = _sphere_mass(kappa, p)
    second, top = _sphere_mass(2 * kappa, p) / mass**2, kappa.exp() / mass
    return second, INTERVAL.minimum(top, 4 * second), top


def sphere_shrinkage(tau: float, p: int) -> tuple[float, float]:
    """(lower, upper) of A with mu(q) = A z q: softmax attention's limit for v = z k, keys uniform on the sphere of R^p.

    A = I_{p/2}(1/tau)/I_{p/2-1}(1/tau); the limit is short of the conditional mean z q by 1 - A.
    """
    kappa = 1 / arb(validate.positive("temperature tau", tau))
    ratio = kappa / p * _sphere_mass(kappa, p + 2) / _sphere_mass(kappa, p)
    return float(ratio.lower()), upper_float(ratio)


# -- X5: one uniform cover of every piece at scale 1/m, so that T does not enter


def learning_bound(setting: Setting, *, excess: bool = False) -> Value:
    """The generalization gap of every model of the setting, or (`excess`) an empirical minimiser's excess risk.

    The loss is in [0, 1]: the setting's ramp, or one with its Lipschitz constant; for masked tokens its mean over them.
    """
    lowered = Network(setting, INTERVAL)
    m = INTERVAL.number(setting.sample.n_train)
    count = INTERVAL.number(0)
    for piece in lowered.pieces:
        count = count + _cost(piece, 1 / (len(lowered.pieces) * m * piece.gain))
    log_inverse_delta = INTERVAL.log(1 / INTERVAL.number(setting.sample.delta))
    value = gap.gap_uniform_single(INTERVAL, 1 / m, count, log_inverse_delta, m)
    quantity = "generalization gap"
    if excess:
        value = value + (log_inverse_delta / (2 * m)).sqrt()
        quantity = "excess risk of an empirical minimiser, with probability 1 - 2 delta"
    inputs = {"m": setting.sample.n_train, "T": setting.architecture.seq_len, "delta": setting.sample.delta}
    chosen = {"entropy": upper_float(count), "pieces": float(len(lowered.pieces))}
    seen = setting.norms.measured or setting.sample.measured  # not corrected for here
    kind = "estimate" if seen else "bound"
    form = "excess" if excess else "gap"
    return Value.of("X5", quantity, kind, upper_float(value), form, inputs, chosen, 1.0)


def _cost(piece: Piece, eps: Number) -> Number:
    total = INTERVAL.number(0)
    for member in piece.members:
        if piece.key.startswith("positions"):
            got, fix = "learned positions, whose number grows with T", "Use positions='fixed' or 'none'."
            raise Unsupported(Refusal("X5", got, "fixed positions, or none", fix))
        costs = [cost for target in member.targets for cost in _covers(target, eps)]
        if not costs:
            raise Unsupported(Refusal("X5", f"a piece {piece.key} without a uniform cover", "a spectral norm budget"))
        total = total + member.multiplicity * INTERVAL.minimum(*costs)
    return total


def _covers(target: Target, eps: Number) -> list[Number]:
    counts: list[Number] = []
    for name in _COVERS:
        lemma = LEMMAS[name]
        if lemma.uniform and lemma.applies(target) is None:
            y = lemma.reach(target) / eps
            covered = certainly_le(y, 1)
            counts.append(INTERVAL.number(0) if covered else lemma.closed(INTERVAL, y, target, INTERVAL.number(1)))
    return counts
