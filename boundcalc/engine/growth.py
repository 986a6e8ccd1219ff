"""How a proved bound changes with the numbers of its setting, near where it was proved.

A bound is the least over choices the search has made, so by the envelope theorem its slope is that of the proof with
its choices held: the checker is asked again (`Checked.moved`) at a setting in which one number is a little larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from boundcalc.base.errors import BoundcalcError
from boundcalc.base.validate import LETTERS
from boundcalc.engine.search import Search
from boundcalc.proof.checker import Checked
from boundcalc.setting import Norms, Setting
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.theorems import BOUNDS

STEP = 1.02
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


def growth(checked: Checked, variable: Literal["T", "m"]) -> Growth | None:
    """The local growth of a proved value; None where the certificate does not survive a change of the variable."""
    setting = checked.certificate.setting
    x = setting.architecture.seq_len if variable == "T" else setting.sample.n_train
    if setting.architecture.layers is not None and variable == "T":
        return None
    try:
        here = _slope(checked, variable, x, checked.log_value)
        if here == 0 or variable == "m" or x < 3:
            return Growth(variable, here)
        far = min(x * x, 10**15)
        farther = _slope(checked, variable, far, _log_value(checked, variable, far))
    except BoundcalcError:
        return None
    log_like = abs(farther) < _LOG_LIKE * abs(here)
    return Growth(variable, here, here * math.log(x) if log_like else None)


def _slope(checked: Checked, variable: str, x: int, log_value: float) -> float:
    """The slope of log value in log x at x, by a small step."""
    further = max(x + 1, round(x * STEP))
    slope = (_log_value(checked, variable, further) - log_value) / math.log(further / x)
    return 0.0 if abs(slope) < 1e-12 else slope


def _log_value(checked: Checked, variable: str, x: int) -> float:
    certificate = checked.certificate
    values: dict[str, Any] = {variable: x}
    changed = certificate.setting.but(**values)
    if STRATEGIES[certificate.strategy].follows_m:  # so does its scale: the choices cannot be held
        return Search(changed, BOUNDS[certificate.policy]).candidates("gap")[0].log_value
    return checked.moved(changed).log_value


# -- changes by a factor

_Changer = Callable[[float], Setting]


def changers(setting: Setting) -> dict[str, _Changer]:
    """How to multiply each number of a setting by a factor: sizes, and every kind of norm that is read."""
    architecture = setting.architecture

    def scaled(name: str) -> _Changer:
        now = value_of(setting, name) or 0.0
        whole = name not in ("gamma", "delta")

        def change(f: float) -> Setting:
            values: dict[str, Any] = {name: max(1, round(now * f)) if whole else now * f}
            return setting.but(**values)

        return change

    changes = {name: scaled(name) for name in ("m", "gamma", "delta", "T")}
    if architecture.layers is None:
        heads = architecture.heads
        changes["depth"] = scaled("depth")
        changes["d"] = lambda f: setting.but(d=heads * max(1, round(architecture.d * f / heads)))
    for kind in dict.fromkeys(weight.kind for weight, _ in setting.lookups()):
        changes[f"norm {kind}"] = lambda f, kind=kind: replace(setting, norms=_scaled_kind(setting, kind, f))
    changes["every norm"] = lambda f: replace(setting, norms=setting.norms.scaled(f))
    return changes


def _scaled_kind(setting: Setting, kind: str, factor: float) -> Norms:
    """All budgets of one kind times a factor, those that the knob C gives too."""
    norms = setting.norms
    own = {key: budget for key, budget in norms.budgets.items() if key.partition("[")[0] == kind}
    for weight, key in setting.lookups():
        if weight.kind == kind and key is None:
            own[kind] = weight.usable(norms.find(kind))
    return replace(norms, budgets={**norms.budgets, **Norms(None, own).scaled(factor).budgets})


def value_of(setting: Setting, name: str) -> float | None:
    """What a number of the setting is; None for norms, which are several."""
    field = LETTERS.get(name, name)
    return next((getattr(part, field) for part in (setting.sample, setting.architecture) if hasattr(part, field)), None)
