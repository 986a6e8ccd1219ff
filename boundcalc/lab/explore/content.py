"""What the page has besides checked points: sliders, presets, theorems as JavaScript and text, runs."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.figures.runs import Run, measured
from boundcalc.setting import Setting
from boundcalc.theorems import THEOREMS
from boundcalc.theorems.printing import terminal
from boundcalc.theorems.prose import plain


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
EXTRAS: Mapping[str, tuple[float, Field]] = {
    "K": (1.0, Field("", "bound of every entrywise l1 norm", 0.1, 1e4, False, _one_two_five(-1, 4))),
}
"""Inputs of some theorems that settings with one budget C do not have: where each starts, and its slider."""
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
_PART = re.compile(r"const (?!x\d)(\w+) = ")


def theorems() -> list[dict[str, Any]]:
    """Each theorem: a JavaScript function of its inputs that returns its parts too, and its formula and steps."""
    rows: list[dict[str, Any]] = []
    for name in SHOWN:
        theorem, formula = THEOREMS[name], THEOREMS[name].gap
        rows.append(
            {
                "name": name,
                "title": plain(theorem.title),
                "source": theorem.source.short,
                "inputs": [str(symbol) for symbol in formula.inputs],
                "js": _with_parts(formula.code("javascript")),
                "parts": {str(part.symbol): terminal(part.latex) for part in formula.where},
                "claim": f"<p>{html.escape(plain(theorem.statement))}</p>",
                "formula": f'<pre class="math">{html.escape(formula.text())}</pre>',
                "steps": f'<pre class="math">{html.escape(_steps(name))}</pre>',
                "latex": formula.latex(),
                "python": formula.code("python"),
            }
        )
    return rows


def _steps(name: str) -> str:
    """The derivation, as text, from its steps on."""
    from boundcalc.theorems.derivation import derive

    text = derive(THEOREMS[name]).render("text", detail="full", width=100)
    return text.partition("\nProof\n")[2].partition("\nLemmas\n")[0].strip()


def _with_parts(code: str) -> str:
    """The exported function as an expression that returns the value and every part that has a name."""
    parts = ", ".join(_PART.findall(code))
    head, _, value = code.rpartition("return ")
    value = value.strip().removesuffix("}").strip().rstrip(";")
    start = head[head.index("function ") :].replace("function gap(", "function (", 1)
    return f"{start}return {{value: {value}, parts: {{{parts}}}}};\n}}"


def at(setting: Setting, values: Mapping[str, float]) -> Setting:
    """A setting with letters set, within the limits of the page."""
    changes: dict[str, Any] = {}
    for letter, value in values.items():
        field = FIELDS[letter]
        if not field.least <= value <= field.most or (field.whole and value != int(value)):
            kind = "a whole number" if field.whole else "a number"
            raise InvalidSetting(
                f"{letter} ({field.words}) is {kind} from {field.least:g} to {field.most:g} here, got {value:g}"
            )
        changes[field.field] = int(value) if field.whole else value
    return setting.but(**changes)


def letters(setting: Setting) -> dict[str, float]:
    """A setting by its letters; what has none stays as it is in every checked value."""
    architecture, norms, sample = setting.architecture, setting.norms, setting.sample
    if norms.C is None or norms.budgets or architecture.layers is not None:
        raise InvalidSetting("the page has one norm C for every matrix and blocks alike: leave out --norms and layers")
    if sample.lipschitz is not None or sample.measured:
        raise InvalidSetting(
            "the page is about a margin that is fixed before the data: leave out lipschitz and --measured"
        )
    values = {"m": sample.n_train, "C": norms.C, "depth": architecture.depth, "T": architecture.seq_len}
    values |= {"d": architecture.d, "heads": architecture.heads, "gamma": sample.margin}
    return {name: float(value) for name, value in values.items()}


def has_closed_forms(setting: Setting) -> bool:
    """Whether the theorems' closed forms are about a setting: they are about one network, whatever its sizes."""
    usual = Setting.of("edelman")
    sample = setting.sample
    return at(usual.but(train_error=sample.train_error, delta=sample.delta), letters(setting)) == setting


def measured_runs() -> dict[str, Any]:
    """Runs and one trained network's attention, as examples/edelman2022/page.py takes them from the figures."""
    text = resources.files("boundcalc.lab.explore").joinpath("runs.json").read_text(encoding="utf-8")
    return json.loads(text)


def describe(setting: Setting) -> str:
    """What of a setting the page's sliders do not say."""
    architecture, sample = setting.architecture, setting.sample
    words = [f"style {architecture.style}", f"activation {architecture.activation}"]
    words += [f"normalisation {architecture.normalisation}", f"read-out {architecture.readout}"]
    words += [f"failure probability {sample.delta:g}"]
    return html.escape(", ".join(words))


# -- runs of your own


def from_files(files: Sequence[str]) -> list[dict[str, Any]]:
    """Median gaps along every letter that all runs of some CSV files have."""
    from boundcalc.lab.figures.runs import read_csv

    runs = read_csv(files)
    letters = [letter for letter in FIELDS if all(letter in run.places for run in runs)]
    return [row for letter in letters or ["m"] for row in _rows(runs, letter)]


def _rows(runs: Sequence[Run], letter: str) -> list[dict[str, Any]]:
    """Medians with their bootstrap intervals."""
    _, middle = measured(runs, letter, "gap")
    low, high = middle.known("low"), middle.known("high")
    return [{"axis": letter, "x": x, "y": y, "low": low.get(x), "high": high.get(x)} for x, y in middle.known().items()]


SHOWN = ("edelman2022", "trauger2024", "zhang2022")
"""Theorems whose closed form of the gap the page computes."""
