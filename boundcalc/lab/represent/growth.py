"""How the norms that a class of sparse functions needs grow with s and with T, measured on class budgets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundcalc.lab.represent.classes import class_budgets

GENERAL = tuple(range(1, 9))
SYMMETRIC = (1, 2, 3, 4, 6, 8, 10, 14, 20, 28, 40)
CLASSES = {"any": GENERAL, "symmetric": SYMMETRIC, "threshold": SYMMETRIC}
LENGTHS = tuple(2**i for i in range(6, 18))
FITTED_FROM = 3
"""Fits start here: at s = 1 and 2 small terms still matter."""
S = 3


def product(name: str, s: int, seq_len: int) -> float:
    """|W_QK|_F |W_V|_op |W_1|_op at margin 1: what errors of attention scores are multiplied by, times the scores' size."""
    return math.prod(_norms(name, s, seq_len))


def _norms(name: str, s: int, seq_len: int) -> tuple[float, float, float]:
    found = class_budgets(name, s, seq_len).norms.budgets
    return tuple(float(x or 0.0) for x in (found["W_QK[0]"].fro, found["W_V[0]"].op, found["W_1[0]"].op))  # type: ignore[return-value]


def _slope(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """Of the straight line of least squares."""
    return float(np.polyfit(np.asarray(x, dtype=float), np.asarray(y, dtype=float), 1)[0])


@dataclass(frozen=True)
class Growth:
    """What was measured.

    Attributes:
        seq_len: T of the products.
        products: class -> s -> the product of norms.
        base: factor per bit for any function, fitted.
        last: its last measured step, a factor per bit.
        freed: the factor per bit that is left when s^1.5 is divided out.
        degrees: class -> power of s, fitted, for the classes of symmetric functions.
        local: class -> the largest power of s between neighbouring s.
        keys: T -> |W_QK|_F of any function of three bits.
        per_e_fold: what |W_QK|_F gains when T grows by a factor e, fitted.
        bend: how far |W_QK|_F is from that line at most.
        others: how much the product of the other norms varies over T: largest over least.
    """

    seq_len: int
    products: dict[str, dict[int, float]]
    base: float
    last: float
    freed: float
    degrees: dict[str, float]
    local: dict[str, float]
    keys: dict[int, float]
    per_e_fold: float
    bend: float
    others: float

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        return {
            "T": self.seq_len,
            "products": self.products,
            "base": {"fitted": self.base, "last": self.last, "without s^1.5": self.freed},
            "degree": {name: {"fitted": d, "largest": self.local[name]} for name, d in self.degrees.items()},
            "W_QK": {
                "s": S,
                "by T": self.keys,
                "per e-fold": self.per_e_fold,
                "off the line": self.bend,
                "others vary by": self.others,
            },
        }


def growth(seq_len: int = 512) -> Growth:
    """Norms over s at one T, and over T at s = 3."""
    products = {name: {s: product(name, s, seq_len) for s in values} for name, values in CLASSES.items()}
    logs = {name: {s: math.log(x) for s, x in row.items() if s >= FITTED_FROM} for name, row in products.items()}
    general = logs["any"]
    s = np.array(list(general))
    degrees = {name: _slope(np.log(list(row)), list(row.values())) for name, row in logs.items() if name != "any"}
    steps = {
        name: np.diff(list(row.values())) / np.diff(np.log(list(row))) for name, row in logs.items() if name != "any"
    }
    norms = {T: _norms("any", S, T) for T in LENGTHS}
    keys = {T: found[0] for T, found in norms.items()}
    others = [found[1] * found[2] for found in norms.values()]
    line = np.polyfit(np.log(LENGTHS), list(keys.values()), 1)
    return Growth(
        seq_len,
        products,
        base=math.exp(_slope(s, list(general.values()))),
        last=products["any"][GENERAL[-1]] / products["any"][GENERAL[-2]],
        freed=math.exp(_slope(GENERAL, [math.log(x / n**1.5) for n, x in products["any"].items()])),
        degrees=degrees,
        local={name: float(row.max()) for name, row in steps.items()},
        keys=keys,
        per_e_fold=float(line[0]),
        bend=float(np.abs(np.array(list(keys.values())) - np.polyval(line, np.log(LENGTHS))).max()),
        others=max(others) / min(others),
    )
