"""What the page knows: checked bounds and floors over a grid, theorems as JavaScript and text, measured runs."""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import resources
from typing import Any

from boundcalc.base.errors import BoundcalcError, InvalidSetting, Refusal
from boundcalc.base.prose import plain
from boundcalc.engine.evaluate import evaluate
from boundcalc.setting import Setting
from boundcalc.theorems import THEOREMS

SHOWN = ("edelman2022", "trauger2024", "zhang2022")
"""Theorems whose closed form of the gap the page computes."""


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
    "C": Field("C", "largest norm of every matrix", 0.1, 100, False, (0.1, 0.2, *_one_two_five(0, 1), 0.5, 20.0)),
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
"""A bound holds at larger values of these letters too; of all others but depth, at smaller ones. A floor the other way."""
PRESETS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "Toy model",
        "set": {"depth": 1, "d": 64, "T": 128, "m": 1e5},
        "text": "One layer with norms at most 1: floor and bound are within a factor of ten.",
    },
    {
        "name": "BERT-like",
        "set": {"depth": 12, "heads": 12, "d": 768, "T": 512, "m": 1e9},
        "text": "Twelve layers with twelve heads: the bound is vacuous even at a billion sequences. Norms below 1 help, "
        "depth and heads hurt.",
    },
    {
        "name": "Why does depth hurt?",
        "set": {"axis": "depth", "m": 1e8, "shown": []},
        "text": "Errors of one layer pass through all later ones. At C = 1 the bound grows with depth, at C = 0.5 hardly: "
        "move C.",
    },
    {
        "name": "log T or not?",
        "set": {"axis": "T", "m": 1e8, "shown": ["edelman2022", "trauger2024"]},
        "text": "The formula of Edelman et al. grows with log T. The best bound does not know T: log T is a price of "
        "counting covers on the sample.",
    },
)
"""Views by name: what they set, and what they show."""
_DEPTHS = (1, 2, 3, 4, 6, 8, 12)
_SAMPLES = tuple(float(round(10 ** (k / 2))) for k in range(6, 20))
GRID: tuple[tuple[str, Mapping[str, tuple[float, ...]]], ...] = (
    (
        "comparison",
        {"depth": _DEPTHS, "C": (0.1, 0.2, 0.5, 0.75, 1), "T": (2**16,), "d": (4096,), "gamma": (0.12,), "m": (100,)},
    ),
    (
        "T-free",
        {"depth": _DEPTHS, "C": (1, 2, 5), "d": (64, 1024), "heads": (1, 16), "gamma": (0.1, 0.5)}
        | {"T": (2**16,), "m": _SAMPLES[2:]},
    ),
    (
        "floor",
        {"depth": _DEPTHS, "C": (0.1, 0.2, 0.5, 1, 2, 5), "d": (64,), "gamma": (0.12, 0.5), "T": (16,)}
        | {"m": (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10)},
    ),
)
"""Policy -> the settings it is checked at for a page without an engine behind it."""
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
                "claim": f"<p>{html.escape(plain(theorem.statement))}</p>",
                "formula": f'<pre class="math">{html.escape(formula.text())}</pre>',
                "steps": f'<pre class="math">{html.escape(_steps(name))}</pre>',
                "latex": formula.latex(expand=False),
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


def checked(setting: Setting, policy: str = "best", *, floor: bool = True) -> dict[str, Any]:
    """One point: where it is, the bound that the checker confirmed there with what it consists of, and the floor."""
    point: dict[str, Any] = {"at": letters(setting)}
    try:
        bound = evaluate(setting, policy)
    except BoundcalcError as error:
        return point | {"refused": str(error)}
    if not bound.trivial:
        point |= {"gap": 10**bound.log10, "strategy": bound.strategy, "parts": _parts(bound)}
    proved = bound.floor if floor else None
    if proved is not None and not isinstance(proved, Refusal):
        point["floor"] = proved.value
    return point


def _parts(bound: Any) -> list[tuple[str, float]]:
    """What a gap bound consists of: its terms, the one with covers split by its weight matrices; shares of the whole."""
    rows: list[tuple[str, float]] = []
    whole = 10**bound.log10
    for term in bound.breakdown.terms:
        size = math.exp(term.value.log) / whole
        if "delta" in term.formula:
            rows.append(("confidence", size))
        elif bound.proof("gap").shares and "sum" in term.formula:
            rows += [(name, size * share) for name, share in bound.proof("gap").shares.items()]
        else:
            rows.append(
                ("complexity of the class" if not bound.proof("gap").shares else "resolution of the covers", size)
            )
    rows.sort(key=lambda row: -row[1])
    return [(name, round(size, 4)) for name, size in rows]


def floor_alone(setting: Setting) -> dict[str, Any]:
    """The floor at one point, without a bound."""
    from boundcalc.engine.floors import floor_of

    proved = floor_of(setting)
    point: dict[str, Any] = {"at": letters(setting)}
    return point if isinstance(proved, Refusal) or proved is None else point | {"floor": proved.value}


def pool(setting: Setting, progress: Callable[[int, int], None] = lambda done, total: None) -> list[dict[str, Any]]:
    """Checked points for a page without an engine: the grid, and the setting that the page starts with."""
    jobs: list[tuple[Setting, str]] = [(setting, "best")]
    for policy, axes in GRID:
        for values in itertools.product(*axes.values()):
            jobs.append((at(setting, dict(zip(axes, values, strict=True))), policy))
    points: list[dict[str, Any]] = []
    with ProcessPoolExecutor() as workers:
        for point in workers.map(_point, jobs, chunksize=50):
            points.append(point)
            progress(len(points), len(jobs))
    return [point for point in points if "floor" in point or point.get("gap", 1.0) < 1.0 or _scales(point)]


def _scales(point: Mapping[str, Any]) -> bool:
    """Whether a point's bound is A/(gamma sqrt(m)) and the confidence term, so that it gives others for all m above."""
    return str(point.get("strategy", "")).startswith("comparison")


def _point(job: tuple[Setting, str]) -> dict[str, Any]:
    setting, policy = job
    if policy == "floor":
        return floor_alone(setting)
    return checked(setting, policy, floor=policy == "best")


def packed(points: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Points as columns, numbers rounded to the safe side: most of a page is these."""
    names: dict[str, int] = {}
    rows: list[list[Any]] = []
    for point in points:
        gap, floor = point.get("gap"), point.get("floor")
        parts = [[names.setdefault(name, len(names)), round(share, 3)] for name, share in point.get("parts", ())[:12]]
        rows.append(
            [
                *(point["at"][letter] for letter in FIELDS),
                None if gap is None else _rounded(gap, up=True),
                None if floor is None else _rounded(floor, up=False),
                None if gap is None else names.setdefault(point["strategy"], len(names)),
                parts,
            ]
        )
    return {"rows": rows, "names": list(names)}


def _rounded(value: float, *, up: bool) -> float:
    """Six digits, up or down."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 5)
    return float(f"{(math.ceil if up else math.floor)(value / unit) * unit:.6g}")


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
