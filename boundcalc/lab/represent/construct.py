"""R1-R5: from a sparse function and T to certified weights, of the construction with the least bound."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.intervals import lower_float
from boundcalc.engine.solve import Solution, solve
from boundcalc.lab.represent._certify import Certified, Hint, certify, sums
from boundcalc.lab.represent._network import Encoding, Network
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.tune import Choice, Reading, Tuner, bit_gains, mean_gains
from boundcalc.lab.represent.units import MOST_CORNERS, fit_bits, fit_mean, ramp_units

MARGIN = 1.0
"""Constructions are scaled to a certified margin of 1."""
GAMMA = MARGIN * (1 - 1e-5)
"""What bounds take as margin: an example whose margin is gamma itself would count as an error (G0), and the
network that a risk supposes is built in floats."""
RISK, DELTA = 0.05, 0.01
"""Constructions are ranked by the samples that bring the risk bound to 0.05 with probability 0.99."""
_LONGEST = 1 << 20
_MOST_FITTED_LEVELS = 80
"""Bits of a symmetric function up to which hinges are chosen by a linear programme; beyond, a ramp per change (parity's
norms are then 3% larger)."""
_MOST_SYMMETRIC = 1024
_KEPT_BITS = 26


@dataclass(frozen=True)
class Construction:
    """Weights for one function.

    Attributes:
        kind: which construction.
        function: what is computed, of the bits it depends on.
        network: the weights.
        beta: strength of the attention.
        hint: in the constructions by a mean, how the hidden units depend on it: the certificate checks it.
    """

    kind: str
    function: SparseFunction
    network: Network
    beta: float
    hint: Hint | None = None

    def certify(self, margin: float | None = None) -> Certified:
        """What can be shown of all 2^T inputs, from the arrays; refuses a margin below the requested one."""
        certified = certify(self.network, self.function, self.hint)
        return certified if margin is None else certified.require(margin)

    def normalised(self) -> Construction:
        """The same with W_1 as small as a certified margin of 1 allows."""
        built = self
        for guard in (2.0**-40, 1e-9, 1e-7):  # radii of enclosures are rounded up, so a second look may be needed
            cases, _ = sums(built.network, self.function, self.hint)
            margin = min(lower_float(low) for _, low in cases)
            if margin <= 0 or (margin >= 1 and built is not self):
                break
            w_1 = built.network.w_1 * ((1 + guard) / margin)
            built = replace(built, network=replace(built.network, w_1=w_1))
        return built


def possible_kinds(function: SparseFunction) -> list[str]:
    """The constructions a minimised function has.

    "mean": hinges of the mean of the literals of a symmetric function, whose bits share one coordinate unless some
    count negated; "corners": hinges of the bits kept apart (any function of few bits).
    """
    possible = {"mean": function.symmetric is not None, "corners": function.table and function.arity <= MOST_CORNERS}
    return [kind for kind, fits in possible.items() if fits]


def usable(function: SparseFunction, seq_len: int) -> SparseFunction:
    """The function of the bits it depends on; refuses what cannot be represented among so many bits."""
    outside = [v for v in function.variables if v >= seq_len]
    if outside:
        raise InvalidSetting(
            f"bit x{outside[0]} is out of range: with T = {seq_len} bits are x0 to x{seq_len - 1}; "
            f"choose T of at least {max(outside) + 1}"
        )
    smallest = function.minimised()
    if smallest.constant:
        value = (smallest.table or smallest.profile)[0]
        raise InvalidSetting(f"the function is constant ({value} for every input): give one that depends on a bit")
    if smallest.symmetric is not None and smallest.arity > _MOST_SYMMETRIC:
        raise InvalidSetting(
            f"s = {smallest.arity} is too large: a symmetric function takes up to 2s hidden units, and its certificate "
            f"up to 2s^2 of their values; at most s = {_MOST_SYMMETRIC} is offered"
        )
    if smallest.symmetric is None and smallest.arity > MOST_CORNERS:
        raise InvalidSetting(
            f"s = {smallest.arity} is too large for a function that is not symmetric: it takes up to 2^(s-1) hidden "
            f"units, norms that grow like 2^s and a certificate of 2^s cases; at most s = {MOST_CORNERS} is offered"
        )
    return smallest


def construct(function: SparseFunction, seq_len: int, kind: str) -> Construction:
    """The weights of one construction of a `usable` function, at the numbers of least capacity, margin about 1."""
    symmetric, table, s = function.symmetric, function.table, function.arity
    if kind == "corners":
        signs, view = None, Reading(s, seq_len, shared=False, by_mean=False)
        tuner = Tuner(view, lambda _, sizes: fit_bits(table, sizes), lambda units, _: bit_gains(units, table))
    elif symmetric is None:
        raise InvalidSetting(f"construction {kind!r} is for symmetric functions; got {function.describe()}")
    else:
        signs, profile = np.where(symmetric.negated, -1.0, 1.0), symmetric.profile
        view = Reading(s, seq_len, shared=bool((signs > 0).all()), by_mean=True)
        units = ramp_units if s > _MOST_FITTED_LEVELS else fit_mean
        tuner = Tuner(view, partial(units, profile), partial(mean_gains, profile=profile))
    choice = tuner.best()
    return build(function, view, signs, kind, choice).normalised()


def _short(x: np.ndarray | float) -> np.ndarray:
    """Rounded to 26 bits: products of two such numbers are exact floats, so outer products have rank one exactly."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype=float))
    return np.ldexp(np.round(np.ldexp(mantissa, _KEPT_BITS)), exponent - _KEPT_BITS)


