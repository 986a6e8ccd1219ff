"""What the page knows: theorems as JavaScript and text, checked values of the least bound on a grid, measured points."""

from __future__ import annotations

import html
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.prose import plain
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.proved import BoundValue
from boundcalc.formulas.theorems import THEOREMS
from boundcalc.proof.breakdown import LevelParts
from boundcalc.setting import Setting

SHOWN = ("edelman2022", "trauger2024", "zhang2022")
"""Theorems whose closed form of the gap the page computes."""
FIELDS: Mapping[str, tuple[str, str, float, float, bool]] = {
    "T": ("seq_len", "sequence length", 2, 2**20, True),
    "m": ("n_train", "training samples", 10, 1e12, True),
    "C": ("C", "bound of every norm", 0.1, 100, False),
    "depth": ("depth", "blocks", 1, 24, True),
    "d": ("d", "width of a row", 8, 4096, True),
    "heads": ("heads", "attention heads", 1, 16, True),
    "gamma": ("margin", "margin of the loss", 0.01, 100, False),
    "delta": ("delta", "failure probability", 1e-9, 0.5, False),
}
"""Letter -> field of a setting, words, least, most, whether whole. The page's sliders and the server's limits."""
STYLES = ("edelman", "post", "pre")
EXTRAS: Mapping[str, tuple[float, str, float, float, bool]] = {
    "K": (1.0, "bound of every entrywise l1 norm", 0.1, 1e4, False),
}
"""Inputs of some theorems that settings with one budget C do not have: where each starts, words, least, most, whether whole."""
GRID: Mapping[str, tuple[float, ...]] = {
    "m": tuple(float(round(10 ** (i / 2))) for i in range(6, 19)),
    "depth": (1, 2, 4),
    "C": (0.5, 1, 2),
    "T": (64, 512, 4096),
}
"""Where the least bound is evaluated and checked for a page without an engine, for the style the page starts with."""
COARSE: Mapping[str, tuple[float, ...]] = {**GRID, "m": GRID["m"][::2], "T": (512,)}
"""The same for other styles."""
_PART = re.compile(r"const (?!x\d)(\w+) = ")


def theorems() -> list[dict[str, Any]]:
    """Each theorem: a JavaScript function of its inputs that returns its parts too, and its formula and steps."""
    found: list[dict[str, Any]] = []
    for name in SHOWN:
        theorem, formula = THEOREMS[name], THEOREMS[name].gap
        code = formula.code("javascript")
        found.append(
            {
                "name": name,
                "title": plain(theorem.title),
                "source": theorem.source.short,
                "inputs": [str(symbol) for symbol in formula.inputs],
                "js": _with_parts(code),
                "claim": f"<p>{html.escape(plain(theorem.statement))}</p>",
                "formula": f'<pre class="math">{html.escape(formula.text())}</pre>',
                "steps": f'<pre class="math">{html.escape(_steps(name))}</pre>',
                "latex": formula.latex(expand=False),
                "python": formula.code("python"),
            }
        )
    return found


def _steps(name: str) -> str:
    """The derivation, as text, from its steps on."""
    from boundcalc.formulas.derivation import derive

    return derive(THEOREMS[name], "gap", {}).render("text").partition("\nSteps\n")[2]


def _with_parts(code: str) -> str:
    """The exported function as an expression that returns the value and every part that has a name."""
    parts = ", ".join(_PART.findall(code))
    head, _, value = code.rpartition("return ")
    value = value.strip().removesuffix("}").strip().rstrip(";")
    start = head[head.index("function ") :].replace("function gap(", "function (", 1)
    return f"{start}return {{value: {value}, parts: {{{parts}}}}};\n}}"


def checked(setting: Setting) -> dict[str, Any]:
    """The least bound of a setting as the checker confirmed it: what it is, and what covers its proof counts."""
    value = evaluate(setting, "best")
    if value.refusal is not None:
        return {"refused": str(value.refusal)}
    found: dict[str, Any] = {"kind": value.kind, "strategy": value.strategy}
    if value.trivial:
        needed = value.needed
        found["trivial"] = True
        if needed is not None:
            found |= {"log10N": needed.log10_count, "need": needed.n_train}
        if needed is not None and needed.n_train is not None:
            there = evaluate(
                setting.but(n_train=needed.n_train), "best"
            )  # the proof that would be the first to say something
            found |= {name: counts for name, counts in _counts(there).items() if name == "pieces"}
        return found
    return found | {"log10": value.log10} | _counts(value)


