"""Hidden units: which ReLUs of the selected bits, with which weights, have the sign of a Boolean function.

A unit is relu(<alpha, x> + theta) of an input x that is either the mean of the s literals (+-1), known to within
`slack`, or the s bits themselves (+-1), known exactly. The weights g are found by linear programming:
least sum |g| |v|, v the column of the value matrix a unit needs, under the condition f(x) sum g relu >= 1 for every
admissible x. Nothing here is trusted: the certificate looks at the weights alone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from boundcalc.base.errors import NoSolution

_MOST_FITTED = 6
"""Bits for which all subcubes are offered to the linear programme; beyond, one unit per corner."""
MOST_CORNERS = 10
_NEGLIGIBLE = 1e-9
_ROUNDING = 1e-12


Sizes = tuple[float, float]
"""Norms of the vectors that read an input and the constant 1."""


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


def levels(s: int) -> np.ndarray:
    """The mean of s literals +-1 when h = 0, ..., s are true."""
    return (2 * np.arange(s + 1) - s) / s


def corners(s: int) -> np.ndarray:
    """All (2^s, s) sign patterns; row k has bit i of k at place i."""
    return 2.0 * ((np.arange(1 << s)[:, None] >> np.arange(s)) & 1) - 1


def fit_mean(profile: tuple[int, ...], slack: float, sizes: Sizes) -> Units:
    """Units of the mean for a symmetric function."""
    places = levels(len(profile) - 1)
    knots = np.concatenate([places - slack, places + slack, (places[:-1] + places[1:]) / 2, [0.0]])
    knots = np.unique(np.round(knots, 13))
    alpha = np.concatenate([np.ones(knots.size), -np.ones(knots.size), [0.0]])[None]
    theta = np.concatenate([-knots, knots, [1.0]])
    values = np.concatenate([places - slack, places, places + slack])[:, None] * alpha + theta
    return _fitted(alpha, theta, values, np.tile(2.0 * np.asarray(profile) - 1, 3), sizes)


def fit_bits(table: tuple[int, ...], sizes: Sizes) -> Units:
    """Units of the bits for any function: hinges on subcubes (s <= 6), or on the corners of the rarer value."""
    s = len(table).bit_length() - 1
    signs = 2.0 * np.asarray(table) - 1
    if s > _MOST_FITTED:
        return corner_units(signs, sizes)
    # Hinges relu(<c, x_A> - level) for every set A of bits, signs c on it and level below |A|; and the constant 1.
    columns, offsets = [(0.0,) * s], [1.0]
    for pattern in itertools.product((-1.0, 0.0, 1.0), repeat=s):
        size = sum(map(abs, pattern))
        for level in np.arange(-size, size, 2):
            columns.append(pattern)
            offsets.append(-level)
    alpha, theta = np.array(columns).T, np.array(offsets)
    return _fitted(alpha, theta, corners(s) @ alpha + theta, signs, sizes)


def corner_units(signs: np.ndarray, sizes: Sizes) -> Units:
    """One unit per corner of the rarer value, 1 there and at most 0 at every other corner, against a constant."""
    s = signs.size.bit_length() - 1
    rare = 1.0 if (signs > 0).sum() <= (signs < 0).sum() else -1.0
    chosen = corners(s)[signs == rare]
    alpha = np.concatenate([chosen.T / 2, np.zeros((s, 1))], axis=1)
    theta = np.concatenate([np.full(len(chosen), 1 - s / 2), [1.0]])
    return _balanced(alpha, theta, rare * np.concatenate([np.full(len(chosen), 2.0), [-1.0]]), sizes)


def ramp_units(profile: tuple[int, ...], slack: float, sizes: Sizes) -> Units:
    """A ramp of two hinges wherever the profile changes, flat (+-1) within slack < 1/s of every level, and a constant.

    A profile with fewer changes uses some of the units of one with more, with the same sizes of weights.
    """
    s = len(profile) - 1
    places = levels(s)
    changes = [h for h in range(s) if profile[h] != profile[h + 1]]
    steep = 2 / (2 / s - 2 * slack)
    knots = [edge for h in changes for edge in (places[h] + slack, places[h + 1] - slack)]
    rises = [sign * steep for h in changes for sign in ((1, -1) if profile[h + 1] else (-1, 1))]
    alpha = np.array([1.0] * len(knots) + [0.0])[None]
    theta = np.array([-knot for knot in knots] + [1.0])
    return _balanced(alpha, theta, np.array([*rises, 1.0 if profile[0] else -1.0]), sizes)


def _fitted(alpha: np.ndarray, theta: np.ndarray, values: np.ndarray, signs: np.ndarray, sizes: Sizes) -> Units:
    """Units with the least sum of costs * |weight| such that signs * (weighted units) >= 1.

    `values` are the pre-activations (cases, units).
    """
    from scipy.optimize import linprog

    costs = _costs(alpha, theta, sizes)
    active = signs[:, None] * np.where(values < _ROUNDING, 0.0, values)  # the solver dislikes 1e-17
    solution = linprog(
        np.concatenate([costs, costs]) / costs.mean(),
        A_ub=np.concatenate([-active, active], axis=1),
        b_ub=np.full(signs.size, -1.0),
        method="highs",
    )
    if solution.x is None:
        raise NoSolution(f"no units represent the function at this slack ({solution.message})")
    return _balanced(alpha, theta, solution.x[: costs.size] - solution.x[costs.size :], sizes)


def _costs(alpha: np.ndarray, theta: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Norms of the columns of the value matrix that units need."""
    return np.sqrt((alpha**2).sum(0) * sizes[0] ** 2 + (theta * sizes[1]) ** 2)


def _balanced(alpha: np.ndarray, theta: np.ndarray, weight: np.ndarray, sizes: Sizes) -> Units:
    """The units of some weight, each scaled so that its column of the value matrix is as long as its weight."""
    costs = _costs(alpha, theta, sizes)
    share = np.abs(weight) * costs
    keep = share > _NEGLIGIBLE * share.max()
    scale = np.sqrt(np.abs(weight[keep]) / costs[keep])
    return Units(alpha[:, keep] * scale, theta[keep] * scale, weight[keep] / scale)
