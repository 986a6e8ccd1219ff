"""Checked values of attention as inference: parameters found in floats, values in intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from flint import arb

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float
from boundcalc.base.numbers import FLOAT, Number, golden
from boundcalc.base.value import Value
from boundcalc.lab.latent import formulas
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.network import Network, Piece
from boundcalc.statements.targets import Target

_COVERS = ("T4", "T5", "T8", "T9", "T10")
"""Volumetric and low-rank covers, and those of offsets, gains and token tables."""


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
        value = formulas.excess_risk(INTERVAL, value, log_inverse_delta, m)
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
            raise Unsupported(
                Refusal(
                    "X5",
                    "learned positions, whose number grows with T",
                    "fixed positions, or none",
                    _FIX,
                )
            )
        costs = [cost for target in member.targets for cost in _covers(target, eps)]
        if not costs:
            raise Unsupported(Refusal("X5", f"a piece {piece.key} without a uniform cover", "a spectral norm budget"))
        total = total + member.multiplicity * INTERVAL.minimum(*costs)
    return total


_FIX = "Use positions='fixed' or 'none'."


def _covers(target: Target, eps: Number) -> list[Number]:
    counts: list[Number] = []
    for name in _COVERS:
        lemma = LEMMAS[name]
        if lemma.uniform and lemma.applies(target) is None:
            y = lemma.reach(target) / eps
            covered = certainly_le(y, 1)
            counts.append(INTERVAL.number(0) if covered else lemma.closed(INTERVAL, y, target, INTERVAL.number(1)))
    return counts


_STEPS = 80
_WIDEST = 60.0
"""Tilts and ridges are searched for within e^(+-30) of where they are expected."""


def _least(cost: Callable[[float], float], start: float) -> float:
    """A positive number that nearly minimises a unimodal cost, by golden section in its logarithm."""

    def at(x: float) -> float:
        try:
            value = cost(start * math.exp(x))
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.inf
        return value if value > 0 else math.inf

    grid = [_WIDEST * (i / 60 - 0.5) for i in range(61)]
    costs = [at(x) for x in grid]
    best = min(range(len(grid)), key=costs.__getitem__)
    low, high = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    return start * math.exp(golden(at, low, high, _STEPS))


def _value(x: arb, always: float = math.inf) -> float:
    """The upper end of an enclosure; where there is none, what holds always."""
    return min(upper_float(x), always) if x.is_finite() else always


def _common(n: Any, delta: Any, most: Any) -> tuple[int, float, float, float, arb]:
    """The number of pairs, delta and M; log(2/delta) as a float and as a ball."""
    validate.fraction("delta", delta, ends=False)
    logs = math.log(2 / delta), (2 / arb(delta)).log()
    return validate.size("L", n), delta, validate.positive("M", most), *logs


def cme_bound(
    n: int,
    *,
    source: float,
    smoothness: float = 1.0,
    kappa: float = 1.0,
    most: float = 1.0,
    delta: float = 0.05,
    reg: float | None = None,
) -> Value:
    """X3: error of CME attention over n pairs in RKHS norm; the regularisation is optimised unless given."""
    n, delta, most, in_floats, exact = _common(n, delta, most)
    validate.positive("source norm |g|", source, zero=True)
    validate.positive("kappa", kappa)
    if not 0.5 < smoothness <= 1.5:
        need = "1/2 < r <= 3/2 (above 3/2 ridge regression saturates: use r = 3/2)"
        raise Unsupported(Refusal("X3", f"smoothness r = {smoothness:g}", need))
    if reg is None and source == 0:
        raise InvalidSetting("reg needs a value where |g| = 0: the bound falls for ever as it grows")
    inputs = {"L": n, "source": source, "smoothness": smoothness, "kappa": kappa, "M": most, "delta": delta, "reg": reg}
    rest = (smoothness, kappa, most, source)

    def at(x: float, tilt: float | None = None) -> float:
        return formulas.cme_error(FLOAT, n, x, *rest, in_floats, tilt)

    chosen = _least(at, 1.0) if reg is None else validate.positive("reg", reg)
    variance, _ = formulas.cme_summands(FLOAT, chosen, *rest)
    tilt = _least(lambda x: at(chosen, x), math.sqrt(2 * in_floats / (n * variance)))
    value = min(_value(formulas.cme_error(INTERVAL, arb(n), chosen, *rest, exact, x)) for x in (None, arb(tilt)))
    return _made("X3", "sharp", value, inputs, {"reg": chosen, "tilt": tilt}, "|f_hat - f*| in RKHS norm")


def _made(
    name: str,
    form: str,
    value: float,
    candidates: Mapping[str, Any],
    chosen: Mapping[str, float],
    quantity: str,
    always: float | None = None,
) -> Value:
    inputs = {key: item for key, item in candidates.items() if item is not None}
    return Value.of(name, quantity, "bound", value, form, inputs, chosen, always)


def key_bound(weights: float, power: float, *, noise: float, norm: float, delta: float = 0.05) -> Value:
    """X3k: error at one query given the keys, from |alpha|_2 and the distance P(q) they leave; |v - f*(k)| <= noise."""
    inputs = {"alpha": weights, "power": power, "noise": noise, "norm": norm}
    for name, x in inputs.items():
        validate.positive(name, x, zero=True)
    *_, exact = _common(1, delta, 1.0)
    alpha, distance, spread, size = (arb(float(x)) for x in inputs.values())
    value = formulas.cme_error_given_keys(INTERVAL, alpha, spread, distance, size, exact)
    return _made("X3k", "bounded", _value(value), inputs | {"delta": delta}, {}, "|f_hat(q) - f*(q)|")


def softmax_bound(n: int, *, tau: float, most: float = 1.0, delta: float = 0.05, sphere: int | None = None) -> Value:
    """X4: softmax attention over n pairs against its limit, keys and query of norm at most 1.

    `sphere` = p says that the keys are uniform on the unit sphere of R^p, whose moments are then used.
    """
    n, delta, most, in_floats, exact = _common(n, delta, most)
    validate.positive("temperature tau", tau)
    if sphere is None:
        form, moments = "any keys", formulas.softmax_moments(INTERVAL, (2 / arb(tau)).exp())
    else:
        form, moments = "uniform sphere", _sphere_moments(tau, validate.size("p", sphere, least=2))
    second, spread, top = (float(x.upper()) for x in moments)
    always = limit = upper_float(2 * arb(most))  # two means of values are never further apart
    chosen = {}
    if math.isfinite(top):
        tilt = _least(
            lambda x: formulas.self_normalised_error(FLOAT, n, second, spread, top, in_floats, x),
            formulas.default_tilt(FLOAT, n, spread, in_floats),
        )
        value = arb(most) * formulas.self_normalised_error(INTERVAL, arb(n), *moments, exact, arb(tilt))
        limit = _value(value, always)
        chosen = {} if limit == always else {"tilt": tilt}
    inputs = {"L": n, "tau": tau, "M": most, "delta": delta, "sphere": sphere}
    return _made("X4", form, limit, inputs, chosen, "|attention - its limit|", always)


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
