"""The parameter of the kl inverse: any is valid, and the search takes the best. Not trusted."""

from __future__ import annotations

import math
from collections.abc import Callable

from boundcalc.base.golden import golden

_STEPS = 40


def least_mu(value: Callable[[float], float]) -> tuple[float, float]:
    """The least value over the parameter of the kl inverse, by golden section in its log; and the parameter."""
    mu = math.exp(golden(lambda x: value(math.exp(x)), -8.0, 8.0, _STEPS))
    return value(mu), mu
