"""Hidden units: which ReLUs of the selected bits, with which weights, have the sign of a Boolean function.

A unit is relu(<alpha, x> + theta) of an input x that is either the mean of the s literals (+-1), known to within
`slack`, or the s bits themselves (+-1), each known to within `slack`. The weights g are found by linear programming:
least sum |g| |v|, v the column of the value matrix a unit needs, under the condition f(x) sum g relu >= 1 for every
admissible x. Nothing here is trusted: the certificate looks at the weights alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from boundcalc.base.errors import InvalidSetting, NoSolution

_MOST_FITTED = 6
"""Bits for which all subcubes are offered to the linear programme; beyond, one unit per corner."""
MOST_CORNERS = 10
_NEGLIGIBLE = 1e-9
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Units:
    """k hidden units and their weights.

    Attributes:
        alpha: (inputs, k): inputs is 1 for functions of the mean, else s.
        theta: (k,).
        weight: (k,).
    """

    alpha: np.ndarray
    theta: np.ndarray
    weight: np.ndarray

    @property
    def count(self) -> int:
        """K."""
        return self.theta.size

    def balanced(self, sizes: np.ndarray) -> Units:
        """Each unit scaled so that its column of the value matrix (of the given norms) is as long as its weight."""
        scale = np.sqrt(np.abs(self.weight) / sizes)
        return Units(self.alpha * scale, self.theta * scale, self.weight / scale)

    def scaled(self, factor: float) -> Units:
        """Values times a factor."""
        return replace(self, alpha=self.alpha * factor, theta=self.theta * factor)

    def values(self, inputs: np.ndarray) -> np.ndarray:
        """Pre-activations (n, k) at inputs (n, inputs)."""
        return inputs @ self.alpha + self.theta


def levels(s: int) -> np.ndarray:
    """The mean of s literals +-1 when h = 0, ..., s are true."""
    return (2 * np.arange(s + 1) - s) / s


def corners(s: int) -> np.ndarray:
    """All (2^s, s) sign patterns; row k has bit i of k at place i."""
    return 2.0 * ((np.arange(1 << s)[:, None] >> np.arange(s)) & 1) - 1


def fit_mean(profile: tuple[int, ...], slack: float, sizes: tuple[float, float]) -> Units:
    """Units of the mean for a symmetric function; `sizes` are the norms that read the mean and the constant 1."""
    s = len(profile) - 1
    signs = 2.0 * np.asarray(profile) - 1
    places = levels(s)
    if slack >= 1 / s:
        raise NoSolution(f"the mean of s = {s} bits must be known to within 1/s, got {slack:g}")
    knots = np.concatenate([places - slack, places + slack, (places[:-1] + places[1:]) / 2, [0.0]])
    knots = np.unique(np.round(knots, 13))
    alpha = np.concatenate([np.ones(knots.size), -np.ones(knots.size), [0.0]])
    theta = np.concatenate([-knots, knots, [1.0]])
    points = np.concatenate([places - slack, places, places + slack])
    answers = np.concatenate([signs, signs, signs])
    low = high = np.maximum(points[:, None] * alpha + theta, 0.0)
    costs = np.sqrt((alpha * sizes[0]) ** 2 + (theta * sizes[1]) ** 2)
    weight = _least_weights(low, high, answers, costs)
    return _used(Units(alpha[None], theta, weight), costs)


def fit_bits(table: tuple[int, ...], slack: float, sizes: tuple[float, float]) -> Units:
    """Units of the bits for any function: hinges on subcubes (s <= 6), or on the corners of the rarer value."""
    s = len(table).bit_length() - 1
    signs = 2.0 * np.asarray(table) - 1
    if s > MOST_CORNERS:
        raise InvalidSetting(
            f"s = {s} is too large for a general function: it takes up to 2^(s-1) hidden units, norms that grow like "
            f"2^s and a certificate of 2^s cases; at most s = {MOST_CORNERS} is offered. Symmetric functions of any "
            f"number of (negated) bits are cheap"
        )
    if s > _MOST_FITTED:
        return corner_units(signs, sizes)
    alpha, theta = _subcubes(s)
    points = corners(s)
    wobble = slack * np.abs(alpha).sum(0)
    low = np.maximum(points @ alpha + theta - wobble, 0.0)
    high = np.maximum(points @ alpha + theta + wobble, 0.0)
    costs = np.sqrt((alpha**2).sum(0) * sizes[0] ** 2 + (theta * sizes[1]) ** 2)
    weight = _least_weights(low, high, signs, costs)
    return _used(Units(alpha, theta, weight), costs)


def corner_units(signs: np.ndarray, sizes: tuple[float, float]) -> Units:
    """One unit per corner of the rarer value, 1 there and at most 0 at every other corner, against a constant."""
    s = signs.size.bit_length() - 1
    rare = 1.0 if (signs > 0).sum() <= (signs < 0).sum() else -1.0
    chosen = corners(s)[signs == rare]
    alpha = np.concatenate([chosen.T / 2, np.zeros((s, 1))], axis=1)
    theta = np.concatenate([np.full(len(chosen), 1 - s / 2), [1.0]])
    weight = rare * np.concatenate([np.full(len(chosen), 2.0), [-1.0]])
    costs = np.sqrt((alpha**2).sum(0) * sizes[0] ** 2 + (theta * sizes[1]) ** 2)
    return Units(alpha, theta, weight).balanced(costs)


def _subcubes(s: int) -> tuple[np.ndarray, np.ndarray]:
    """Hinges relu(<c, x_A> - level) for every set A of bits, signs c on it and level below |A|; and the constant 1."""
    columns: list[np.ndarray] = [np.zeros(s)]
    offsets: list[float] = [1.0]
    for pattern in itertools.product((-1.0, 0.0, 1.0), repeat=s):
        size = int(np.abs(pattern).sum())
        for level in range(-size, size, 2):
            columns.append(np.asarray(pattern))
            offsets.append(-float(level))
    return np.stack(columns, axis=1), np.asarray(offsets)


def _least_weights(low: np.ndarray, high: np.ndarray, signs: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Least sum of costs * |weight| with signs * (weighted units) >= 1 whatever the units in [low, high] are."""
    from scipy.optimize import linprog

    low, high = (np.where(np.abs(x) < _ROUNDING, 0.0, x) for x in (low, high))  # the solver dislikes 1e-17
    positive = signs[:, None] > 0
    plus = np.where(positive, low, -high)  # what a weight of +1 adds to sign * value, at least
    minus = np.where(positive, -high, low)
    solution = linprog(
        np.concatenate([costs, costs]) / costs.mean(),
        A_ub=-np.concatenate([plus, minus], axis=1),
        b_ub=np.full(signs.size, -1.0),
        method="highs",
    )
    if solution.x is None:
        raise NoSolution(f"no units represent the function at this slack ({solution.message})")
    return solution.x[: costs.size] - solution.x[costs.size :]


