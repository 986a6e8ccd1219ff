"""One name, colour and order per bound, shared by the command line, figures and the page.

The hue says what kind of number it is: measured green, certificates of one network blue, bounds of a class red-brown,
floors and references grey. The line style and the mark tell methods of one kind apart.
"""

from __future__ import annotations

import colorsys
from collections.abc import Mapping
from typing import Any, NamedTuple

GREEN, BLUE, BROWN, GREY = "#0B6E4F", "#1F5FA8", "#99381A", "#595959"
INK, PALE, BAND = "#222222", "#EFEFEF", "#F4E3DC"
SOLID, DASHED, _DOTTED, _MIXED, LONG = "-", (0, (4, 1.6)), (0, (1, 1.3)), (0, (5, 1.3, 1, 1.3)), (0, (9, 2))


class Look(NamedTuple):
    """How one curve is called and drawn."""

    name: str
    colour: str
    dashes: Any = SOLID
    mark: str = ""
    width: float = 1.2


LOOKS: Mapping[str, Look] = {
    "best": Look("best bound", BROWN, width=2.4),
    "T-free": Look("covers without T (searched)", "#7A4A12", LONG, "^"),
    "parameters": Look("parameter count", "#A13D57", _MIXED, "v"),
    "closed": Look("closed form", "#8A5A44", _DOTTED, "D"),
    "published": Look("published constants", "#A0522D", DASHED, "X"),
    "edelman2022": Look("Edelman 2022, closed form", "#7D3C1E", _DOTTED, "p"),
    "trauger2024": Look("Trauger 2024, closed form", "#B8562A", _DOTTED, "<"),
    "zhang2022": Look("Zhang 2022, closed form", "#A13D57", _DOTTED, ">"),
    "holdout": Look("held-out test set", BLUE, SOLID, "o", 1.8),
    "rule": Look("a rule it provably follows", "#0F4C81", LONG, "P", 1.8),
    "p2l": Look("Pick-to-Learn", "#2F6DB5", DASHED, "s"),
    "occam": Look("Occam", "#3B5BA5", _MIXED, "D"),
    "pac-bayes": Look("PAC-Bayes", "#4A4FA3", _DOTTED, "^"),
    "run": Look("measured, one run each", GREEN, mark="."),
    "median": Look("median of runs, 95% bootstrap interval", GREEN, mark="o"),
    "gap-floor": Look("proved floor", GREY, DASHED),
    "floor": Look("information-theoretic floor", GREY, _DOTTED),
}
"""By the key of a series, in the order in which curves are listed."""


def look(key: str) -> Look:
    """The look of a curve; a theorem by name, or your own, is brown and called as it is."""
    return LOOKS.get(key) or Look(_title(key), BROWN, _MIXED)


def dark_theme(colour: str) -> str:
    """The colour for another one on dark paper: of the same hue, and what is dark becomes light enough for text."""
    hue, lightness, saturation = colorsys.rgb_to_hls(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))
    parts = colorsys.hls_to_rgb(hue, max(0.7, 1 - lightness) if lightness < 0.6 else 1 - lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def _title(key: str) -> str:
    from boundcalc.theorems import THEOREMS

    return f"{key} ({THEOREMS[key].source.short})" if key in THEOREMS else key


def in_order(keys: list[str]) -> list[str]:
    """Keys in the order of the table; those it does not have come last."""
    order = list(LOOKS)
    return sorted(keys, key=lambda key: order.index(key) if key in order else len(order))
