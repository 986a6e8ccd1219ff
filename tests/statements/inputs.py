"""Random admissible inputs, and statements' values at them, for the comparisons with the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from boundcalc.base.numbers import NumberSystem
from boundcalc.statements.texts import STATEMENTS
from tests.oracle.covers_mp import MP, num

Rng = np.random.Generator
Value = Callable[[NumberSystem], Any]
Check = Callable[[Rng], tuple[Value, Any]]
"""One random input of a statement: its value as a function of the number system, and the oracle's."""
ROUNDS = 12


def compute(name: str) -> Callable[..., Any]:
    """A statement's value."""
    found = STATEMENTS[name].compute
    assert found is not None
    return found


def of(name: str, *numbers: float, **plain: Any) -> Value:
    """The value of a statement at these numbers (made numbers of the system) and these plain arguments."""
    return lambda ns: compute(name)(ns, *(ns.number(x) for x in numbers), **plain)


def some(rng: Rng, count: int, low: float = 0.2, high: float = 4.0) -> list[float]:
    """Numbers spread evenly in their logarithm."""
    return [float(x) for x in np.exp(rng.uniform(np.log(low), np.log(high), count))]


def whole(rng: Rng, low: int, high: int) -> int:
    """A whole number, both ends included."""
    return int(rng.integers(low, high + 1))


def delta_of(log_inverse: float) -> Any:
    """The delta whose log(1/delta) is exactly this float."""
    return MP.exp(-num(log_inverse))
