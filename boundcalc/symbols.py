"""The symbols of the library's formulas, for your own SymPy code: `from boundcalc.symbols import C, T, m`.

They are plain positive symbols: `sympy.symbols("C T m", positive=True)` makes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boundcalc.theorems import symbols
from boundcalc.theorems.symbols import BY_NAME, plain

if TYPE_CHECKING:
    import sympy


def __getattr__(name: str) -> sympy.Symbol:
    return plain(getattr(symbols, name))


def __dir__() -> list[str]:
    return sorted(BY_NAME)
