"""Strategies: how counts of covers become a bound, one object per theorem of G; `STRATEGIES` is the registry.

A strategy says what it bounds, when it may be used, on how many samples covers are counted, how many levels it takes,
and its value, generic over the number system. The search, the checker, the breakdown and the commands read the object
and know none by name.
"""

from __future__ import annotations

from boundcalc.base.registry import Registry
from boundcalc.setting import Setting
from boundcalc.statements.strategies.base import Known, Quantity, Strategy, Term
from boundcalc.statements.strategies.chains import Chain
from boundcalc.statements.strategies.closed import Closed, ClosedStrategy, Published
from boundcalc.statements.strategies.comparison import Comparison, ComparisonClosed, ComparisonRisk
from boundcalc.statements.strategies.margins import MarginStrategy, UniformMargin
from boundcalc.statements.strategies.noise import NoiseMargin, noise_chance
from boundcalc.statements.strategies.stored import StoredGap, StoredMargin, stored_count, stored_weights

__all__ = [
    "STRATEGIES",
    "Chain",
    "ClosedStrategy",
    "Known",
    "MarginStrategy",
    "Quantity",
    "Strategy",
    "Term",
    "noise_chance",
    "risk_candidates",
    "stored_count",
    "stored_weights",
]

STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    (
        Chain(),
        Closed(),
        Published(),
        UniformMargin(),
        NoiseMargin(),
        StoredGap(),
        StoredMargin(),
        ComparisonClosed(),
        Comparison(),
        ComparisonRisk(),
    ),
)
"""Every strategy by name; `register` adds one to search, checker and tables."""


def risk_candidates(setting: Setting) -> int:
    """Ways to bound the risk that one may choose among after seeing the training error, which is what the choice costs.

    The gap bound is one (which gap bound, and which cover, do not depend on the training error); of the others each
    counts once, where it may be chosen for the architecture.
    """
    return 1 + sum(each.quantity == "risk" and each.is_choice(setting.architecture) for each in STRATEGIES.values())
