"""Cases of the theorems: middling values of every input, a quantity nobody has, and every formula upside down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from boundcalc.testing.report import Cases
from boundcalc.theorems import THEOREMS, Theorem
from boundcalc.theorems.formula import Formula


def _inverted(theorem: Theorem) -> Theorem:
    form, forms = theorem.forms()

    def turned(make: Callable[[], Formula]) -> Callable[[], Formula]:
        return lambda: replace(make(), expr=1 / make().expr)

    return replace(theorem, forms=lambda: (form, {name: turned(make) for name, make in forms.items()}))


def cases(name: str) -> Cases[Theorem, Mapping[str, Any]]:
    """What the library's theorem of that name brings."""
    return Cases([{}], [("no_such_quantity", "no_such_quantity")], {"inverted": _inverted(THEOREMS[name])})