def _used(units: Units, costs: np.ndarray) -> Units:
    share = np.abs(units.weight) * costs
    keep = share > _NEGLIGIBLE * share.max()
    return Units(units.alpha[:, keep], units.theta[keep], units.weight[keep]).balanced(costs[keep])


def ramp_units(profile: tuple[int, ...], slack: float, sizes: tuple[float, float]) -> Units:
    """A ramp of two hinges wherever the profile changes, flat (+-1) within slack of every level, and a constant.

    A profile with fewer changes uses some of the units of one with more, with the same sizes of weights.
    """
    s = len(profile) - 1
    if slack >= 1 / s:
        raise NoSolution(f"the mean of s = {s} bits must be known to within 1/s, got {slack:g}")
    places = levels(s)
    changes = [h for h in range(s) if profile[h] != profile[h + 1]]
    steep = 2 / (2 / s - 2 * slack)
    knots = [edge for h in changes for edge in (places[h] + slack, places[h + 1] - slack)]
    rises = [sign * steep for h in changes for sign in ((1, -1) if profile[h + 1] else (-1, 1))]
    alpha = np.array([1.0] * len(knots) + [0.0])
    theta = np.array([-knot for knot in knots] + [1.0])
    weight = np.array([*rises, 1.0 if profile[0] else -1.0])
    costs = np.sqrt((alpha * sizes[0]) ** 2 + (theta * sizes[1]) ** 2)
    return Units(alpha[None], theta, weight).balanced(costs)
