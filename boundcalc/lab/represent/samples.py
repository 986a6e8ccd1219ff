"""R5, G8: how many samples learning a sparse function takes: each theorem's m, the finite class and the counting floor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from flint import arb

from boundcalc.base.errors import NoSolution, Unsupported
from boundcalc.base.intervals import INTERVAL, lower_float, upper_float
from boundcalc.engine.solve import Solution, solve
from boundcalc.formulas.theorems import POLICIES
from boundcalc.lab.represent.classes import CLASSES, ClassBudgets, class_budgets
from boundcalc.setting import Setting, validate
from boundcalc.statements.gap import sparse_class_size, support_floor


@dataclass(frozen=True)
class Row:
    """A policy's m, or why it has none; the bound at m is checked."""

    policy: str
    solution: Solution | None
    reason: str = ""


@dataclass(frozen=True)
class SampleComplexity:
    """What learning a class of sparse functions takes.

    Attributes:
        budgets: norms in which every function of the class is represented.
        setting: the class of networks with these norms.
        rows: the smallest m of each policy with risk at most the one asked for.
        finite_class: an upper bound for a learner that knows the class of functions: m such that, with probability
            1 - delta, every consistent function of the class has at most this risk.
        floor: a lower bound: fewer labels cannot identify the support with probability 1/2.
    """

    budgets: ClassBudgets
    setting: Setting
    risk: float
    rows: tuple[Row, ...]
    finite_class: int
    floor: int

    def to_json(self) -> dict[str, Any]:
        """The JSON object; the certificates can be verified by themselves."""
        budgets = self.budgets
        return {
            "class": budgets.name,
            "s": budgets.s,
            "T": budgets.positions.count,
            "risk": self.risk,
            "delta": self.setting.sample.delta,
            "positions": "orthonormal" if budgets.positions.exact else "compact",
            "coherence": budgets.positions.coherence,
            "d": budgets.width,
            "hidden_units": budgets.units,
            "beta": budgets.choice.beta,
            "margin": 1.0,
            "norms": budgets.norms.to_json()["budgets"],
            "policies": {
                row.policy: {"m": None, "reason": row.reason}
                if row.solution is None
                else {
                    "m": row.solution.value,
                    "risk": row.solution.bound.risk,
                    "strategy": row.solution.bound.risk_strategy,
                    "kind": row.solution.bound.kind,
                }
                for row in self.rows
            },
            "finite_class": self.finite_class,
            "counting_floor": self.floor,
        }


def sample_complexity(
    s: int,
    seq_len: int,
    risk: float,
    delta: float,
    *,
    name: str = "any",
    positions: Literal["orthonormal", "compact"] = "orthonormal",
    policies: tuple[str, ...] = (),
) -> SampleComplexity:
    """The smallest m of every policy with risk at most `risk`, with probability 1 - delta, at training error 0."""
    risk = validate.fraction("risk", risk, ends=False)
    delta = validate.fraction("delta", delta, ends=False)
    names = [validate.choice("bound", policy, POLICIES) for policy in policies] or list(POLICIES)
    budgets = class_budgets(name, s, seq_len, positions)
    setting = budgets.setting(delta=delta)
    rows = tuple(_row(setting, policy, risk) for policy in names)
    finite = finite_class(name, budgets.s, budgets.positions.count, risk, delta)
    return SampleComplexity(budgets, setting, risk, rows, finite, counting_floor(budgets.s, budgets.positions.count))


def _row(setting: Setting, policy: str, risk: float) -> Row:
    try:
        return Row(policy, solve(setting, "m", risk, bound=policy, quantity="risk"))
    except (NoSolution, Unsupported) as error:
        return Row(policy, None, str(error))


def log_functions(name: str, s: int, seq_len: int) -> arb:
    """At least the logarithm of the number of functions: places times rules."""
    every = sparse_class_size(INTERVAL, s, arb(seq_len)) - arb(2) ** s * arb(2).log()
    rules = CLASSES[name].log2_rules(s)
    return every + arb(rules) * arb(2).log() * arb(1 + 2.0**-40)


def finite_class(name: str, s: int, seq_len: int, risk: float, delta: float) -> int:
    """The least m with |F| (1 - risk)^m <= delta: then no function with a larger risk survives m samples."""
    needed = (log_functions(name, s, seq_len) - arb(delta).log()) / -(-arb(risk)).log1p()
    return math.ceil(upper_float(needed))


def counting_floor(s: int, seq_len: int) -> int:
    """Labels without which no learner finds the support with probability 1/2."""
    return max(0, math.ceil(lower_float(support_floor(INTERVAL, s, arb(seq_len)))))
