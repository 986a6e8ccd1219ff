"""R5 in symbols: norms, capacity and sample complexity of any s-sparse function of T bits, in s and T.

The construction is R3 at simple numbers instead of the best ones: orthonormal positions, squared amplitudes 1/2 (place),
1/4 (bit) and 1/4 (constant), beta = log((T-s+1)/s) (half of the attention is on the chosen positions), one unit per corner
of the rarer value, scaled so that no row leaves the unit ball. T >= 2s. Importing this module imports sympy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import sympy

from boundcalc.base.symbols import T, delta, m, s
from boundcalc.formulas.symbolic.system import SYMPY
from boundcalc.statements.covers import MatrixPerceptron

risk: Any = sympy.Symbol("r", positive=True)

beta = sympy.log((T - s + 1) / s)
largest_squared = 2**s * (s**2 - 3 * s + 4) / 4 + 1
"""Y^2, the largest sum of squared values before scaling: corners at distance h from the input have value 1 - h."""
W_QK = sympy.sqrt(2 * s) * beta
W_V = 2 ** (s / 2 + 1) * (s + 1) / sympy.sqrt(largest_squared)
W_V_21 = (
    2 ** (s - 1) * sympy.sqrt(4 * s**3 + 16 * (s - 2) ** 2 / sympy.Integer(9)) + sympy.Rational(8, 3)
) / sympy.sqrt(largest_squared)
W_1 = sympy.sqrt(largest_squared) * sympy.sqrt(2 ** (s + 1) + 1)
units = 2 ** (s - 1) + 1

_RHO = sympy.Rational(3, 2)


def capacity(samples: Any) -> Any:
    """A1: C_F with log N(eps) <= C_F/eps^2 on so many samples, by the perceptron covers, at a fixed rho."""
    one = sympy.log(2 * samples + 1)
    column, columns = (MatrixPerceptron.constant(SYMPY, k, samples, _RHO) for k in (1, units))
    pairs = sympy.log(2 * samples * (T + 1) + 1)
    parts = (one, W_1**2 * column, (W_1 * W_V_21) ** 2 * columns, (W_1 * W_V * W_QK) ** 2 * pairs)
    return sum(part ** sympy.Rational(1, 3) for part in parts) ** 3


right_side: Any = (1 + sympy.log(2 / delta, 2) + 4 * capacity(2 * m) / sympy.log(2)) / risk
"""At training error 0, with one ghost a sample and margin 1: risk <= r once m is at least this (m also stands inside)."""
leading: Any = 2 ** (2 * s + 4) * s * (s + 1) ** 2 * beta**2 * sympy.log(4 * m * (T + 1) + 1)
"""The part of the capacity that grows fastest, in T and in s: 4^s s^3 log^2(T/s) log(mT), up to a constant."""


@dataclass(frozen=True)
class Formula:
    """One line: a name, what it is, and the expression."""

    name: str
    meaning: str
    expression: Any

    @property
    def text(self) -> str:
        """As plain text."""
        return str(self.expression)

    @property
    def latex(self) -> str:
        """As LaTeX."""
        return sympy.latex(self.expression)


def formulas() -> tuple[Formula, ...]:
    """All of them, in the order in which they build on each other."""
    return (
        Formula("beta", "strength of the attention", beta),
        Formula("Y^2", "largest squared norm of the hidden values, before scaling", largest_squared),
        Formula("|W_QK|_F", "rank one, so every Schatten norm of it", W_QK),
        Formula("|W_V|_op", "at most", W_V),
        Formula("|W_V|_21", "at most", W_V_21),
        Formula("|W_1|_F", "one column; the read-out is 1", W_1),
        Formula("k", "hidden units", units),
        Formula("C_F(m)", "log N(eps) <= C_F/eps^2 on m samples, at margin 1", capacity(m)),
        Formula("m >=", "risk <= r with probability 1 - delta at training error 0; m stands on both sides", right_side),
        Formula("C_F ~", "its leading part, on 2m samples", leading),
    )


def samples_needed(bits: int, seq_len: int, at_most: float, confidence: float) -> int:
    """The least m that satisfies the formula (up to a relative 1e-6 above it)."""
    evaluate = sympy.lambdify(m, right_side.subs({s: bits, T: seq_len, risk: at_most, delta: confidence}), "math")
    value = 1.0
    for _ in range(200):  # the right side grows like a power of log m: iterating it from below converges
        new = float(evaluate(value))
        if new <= value * (1 + 1e-9):
            break
        value = new
    return math.ceil(value * (1 + 1e-6))
