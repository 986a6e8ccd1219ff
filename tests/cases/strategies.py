"""Cases of the strategies: classes whose chances are known exactly, another loss, and a little less than the value."""

from __future__ import annotations

from boundcalc.setting import Setting
from boundcalc.statements.strategies import STRATEGIES, Known, Strategy
from boundcalc.testing._judge import Cases
from boundcalc.testing._strategies import COINS, scaled

_TOO_SMALL = {"closed": 0.2, "published": 0.05}
"""A tenth off is noticed where a bound is nearly sharp, a larger part where it is not."""


def _refused(strategy: Strategy) -> list[tuple[Setting | Known, str]] | None:
    """No bits, where weights are counted; another loss, of a bound of the risk; errors; levels that do not chain."""
    refusals: list[tuple[Setting | Known, str]] = [(Setting.of(), "bits")] if strategy.stored else []
    if strategy.coverless and not strategy.stored:
        return [(Setting.of("edelman", C=1.0, activation="gelu"), "relu"), (Setting.of("edelman", C=2.0), "projection")]
    if strategy.quantity == "risk":
        refusals.append((Setting.of(lipschitz=2.0, bits=16), "ramp|margin|Lipschitz"))
    if refusals:
        return refusals
    rising = Known(0.5, [0.1, 0.2], [3.0, 2.0], 3.0, 1000, 0.0)
    return [(rising, ".")] if not strategy.one_level else None


def cases(name: str) -> Cases:
    """What the library's strategy of that name brings."""
    strategy = STRATEGIES[name]
    wrong = {"too small": scaled(strategy, _TOO_SMALL.get(name, 0.88))}
    return Cases(COINS, _refused(strategy), wrong)
