"""Amplitudes, beta and scales: the choice of numbers that makes the closed-form bound of a construction least.

The weights of a construction are F = clip(relu(Pi_1(y)) g'), y = V-values scaled by lam, g' = G g: the read-out is 1
and the projection of the last row is what makes the margin exactly 1. What is minimised is A1's capacity
(sum over matrices of (budget * gain)^(2/3) log^(1/3))^3 at margin 1, with gains |W_1|_op |W_V|_op for W_QK, |W_1|_op
for W_V and min(1, |W_V|_op) for W_1: the norms trade against each other through it. The result is verified elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from boundcalc.base.errors import NoSolution
from boundcalc.lab.represent.units import Sizes, Units, corners, levels

_SAMPLES = 17e6
"""Logarithms of the covers are taken at a million samples and sixteen ghosts each; they hardly move the optimum."""
_STRETCH = (1.0, 1.25, 1.6, 2.0, 2.6, 3.5)
"""Values may leave the unit ball by these factors before they are projected back."""
_SLACKS = (0.015, 0.03, 0.06, 0.12, 0.22, 0.35)
"""Parts of the slack a construction can bear, each of which fixes a beta to try."""
_STEPS = 70


@dataclass(frozen=True)
class Reading:
    """R1: s of T positions that attention selects with the scores beta (0 elsewhere), and how their bits are read.

    Attributes:
        s: selected bits.
        seq_len: T.
        shared: whether all bits share one coordinate.
        by_mean: whether the mean of the literals is read, or the bits one by one.
    """

    s: int
    seq_len: int
    shared: bool
    by_mean: bool

    @property
    def slackless(self) -> bool:
        """Whether nothing leaks into what is read."""
        return not self.shared or self.s == self.seq_len

    @property
    def readers(self) -> np.ndarray:
        """|sum_i a_i r_i| = |readers a| for the vectors r_i that read an input, at an amplitude and a mass of 1."""
        if not self.by_mean:
            return np.eye(self.s)
        return np.array([[1 / self.s if self.shared else 1 / math.sqrt(self.s)]])

    def slack(self, beta: float) -> float:
        """Upper bound of what the other positions add to an input that is read."""
        return 0.0 if self.slackless else (self.seq_len - self.s) * math.exp(-beta) / self.s

    def masses(self, beta: float) -> tuple[float, float]:
        """The attention of [CLS] to each selected position, and to itself."""
        one = 1 / (self.s + (self.seq_len - self.s + 1) * math.exp(-beta))
        return one, one * math.exp(-beta)

    def one(self, place: float, constant: float, beta: float) -> float:
        """The norm of the shortest vector that reads the constant 1, off the positions and the constant coordinate."""
        mass, cls = self.masses(beta)
        return 1 / math.hypot(place * math.sqrt(self.s) * mass, constant * (1 - cls))


@dataclass(frozen=True)
class Choice:
    """Numbers of a construction: values are the units' times `scale`, W_1 the units' weights times `gain`."""

    place: float
    bit: float
    constant: float
    beta: float
    scale: float
    gain: float
    units: Units
    capacity: float


Gains = list[tuple[float, float]]
"""Pairs (lam, G): the G that makes the margin 1 when the values of units are scaled by lam."""


def mean_gains(units: Units, slack: float, profile: Sequence[int]) -> Gains:
    """Gains from both ends of every level of the mean, and from the knots between, where the sum may turn."""
    places = levels(len(profile) - 1)
    signs = 2.0 * np.asarray(profile) - 1
    slopes = units.alpha[0]
    knots = -units.theta[slopes != 0] / slopes[slopes != 0]
    near = np.abs(knots[:, None] - places) <= slack
    inputs = np.concatenate([places - slack, places + slack, knots[near.any(1)]])
    return _gains(units, inputs[:, None], np.concatenate([signs, signs, signs[near.argmax(1)[near.any(1)]]]))


def bit_gains(units: Units, table: Sequence[int]) -> Gains:
    """Gains from every corner: bits kept apart are read exactly."""
    return _gains(units, corners(len(table).bit_length() - 1), 2.0 * np.asarray(table) - 1)


def _gains(units: Units, inputs: np.ndarray, signs: np.ndarray) -> Gains:
    """Gains from inputs (n, inputs) and signs (n,), with lam = stretch / largest norm of the pre-activations."""
    values = inputs @ units.alpha + units.theta
    signed = signs * (np.maximum(values, 0.0) @ units.weight)
    sizes = np.sqrt((values**2).sum(1))
    scales = [stretch / float(sizes.max()) for stretch in _STRETCH]
    margins = [float((signed * lam / np.maximum(1.0, lam * sizes)).min()) for lam in scales]
    return [(lam, 1 / margin) for lam, margin in zip(scales, margins, strict=True) if margin > 0]


@dataclass
class Tuner:
    """One way to represent a function.

    Attributes:
        view: what is selected.
        fit: (slack, sizes) -> units.
        gains: (units, slack) -> gains.
    """

    view: Reading
    fit: Callable[[float, Sizes], Units]
    gains: Callable[[Units, float], Gains]

    def best(self) -> Choice:
        """The numbers of least capacity found."""
        choices: list[Choice] = []
        for beta in self._betas():
            slack = self.view.slack(beta)
            start = np.array([0.0, -0.7, beta])
            with suppress(NoSolution):
                for _ in range(2):  # the units depend on the norms that read their inputs, and these on the amplitudes
                    choices.append(choice := self._settle(start, beta, slack))
                    bit, constant = math.log(choice.bit / choice.place), math.log(choice.constant / choice.place)
                    start = np.array([bit, constant, choice.beta])
        if not choices:
            raise NoSolution("no amplitudes were found")
        return min(choices, key=lambda choice: choice.capacity)

    def _betas(self) -> list[float]:
        """Strengths to try: those at which the slack is a given part of what a mean of s bits can bear."""
        s, others = self.view.s, self.view.seq_len - self.view.s + 1
        if self.view.slackless:
            guess = math.log(others / s) if others > s else 0.0
            return [max(0.0, guess + math.log(max(2.0, guess + math.log(guess + 2))))]
        bearable = 1 / s if self.view.by_mean else 1.0
        leak = (self.view.seq_len - s) / s
        return [max(0.0, math.log(leak / (part * bearable))) for part in _SLACKS]

    def _settle(self, start: np.ndarray, beta: float, slack: float) -> Choice:
        """The best amplitudes (and beta, where nothing leaks) for the units fitted at the given ones."""
        from scipy.optimize import minimize

        def strength(x: np.ndarray) -> float:
            return max(0.0, float(x[2])) if self.view.slackless else beta

        units = self.fit(slack, self._sizes(*_amplitudes(start), strength(start)))
        gains = self.gains(units, slack)
        if not gains:
            raise NoSolution("the units do not separate the values")

        def cost(x: np.ndarray) -> float:
            return min(self._capacities(_amplitudes(x), strength(x), units, gains))

        start = start if self.view.slackless else start[:2]
        optimum = minimize(cost, start, method="Nelder-Mead", options={"maxfev": _STEPS, "fatol": 1e-4}).x
        amplitudes, beta = _amplitudes(optimum), strength(optimum)
        reached, gain = min(zip(self._capacities(amplitudes, beta, units, gains), gains, strict=True))
        return Choice(*amplitudes, beta, *gain, units, reached)

    def _sizes(self, place: float, bit: float, constant: float, beta: float) -> Sizes:
        """Norms of the vectors that read an input and the constant 1."""
        longest = float(np.linalg.norm(self.view.readers, axis=0).max())
        return longest / (bit * self.view.masses(beta)[0]), self.view.one(place, constant, beta)

    def _capacities(
        self, amplitudes: tuple[float, float, float], beta: float, units: Units, gains: Gains
    ) -> list[float]:
        """The capacity at every (lam, G)."""
        place, bit, constant = amplitudes
        reading = self.view.readers / (bit * self.view.masses(beta)[0])
        op, two_one = _value_sizes(reading, self.view.one(place, constant, beta), units)
        weight = math.sqrt(float(units.weight @ units.weight))
        keys = beta / place * math.sqrt(self.view.s)
        points = (1, units.theta.size, self.view.seq_len + 1)
        logs = [math.log(2 * _SAMPLES * number + 1) ** (1 / 3) for number in points]
        return [_capacity(keys, lam * op, lam * two_one, strength * weight, *logs) for lam, strength in gains]


def _value_sizes(reading: np.ndarray, one: float, units: Units) -> tuple[float, float]:
    """|W_V|_op and |W_V|_21 of the value matrix that gives units their inputs."""
    columns = np.empty((len(reading) + 1, units.theta.size))
    columns[:-1], columns[-1] = reading @ units.alpha, one * units.theta
    op = math.sqrt(max(0.0, float(np.linalg.eigvalsh(columns @ columns.T)[-1])))
    return op, float(np.sqrt((columns**2).sum(0)).sum())


def _amplitudes(x: np.ndarray) -> tuple[float, float, float]:
    """(place, bit, constant) of squares that sum to 1, from two logarithms of their proportions."""
    bit, constant = (math.exp(min(8.0, max(-8.0, float(v)))) for v in x[:2])
    size = math.sqrt(1 + bit**2 + constant**2)
    return 1 / size, bit / size, constant / size


def _capacity(
    keys: float, value_op: float, value_21: float, w_1: float, one: float, values: float, pairs: float
) -> float:
    """A1's capacity of one block with |W_QK|_F = keys, a scalar W_1 and a read-out of norm 1, at margin 1.

    The last three are cube roots of logarithms of covers: of the read-out and W_1, of W_V, of W_QK.
    """
    power = 2 / 3
    total = one + one * (w_1 * min(1.0, value_op)) ** power
    return (total + values * (w_1 * value_21) ** power + pairs * (w_1 * value_op * keys) ** power) ** 3
