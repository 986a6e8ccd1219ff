"""Cases of the theorems: middling values of every input, a quantity nobody has, and every formula upside down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from boundcalc.testing._report import Cases
from boundcalc.theorems import THEOREMS, Theorem
from boundcalc.theorems._formula import Formula


def _inverted(theorem: Theorem) -> Theorem:
    def turned(make: Callable[..., Formula]) -> Callable[..., Formula]:
        return lambda **built: replace(make(**built), expr=1 / make(**built).expr)

    return replace(theorem, forms={name: turned(make) for name, make in theorem.forms.items()})


def cases(name: str) -> Cases[Theorem, Mapping[str, Any]]:
    """What the library's theorem of that name brings."""
    return Cases([{}], [("no_such_quantity", "no_such_quantity")], {"inverted": _inverted(THEOREMS[name])})
