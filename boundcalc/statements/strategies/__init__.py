"""Strategies: how counts of covers become a bound, one object per theorem of G; `STRATEGIES` is the registry.

A strategy says what it bounds, when it may be used, on how many samples covers are counted, how many levels it takes,
and its value, generic over the number system. The search, the checker, the breakdown and the commands read the object
and know none by name.
"""

from __future__ import annotations

from boundcalc.statements.strategies.base import Known as Known
from boundcalc.statements.strategies.base import Quantity as Quantity
from boundcalc.statements.strategies.base import Strategy as Strategy
from boundcalc.statements.strategies.base import Term as Term
from boundcalc.statements.strategies.theorems import STRATEGIES as STRATEGIES
from boundcalc.statements.strategies.theorems import Chain as Chain
from boundcalc.statements.strategies.theorems import MarginStrategy as MarginStrategy
from boundcalc.statements.strategies.theorems import noise_chance as noise_chance
from boundcalc.statements.strategies.theorems import risk_candidates as risk_candidates
from boundcalc.statements.strategies.theorems import stored_count as stored_count
from boundcalc.statements.strategies.theorems import stored_weights as stored_weights
