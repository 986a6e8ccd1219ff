"""Every symbol of the formulas once: name, LaTeX, assumptions, meaning. Importing this module imports sympy."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import specs
from boundcalc.setting import Architecture, Norms, Sample


@dataclass(frozen=True, slots=True)
class Entry:
    """A symbol with what a reader needs to know of it.

    Attributes:
        symbol: the sympy symbol; its name is how text, code and keyword arguments call it.
        latex: how papers print it.
        meaning: a few words, their mathematics marked as in `boundcalc.theorems.prose`.
        field: the field of `Setting.of` it stands for, if any.
        typical: a range of ordinary values, for numerical checks.
        above: values are above this,
        below: below this,
        most: and at most this.
    """

    symbol: sympy.Symbol
    latex: str
    meaning: str
    field: str = ""
    typical: tuple[float, float] = (0.5, 4.0)
    above: float = 0.0
    below: float = math.inf
    most: float = math.inf

    def check(self, value: Any, *, whole: bool) -> None:
        """Refuses a number that the symbol cannot stand for; `whole`: also a size that is no whole number."""
        name = self.symbol.name
        if whole and self.symbol.is_integer and not value.is_integer:
            raise InvalidSetting(f"{name} must be a whole number, got {value}")
        if not self.above < value < self.below or value > self.most:
            ends = (("above", self.above), ("below", self.below), ("at most", self.most))
            limits = [f"{word} {end:g}" for word, end in ends if end < math.inf]
            raise InvalidSetting(f"{name} must be {' and '.join(limits)}, got {value}")


_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_FIELDS = {**specs(Architecture), **specs(Sample), **specs(Norms)}


def _entry(name: str, declared: Any) -> Entry:
    """The symbol of a field of a setting, as it is declared there, or of an input of formulas alone."""
    symbol = sympy.Symbol(name, positive=True, **({"integer": True} if name in _DATA["whole"] else {}))
    limits = _DATA["limits"].get(name, {})
    if isinstance(declared, str):
        spec = _FIELDS[declared]
        return Entry(symbol, spec.latex, spec.words.partition(";")[0], declared, spec.typical, **limits)
    latex, words, low, high = declared
    return Entry(symbol, latex, words, "temperature" if name == "temperature" else "", (low, high), **limits)


ENTRIES = tuple(_entry(name, declared) for name, declared in _DATA["symbols"].items())
"""All symbols that may be given values, in the order in which they are listed."""

BY_NAME: Mapping[str, Entry] = {entry.symbol.name: entry for entry in ENTRIES}

ALIASES: Mapping[str, str] = {
    "D": "depth",
    "H": "heads",
    "seq_len": "T",
    "n_train": "m",
    "margin": "gamma",
    "eps": "epsilon",
    "V": "vocabulary",
    "tau": "temperature",
    "reg": "rho",
    "r": "smoothness",
    "input_radius": "B_X",
}
"""Other names under which a symbol may be given."""

LATEX: dict[sympy.Symbol, str] = {entry.symbol: entry.latex for entry in ENTRIES}


def __getattr__(name: str) -> Any:  # symbols stand in for floats and sizes alike, so they are typed as neither
    if ALIASES.get(name, name) not in BY_NAME:
        raise AttributeError(f"no formula has a symbol {name!r}; there are {', '.join(BY_NAME)}")
    return BY_NAME[ALIASES.get(name, name)].symbol


def symbol(name: str) -> sympy.Symbol:
    """The library's symbol of a name (T and seq_len are one), or a positive one of that name."""
    entry = BY_NAME.get(ALIASES.get(name, name))
    return sympy.Symbol(name, positive=True) if entry is None else entry.symbol


def plain(symbol: sympy.Basic) -> sympy.Symbol:
    """The symbol as SymPy code outside of the library writes it: positive, whether or not it is a whole number here."""
    return sympy.Symbol(str(symbol), positive=True)


def latex(name: str) -> str:
    """How papers print the symbol of a name."""
    entry = BY_NAME.get(ALIASES.get(name, name))
    return name if entry is None else entry.latex