def build(function: SparseFunction, view: Reading, signs: np.ndarray | None, kind: str, choice: Choice) -> Construction:
    """Arrays from numbers."""
    encoding = Encoding.of(view.seq_len, view.shared, choice.place, choice.bit, choice.constant)
    chosen, s = list(function.variables), view.s
    mass, cls = view.masses(choice.beta)
    own = np.zeros((s, view.seq_len))
    own[np.arange(s), chosen] = 1.0
    unit = 1 / (encoding.bit * mass)
    if signs is None:
        bits = own * unit
    else:
        bits = np.full((1, 1), unit / s * signs[0]) if view.shared else (signs @ own)[None] * (unit / s)
    # The shortest (x, y) for which x in the coordinates of the chosen positions, and y in the constant one, read 1.
    along, beside = encoding.place * s * mass / math.sqrt(s), encoding.constant * (1 - cls)
    size = along**2 + beside**2
    units = choice.units
    bits, alpha, theta = _short(bits), _short(units.alpha * choice.scale), _short(units.theta * choice.scale)
    w_q, w_k, w_v = np.zeros(encoding.width), np.zeros(encoding.width), np.zeros((encoding.width, theta.size))
    w_q[encoding.cls_index] = 1.0
    w_k[chosen] = choice.beta / encoding.place
    w_v[encoding.bit_block] = bits.T @ alpha
    w_v[chosen] = np.outer(np.full(s, _short(along / (size * math.sqrt(s)))), theta)
    w_v[encoding.constant_index] = _short(beside / size) * theta
    network = Network(encoding, w_q, w_k, w_v, (units.weight * choice.gain)[:, None])
    return Construction(kind, function, network, choice.beta, Hint(alpha[0], bits[0]) if view.by_mean else None)


@dataclass(frozen=True)
class Representation:
    """A certified construction, and the others it was preferred to.

    Attributes:
        construction: the weights.
        certified: what was shown of all inputs.
        needed: the smallest m at which the best checked risk bound of the class with these norms is at most 0.05.
        others: kind -> that m, for the constructions not taken.
    """

    construction: Construction
    certified: Certified
    needed: Solution
    others: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays."""
        network, function = self.construction.network, self.construction.function
        return {
            "function": function.describe(),
            "support": list(function.variables),
            "construction": self.construction.kind,
            "beta": self.construction.beta,
            "hidden_units": len(network.w_1),
            "T": network.seq_len,
            "encoding": asdict(network.encoding),
            "norms": network.norms.to_json()["budgets"],
            "certificate": self.certified.to_json(),
            "samples": {"risk": RISK, "delta": DELTA, "m": self.needed.value, "others": self.others},
        }


def represent(function: SparseFunction, seq_len: int) -> Representation:
    """Certified weights for a function of some of T bits.

    All constructions the function allows are built; the one whose class needs the fewest samples is taken.
    """
    T = validate.size("T", seq_len, most=_LONGEST)
    smallest = usable(function, T)
    candidates: list[tuple[float, Construction, Certified, Solution]] = []
    failure = NoSolution("no construction was found")
    for name in possible_kinds(smallest):
        try:
            built = construct(smallest, T, name)
        except NoSolution as error:
            failure = error
            continue
        certified = built.certify(MARGIN)
        needed = solve(built.network.setting(GAMMA, delta=DELTA), "m", RISK, quantity="risk")
        candidates.append((needed.value, built, certified, needed))
    if not candidates:
        raise failure
    best = min(candidates, key=lambda entry: entry[0])
    others = {built.kind: m for m, built, *_ in candidates if built.kind != best[1].kind}
    return Representation(*best[1:], others)
