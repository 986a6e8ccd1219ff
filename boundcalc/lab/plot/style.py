"""The house style: one look for every figure, one colour and mark per theorem, one drawing per kind of number."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from boundcalc.base.errors import BoundcalcError

_STYLE = Path(__file__).with_name("house.mplstyle")

SIZES: Mapping[str, tuple[float, str]] = {
    "column": (3.25, "one column of two (ICML)"),
    "wide": (6.75, "both columns (ICML)"),
    "neurips": (5.5, "the text of NeurIPS"),
    "neurips-half": (2.7, "half the text of NeurIPS"),
}
"""Widths in inches."""


@dataclass(frozen=True)
class Look:
    """A colour and a mark; the marks tell curves apart where the colours are lost."""

    colour: str
    mark: str


LOOKS: Mapping[str, Look] = {
    "best": Look("#000000", "o"),
    "log-T": Look("#D55E00", "s"),
    "trauger": Look("#009E73", "^"),
    "closed": Look("#0072B2", "D"),
    "parameters": Look("#A64D79", "v"),
    "published": Look("#C98B00", "X"),
    # published theorems by name
    "edelman2022": Look("#8C3B00", "p"),
    "trauger2024": Look("#00604A", "<"),
    "zhang2022": Look("#5B3E96", "h"),
    # certificates of one predictor
    "holdout": Look("#0072B2", "o"),
    "p2l": Look("#009E73", "s"),
    "occam": Look("#A64D79", "D"),
    "pac-bayes": Look("#D55E00", "^"),
    "gibbs": Look("#C98B00", "<"),
    "norms": Look("#5B3E96", "v"),
    # measured things
    "measured": Look("#111111", "o"),
    "floor": Look("#444444", ""),
    "finite-class": Look("#5B3E96", "P"),
    "first": Look("#0072B2", "o"),
    "second": Look("#D55E00", "s"),
    "third": Look("#009E73", "^"),
    "fourth": Look("#A64D79", "v"),
    "fifth": Look("#C98B00", "D"),
    "sixth": Look("#5B3E96", "P"),
    "seventh": Look("#444444", "X"),
    "eighth": Look("#56B4E9", "*"),
}
"""Per theorem (policy), the same in every figure; `first`, `second`, ... for what has no name of its own."""

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")

FILLS = ("#0B3C5D", "#D9822B", "#7FB7BE", "#8E3B46", "#C8D5B9", "#4F6D7A", "#F2C57C", "#2E2E2E")
"""Colours of stacked bars: neighbours differ in lightness too."""
HATCHES = ("", "///", "", "\\\\\\", "", "...", "", "xxx")

SHADE = "#EFEFEF"
"""The band where a bound says nothing."""

KIND_WORDS: Mapping[str, str] = {
    "bound": "proved bound",
    "a_posteriori": "a posteriori",
    "proxy": "proxy, ~",
    "estimate": "estimate",
    "certificate": "certificate",
    "measured": "measured",
    "computed": "computed",
    "reference": "reference",
    "fit": "fit",
}
"""How each kind is called in a legend."""


def look(key: str, index: int = 0) -> Look:
    """The look of a theorem, or of the index-th thing without a name of its own."""
    return LOOKS.get(key) or LOOKS[ORDINALS[index % len(ORDINALS)]]


@contextmanager
def house_style(*, usetex: bool = False) -> Iterator[None]:
    """The style, for as long as a figure is made; nothing of the user's own settings is changed after."""
    import matplotlib as mpl

    if usetex and shutil.which("latex") is None:
        raise BoundcalcError("--usetex needs latex on the path: install TeX Live, or leave --usetex out")
    changes: Any = {"text.usetex": usetex}
    if usetex:
        changes |= {"font.family": "serif"}
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(mpl.rc_params_from_file(_STYLE, use_default_template=False))
        for name, value in changes.items():
            mpl.rcParams[name] = value
        yield


_LATEX = {"%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "^": r"\^{}", "~": r"$\sim$"}
_LATEX |= {"²": "$^2$", "×": r"$\times$", "÷": r"$\div$", "\u00a0": "~"}


def latex(text: str) -> str:
    """A label as LaTeX takes it; what is mathematics already is left alone."""
    parts = text.split("$")
    if len(parts) % 2 == 0:
        return text
    plain = ["".join(_LATEX.get(sign, sign) for sign in part) for part in parts[::2]]
    found = [plain[0]]
    for mathematics, after in zip(parts[1::2], plain[1:], strict=True):
        found += [f"${mathematics}$", after]
    return "".join(found)


def size(name: str, ratio: float) -> tuple[float, float]:
    """Width and height in inches; `ratio` is height over width."""
    width = SIZES[name][0]
    return width, width * ratio
