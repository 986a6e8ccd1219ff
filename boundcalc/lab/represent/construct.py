"""R2, R3: from a sparse function to explicit weights, in the ways it can be represented."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import lower_float
from boundcalc.lab.represent.certify import Certified, Hint, cases, settle
from boundcalc.lab.represent.encoding import Encoding
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.network import Block, Network
from boundcalc.lab.represent.positions import Positions
from boundcalc.lab.represent.selection import Readers, Selected, Selection, short
from boundcalc.lab.represent.tune import Cases, Choice, Tuner
from boundcalc.lab.represent.units import MOST_CORNERS, Units, fit_bits, fit_mean, ramp_units

_MOST_FITTED_LEVELS = 80
"""Bits of a symmetric function up to which hinges are chosen by a linear programme; beyond, a ramp per change (parity's norms
are then 3% larger)."""
_MOST_SYMMETRIC = 1024
KINDS = ("threshold", "mean", "signed mean", "corners")
"""The constructions: a threshold of the mean (monotone symmetric functions); hinges of the mean of bits in one shared
coordinate; the same where bits are kept apart, so that some may count negated; hinges of the bits kept apart (any f)."""


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
        """What can be shown of all 2^T inputs, from the arrays; refuses a margin below the one asked for."""
        network = self.network
        network.require(1)
        if network.readout.shape != (1,):
            raise CertificateError(f"the last block must have one output, got {network.readout.shape[0]}")
        found, masses = cases(network.encoding, network.blocks[0], self.function, hint=self.hint)
        method = "patterns" if self.hint is None else "levels"
        certified = settle(found, masses, float(network.readout[0]), method, network.seq_len)
        return certified if margin is None else certified.require(margin)

    def normalised(self) -> Construction:
        """The same with W_1 as small as a certified margin of 1 allows."""
        built = self
        for guard in (2.0**-40, 1e-9, 1e-7):  # radii of enclosures are rounded up, so a second look may be needed
            block = built.network.blocks[0]
            found, _ = cases(built.network.encoding, block, self.function, hint=self.hint)
            margin = min(lower_float(case.least[0]) for case in found)
            if margin <= 0 or (margin >= 1 and built is not self):
                break
            larger = replace(block, w_1=block.w_1 * ((1 + guard) / margin))
            built = replace(built, network=replace(built.network, blocks=(larger,)))
        return built

    def with_beta(self, factor: float) -> Construction:
        """The same weights but for the attention's strength: for trying what a certificate refuses."""
        return replace(self, network=self.network.with_keys(factor), beta=self.beta * factor)


def possible_kinds(function: SparseFunction) -> list[str]:
    """The constructions a minimised function has."""
    found: list[str] = []
    symmetric = function.symmetric
    if symmetric is not None:
        if symmetric.changes == 1:
            found.append("threshold")
        found.append("signed mean" if any(symmetric.negated) else "mean")
        if not any(symmetric.negated):
            found.append("signed mean")
    if function.table and function.arity <= MOST_CORNERS:
        found.append("corners")
    return found


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
        raise InvalidSetting(
            f"the function is constant ({value} for every input), so there is nothing to select or to learn; "
            f"give one that depends on a bit"
        )
    if smallest.symmetric is not None and smallest.arity > _MOST_SYMMETRIC:
        raise InvalidSetting(
            f"s = {smallest.arity} is too large: a symmetric function takes up to 2s hidden units, and its certificate up to "
            f"2s^2 of their values; at most s = {_MOST_SYMMETRIC} is offered"
        )
    if not smallest.table or smallest.arity <= MOST_CORNERS or smallest.symmetric is not None:
        return smallest
    raise InvalidSetting(
        f"s = {smallest.arity} is too large for a function that is not symmetric: it takes up to 2^(s-1) hidden units, "
        f"norms that grow like 2^s and a certificate of 2^s cases; at most s = {MOST_CORNERS} is offered"
    )


def construct(function: SparseFunction, positions: Positions, kind: str) -> Construction:
    """The weights of one construction of a `usable` function, at the numbers of least capacity, margin about 1."""
    view, tuner = make_tuner(function, Selection(positions, function.variables), kind)
    return build(function, view, kind, tuner.best()).normalised()


def literal_signs(function: SparseFunction) -> np.ndarray:
    """+1 for a bit, -1 for a negated one, of a symmetric function."""
    symmetric = function.symmetric
    if symmetric is None:
        raise InvalidSetting(f"this construction is for symmetric functions; got {function.describe()}")
    return np.where(symmetric.negated, -1.0, 1.0)


def make_tuner(
    function: SparseFunction, selection: Selection, kind: str, *, most: float | None = None
) -> tuple[Selected, Tuner]:
    """What is selected, and how a construction's numbers are to be found.

    `most`: values on the two sides of 0 stay within [1, most] of each other, where later layers read them.
    """
    if kind == "corners":
        table = function.table
        view = Selected(selection, shared=False, signs=None)
        fit = partial(fit_bits, table, most=most)
        return view, Tuner(view, fit, lambda units, slack: Cases.of_bits(units, table, slack))
    signs = literal_signs(function)
    view = Selected(selection, shared=bool((signs > 0).all()) and kind != "signed mean", signs=signs)
    profile = function.symmetric.profile  # type: ignore[union-attr]

    def fit_profile(slack: float, sizes: tuple[float, float]) -> Units:
        if kind == "threshold":
            return threshold_units(profile, slack)
        if most is None and function.arity > _MOST_FITTED_LEVELS:
            return ramp_units(profile, slack, sizes)
        return fit_mean(profile, slack, sizes, most)

    return view, Tuner(view, fit_profile, lambda units, slack: Cases.of_mean(units, profile, slack))


def threshold_units(profile: Sequence[int], slack: float) -> Units:
    """The line through 0 between the two levels where the value changes, as the ReLUs of it and of its negative.

    The two columns of the value matrix are each other's negatives: it has rank one.
    """
    s = len(profile) - 1
    changes = [h for h in range(s) if profile[h] != profile[h + 1]]
    if len(changes) != 1:
        raise InvalidSetting("a threshold needs a profile that changes once")
    middle = (2 * changes[0] + 1 - s) / s
    margin = 1 / s - slack
    sign = 1.0 if profile[-1] else -1.0
    size = 1 / math.sqrt(margin)
    return Units(
        size * np.array([[1.0, -1.0]]), size * np.array([-middle, middle]), sign * size * np.array([1.0, -1.0])
    )


def build(function: SparseFunction, view: Selected, kind: str, choice: Choice) -> Construction:
    """Arrays from numbers."""
    selection = view.selection
    encoding = Encoding.of(selection.positions, view.shared, choice.place, choice.bit, choice.constant)
    readers = Readers.of(encoding, selection, choice.beta, view.signs)
    units = choice.units.scaled(choice.scale)
    alpha, theta = short(units.alpha), short(units.theta)
    w_k = np.zeros((1, encoding.width))
    w_k[0, encoding.place_block] = choice.beta / encoding.place * selection.total
    w_q = np.zeros((1, encoding.width))
    w_q[0, encoding.cls_index] = 1.0
    w_v = np.zeros((1, encoding.width, units.count))
    w_v[0, encoding.bit_block] = readers.bits.T @ alpha
    w_v[0, encoding.place_block] = np.outer(readers.place, theta)
    w_v[0, encoding.constant_index] = readers.constant * theta
    block = Block(w_q, w_k, w_v, (units.weight * choice.gain)[:, None])
    hint = Hint(alpha[0], readers.bits[0]) if view.by_mean else None
    return Construction(kind, function, Network(encoding, (block,), np.ones(1)), choice.beta, hint)