def _counts(value: BoundValue) -> dict[str, Any]:
    """What the level that costs most counts, piece by piece: logs of covers, or nats that noise tells."""
    level = None if value.trivial else max(value.breakdown.levels, key=_matters, default=None)
    if level is None:
        return {}
    pieces = {part.key: round(part.share, 4) for part in level.parts if part.share > 0}
    return {"log10N": round(level.count.log / math.log(10), 4), "pieces": pieces}


def _matters(level: LevelParts) -> float:
    """What it adds to the bound; of one level alone its count."""
    return (level.count if level.link is None else level.link).log


def tables(setting: Setting) -> dict[str, dict[str, Any]]:
    """Checked values for every style that the setting can take; the start of the page is among them."""
    start, found = letters(setting), {}
    for style in STYLES:
        own = style == setting.architecture.style
        grid = {name: tuple(sorted({*values, start[name]})) for name, values in (GRID if own else COARSE).items()}
        try:
            found[style] = table(setting if own else setting.but(style=style), grid)
        except InvalidSetting:
            continue  # such as a read-out that this style does not have
    return found


def table(setting: Setting, grid: Mapping[str, Sequence[float]] = GRID) -> dict[str, Any]:
    """Checked values over a grid around a setting, in the order of its axes; the last one runs fastest."""
    rows: list[dict[str, Any]] = []
    for values in itertools.product(*grid.values()):
        try:
            rows.append(checked(at(setting, dict(zip(grid, values, strict=True)))))
        except InvalidSetting as error:
            rows.append({"refused": str(error)})
    names: dict[str, int] = {}
    for row in rows:  # pieces by number: their names are most of the table
        if "pieces" in row:
            row["pieces"] = [[names.setdefault(key, len(names)), share] for key, share in row["pieces"].items()]
        if "strategy" in row and row.get("kind") == "bound":
            del row["kind"]
    return {"axes": {name: list(values) for name, values in grid.items()}, "rows": rows, "pieces": list(names)}


def at(setting: Setting, values: Mapping[str, float]) -> Setting:
    """A setting with letters set, within the limits of the page."""
    changes: dict[str, Any] = {}
    for letter, value in values.items():
        field, words, least, most, whole = FIELDS[letter]
        if not least <= value <= most or (whole and value != int(value)):
            what = "a whole number" if whole else "a number"
            raise InvalidSetting(f"{letter} ({words}) is {what} from {least:g} to {most:g} here, got {value:g}")
        changes[field] = int(value) if whole else value
    return setting.but(**changes)


def letters(setting: Setting) -> dict[str, float]:
    """Where the page starts: a setting by letters; what has none stays as it is in every checked value."""
    architecture, norms, sample = setting.architecture, setting.norms, setting.sample
    if norms.C is None or norms.budgets or architecture.layers is not None:
        raise InvalidSetting("the page has one norm C for every matrix and blocks alike: leave out --norms and layers")
    found = {"T": architecture.seq_len, "m": sample.n_train, "C": norms.C, "depth": architecture.depth}
    found |= {"d": architecture.d, "heads": architecture.heads, "gamma": sample.margin, "delta": sample.delta}
    at(setting, {name: float(value) for name, value in found.items()})
    return {name: float(value) for name, value in found.items()}


def has_closed_forms(setting: Setting) -> bool:
    """Whether the theorems' closed forms are about a setting: they are about one network, whatever its sizes."""
    plain = Setting.of("edelman")
    values = letters(setting)
    same = at(plain.but(train_error=setting.sample.train_error), values)
    return at(setting.but(style=plain.architecture.style), values) == same


def describe(setting: Setting) -> str:
    """What of a setting the page's fields do not say."""
    architecture = setting.architecture
    words = [f"style {architecture.style}", f"activation {architecture.activation}"]
    words += [f"normalisation {architecture.normalisation}", f"read-out {architecture.readout}"]
    words += [f"train error {setting.sample.train_error:g}"]
    return html.escape(", ".join(words))
