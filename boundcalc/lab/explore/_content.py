"""What the page has besides checked points: sliders, presets, theorems as JavaScript and text, runs."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.setting import Setting
from boundcalc.theorems import THEOREMS
from boundcalc.theorems.prose import plain

SETTING = Setting.of("edelman")
"""Where the page starts; what it has no slider for stays as it is here."""


@dataclass(frozen=True)
class Field:
    """One slider: the field of a setting, words, the least and the largest value, and where the slider stops."""

    field: str
    words: str
    least: float
    most: float
    whole: bool
    stops: tuple[float, ...]


def _one_two_five(low: int, high: int) -> tuple[float, ...]:
    return (*(float(f"{k}e{e}") for e in range(low, high) for k in (1, 2, 5)), float(f"1e{high}"))


FIELDS: Mapping[str, Field] = {
    "m": Field("n_train", "training sequences", 10, 1e12, True, _one_two_five(1, 10)),
    "C": Field("C", "largest norm of every matrix", 0.1, 100, False, (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)),
    "depth": Field("depth", "layers", 1, 24, True, (1, 2, 3, 4, 6, 8, 12, 16, 24)),
    "T": Field("seq_len", "sequence length", 2, 2**20, True, tuple(float(2**k) for k in range(4, 17))),
    "d": Field("d", "width", 8, 4096, True, tuple(float(2**k) for k in range(3, 13))),
    "heads": Field("heads", "attention heads", 1, 16, True, (1, 2, 4, 8, 16)),
    "gamma": Field("margin", "margin of the loss", 0.01, 100, False, _one_two_five(-2, 2)),
}
"""Letter -> slider. Also what the server takes."""
FALLING = ("m", "gamma")
"""Bounds fall along these letters, and rise along all others."""
PRESETS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "Toy model",
        "set": {"depth": 1, "d": 64, "T": 128, "m": 1e5, "gamma": 0.5},
        "text": "One layer with norms at most 1: floor and bound are within a factor of ten.",
    },
    {
        "name": "BERT-like",
        "set": {"depth": 12, "heads": 12, "d": 768, "T": 512, "m": 1e9},
        "text": "Twelve layers with twelve heads: the bound is vacuous even at a billion sequences. Norms below 1 "
        "help, depth and heads hurt.",
    },
    {
        "name": "Why does depth hurt?",
        "set": {"axis": "depth", "m": 1e8, "shown": []},
        "text": "Errors of one layer pass through all later ones. At C = 1 the bound grows with depth. At C = 0.5 "
        "errors shrink on the way, and it does not: move C.",
    },
    {
        "name": "log T or not?",
        "set": {"axis": "T", "m": 1e8, "shown": ["edelman2022", "trauger2024"]},
        "text": "The formula of Edelman et al. grows with log T. The best bound does not know T: log T is a price of "
        "counting covers on the sample.",
    },
)
"""Views by name: what they set, and what they show."""
SHOWN = ("edelman2022", "trauger2024")
"""Theorems whose closed form of the gap the page computes."""
FIXED = {"delta": SETTING.sample.delta, "K": 1.0}
"""Inputs of theorems without a slider; K is the largest entrywise l1 norm."""


def theorems() -> list[dict[str, Any]]:
    """Each theorem: a JavaScript function of its inputs, its claim and its formula."""
    return [
        {
            "name": name,
            "title": plain(theorem.title),
            "source": theorem.source.short,
            "inputs": [str(symbol) for symbol in theorem.gap.inputs],
            "js": "function " + theorem.gap.code("javascript").partition("function gap")[2],
            "claim": f"<p>{html.escape(plain(theorem.statement))}</p>",
            "formula": f'<pre class="math">{html.escape(theorem.gap.text())}</pre>',
        }
        for name, theorem in ((name, THEOREMS[name]) for name in SHOWN)
    ]


def at(values: Mapping[str, float]) -> Setting:
    """The setting of some letters, within the limits of the page."""
    changes: dict[str, Any] = {}
    for letter, value in values.items():
        field = FIELDS[letter]
        if not field.least <= value <= field.most or (field.whole and value != int(value)):
            kind = "a whole number" if field.whole else "a number"
            raise InvalidSetting(
                f"{letter} ({field.words}) is {kind} from {field.least:g} to {field.most:g} here, got {value:g}"
            )
        changes[field.field] = int(value) if field.whole else value
    return SETTING.but(**changes)


def letters(setting: Setting) -> dict[str, float]:
    """A setting by its letters."""
    parts = (setting.architecture, setting.sample, setting.norms)
    return {
        letter: float(next(getattr(part, field.field) for part in parts if hasattr(part, field.field)))
        for letter, field in FIELDS.items()
    }


def measured_runs() -> dict[str, Any]:
    """Runs and one trained network's attention, as examples/edelman2022/page.py takes them from the figures."""
    text = resources.files("boundcalc.lab.explore").joinpath("runs.json").read_text(encoding="utf-8")
    return json.loads(text)
