"""Strategies: how counts of covers become a bound, one object per theorem of G; `STRATEGIES` is the registry.

A strategy says what it bounds, when it may be used, on how many samples covers are counted, how many levels it takes,
and its value, generic over the number system. The search, the checker, the breakdown and the commands read the object
and know none by name.
"""

from __future__ import annotations

from boundcalc.base.registry import Registry
from boundcalc.setting import Setting
from boundcalc.statements.strategies.base import Known as Known
from boundcalc.statements.strategies.base import Quantity as Quantity
from boundcalc.statements.strategies.base import Strategy
from boundcalc.statements.strategies.base import Term as Term
from boundcalc.statements.strategies.covering import Chain, Closed, NoiseMargin, Published, UniformMargin
from boundcalc.statements.strategies.covering import ClosedStrategy as ClosedStrategy
from boundcalc.statements.strategies.covering import MarginStrategy as MarginStrategy
from boundcalc.statements.strategies.covering import noise_chance as noise_chance
from boundcalc.statements.strategies.coverless import (
    Comparison,
    ComparisonClosed,
    StoredGap,
    StoredMargin,
)
from boundcalc.statements.strategies.coverless import stored_count as stored_count
from boundcalc.statements.strategies.coverless import stored_weights as stored_weights

_COVERING = (Chain(), Closed(), Published(), UniformMargin(), NoiseMargin())
_COVERLESS = (StoredGap(), StoredMargin(), ComparisonClosed(), Comparison())
STRATEGIES: Registry[Strategy] = Registry("strategy", (*_COVERING, *_COVERLESS))
"""Every strategy by name; `register` adds one to search, checker and tables."""


def risk_candidates(setting: Setting) -> int:
    """Ways to bound the risk that one may choose among after seeing the training error, which is what the choice costs.

    The gap bound is one (which gap bound, and which cover, do not depend on the training error); of the others each
    counts once, that of stored weights where the setting says how many bits these have.
    """
    stored = setting.architecture.bits is not None
    return 1 + sum(way.quantity == "risk" and way.stored <= stored for way in STRATEGIES.values())
