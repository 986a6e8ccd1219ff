"""The symbols of the library's formulas, for your own SymPy code: `from boundcalc.symbols import C, T, m`.

They are plain positive symbols: `sympy.symbols("C T m", positive=True)` makes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boundcalc.theorems.symbols import ALIASES, BY_NAME, plain

if TYPE_CHECKING:
    import sympy


def __getattr__(name: str) -> sympy.Symbol:
    entry = BY_NAME.get(ALIASES.get(name, name))
    if entry is None:
        raise AttributeError(f"no formula has a symbol {name!r}; there are {', '.join(BY_NAME)}")
    return plain(entry.symbol)


def __dir__() -> list[str]:
    return sorted(BY_NAME)
