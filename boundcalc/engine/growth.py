"""How a proved bound grows with T and m, near where it was proved.

A bound is the least over choices the search has made, so by the envelope theorem its slope is that of the certificate
with its choices held: the checker is asked again with T (or m) a little larger.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from boundcalc.base.errors import BoundcalcError
from boundcalc.engine.proved import Proved
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems import BOUNDS
from boundcalc.proof.checker import Checked
from boundcalc.statements.strategies import STRATEGIES

_STEP = 1.02
"""Far above the checker's rounding, small enough that the choices still fit."""
_LOG_LIKE = 0.97
"""A power keeps its exponent at T^2; a power of log T lowers it."""


class Growth(NamedTuple):
    """Local growth: value ~ x^exponent; where the exponent falls like 1/log x, value ~ (log x)^log_exponent."""

    variable: str
    exponent: float
    log_exponent: float | None = None

    def __str__(self) -> str:
        if self.exponent == 0:
            return "constant"
        if self.log_exponent is not None:
            return f"(log {self.variable})^{_power(self.log_exponent)}"
        return f"{self.variable}^{_power(self.exponent)}"


def _power(exponent: float) -> str:
    return f"{exponent:.2f}" if abs(exponent) >= 0.005 else f"{exponent:.0e}".replace("e-0", "e-")


def growth(proved: Proved, variable: Literal["T", "m"]) -> Growth | None:
    """The local growth of a proved value; None where the certificate does not survive a change of the variable."""
    certificate = proved.certificate
    setting = certificate.setting
    x = setting.architecture.seq_len if variable == "T" else setting.sample.n_train
    if setting.architecture.layers is not None and variable == "T":
        return None
    try:
        here = _elasticity(proved.checked, variable, x, proved.log_value)
        if here == 0 or variable == "m" or x < 3:
            return Growth(variable, here)
        farther = _elasticity(proved.checked, variable, min(x * x, 10**15), None)
    except BoundcalcError:
        return None
    log_like = abs(farther) < _LOG_LIKE * abs(here)
    return Growth(variable, here, here * math.log(x) if log_like else None)


def _elasticity(checked: Checked, variable: str, x: int, log_value: float | None) -> float:
    """The slope of log value in log x at x, by a small step."""
    further = max(x + 1, round(x * _STEP))
    start = _value_at(checked, variable, x) if log_value is None else log_value
    slope = (_value_at(checked, variable, further) - start) / math.log(further / x)
    return 0.0 if abs(slope) < 1e-12 else slope


def _value_at(checked: Checked, variable: str, x: int) -> float:
    certificate = checked.certificate
    setting = certificate.setting
    changed = setting.but(seq_len=x) if variable == "T" else setting.but(n_train=x)
    if STRATEGIES[certificate.strategy].follows_m:  # so does its scale: the choices cannot be held
        return next(Search(changed, BOUNDS[certificate.policy]).gaps()).log_value
    return checked.moved(changed).log_value
