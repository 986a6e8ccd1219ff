"""`norms-vs-s`: the norms that represent sparse functions, against the number of bits that matter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import sentence

_SEQ_LEN = 512
_DEFAULT_VALUES = (*range(1, 13), 14, 16, 20, 24, 28, 34, 40)
_MOST_ANY = 8
_FROM = 3
"""Growth is fitted from so many bits on: below, every function is nearly symmetric."""
_CLASSES = {
    "any": ("first", "every function", "parity"),
    "symmetric": ("second", "every symmetric function", "parity"),
    "threshold": ("third", "every threshold function", "AND"),
}
"""Look, words for the whole class, words for the member that is built and certified."""


def collect(spec: Spec) -> FigureData:
    """|W_QK|_F |W_V|_op |W_1|_op at margin 1: what suffices for a whole class, and what one certified member has."""
    from boundcalc.lab.represent.construct import construct

    length = spec.setting.architecture.seq_len if spec.setting is not None else _SEQ_LEN
    places = spec.whole or _DEFAULT_VALUES
    series: list[Series] = []
    growth: dict[str, float] = {}
    margins: list[float] = []
    for name, (key, _, member) in _CLASSES.items():
        chosen = [s for s in places if name != "any" or s <= _MOST_ANY]
        if not chosen:
            raise InvalidSetting(f"norms-vs-s needs some s up to {_MOST_ANY}, where every function can be represented")
        panel = "general" if name == "any" else "symmetric"
        x = tuple(float(s) for s in chosen)
        kind = {"any": "corners", "symmetric": "mean", "threshold": "threshold"}[name]
        built = [construct(_member(name, s), length, kind) for s in chosen]
        margins += [one.certify().margin for one in built]
        own = tuple(_product(one.network.norms.budgets) for one in built)
        series.append(Series(key, member, "computed", "norm", x, own, panel=panel))
        fitted = _fit(name, x, own)
        if fitted is not None:
            growth[name] = fitted[0]
            series.append(Series("floor", fitted[1], "fit", "norm", fitted[2], fitted[3], panel=panel))
    facts = {"T": length, "growth": growth, "from": _FROM, "margin": min(margins)}
    return FigureData(tuple(series), facts)


def _member(name: str, s: int) -> Any:
    """Parity of s bits, as far from every other as a function can be; for thresholds, AND."""
    from boundcalc.lab.represent.functions import SparseFunction

    places = tuple(range(s))
    if name == "any":
        return SparseFunction(places, tuple(k.bit_count() % 2 for k in range(1 << s)))
    profile = tuple(int(h == s) if name == "threshold" else h % 2 for h in range(s + 1))
    return SparseFunction(places, profile=profile, negated=(False,) * s)


def _product(budgets: Any) -> float:
    """What multiplies errors of attention scores."""
    return float(budgets["W_QK[0]"].fro * budgets["W_V[0]"].op * budgets["W_1[0]"].op)


def _fit(
    name: str, x: Sequence[float], y: Sequence[float]
) -> tuple[float, str, tuple[float, ...], tuple[float, ...]] | None:
    """Base of an exponential for all functions, degree of a power for symmetric ones: least squares of logarithms."""
    rows = [(s, math.log(value)) for s, value in zip(x, y, strict=True) if s >= _FROM]
    if len(rows) < 2:
        return None
    at = [s if name == "any" else math.log(s) for s, _ in rows]
    logs = [value for _, value in rows]
    centre, level = sum(at) / len(at), sum(logs) / len(logs)
    slope = sum((a - centre) * (b - level) for a, b in zip(at, logs, strict=True)) / sum((a - centre) ** 2 for a in at)
    line = tuple(math.exp(level + slope * (a - centre)) for a in at)
    found = math.exp(slope) if name == "any" else slope
    words = f"${found:.2f}^s$" if name == "any" else f"$s^{{{found:.2f}}}$"
    return found, words, tuple(s for s, _ in rows), line


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, all functions, where a straight line is an exponential; right, symmetric ones, where it is a power."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    figure, (left, right) = canvas.sheet(spec, 2, 0.8)
    for axes, panel in ((left, "general"), (right, "symmetric")):
        canvas.draw_all(axes, data.of(panel=panel), canvas.Heights())
        axes.set(yscale="log", ylabel="product of three norms")
        canvas.plain_ticks(axes)
    left.set_xlabel("s, bits that matter (any function)")
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.set(xscale="log", xlabel="s, bits that matter (symmetric functions)")
    places = [x for s in data.of(panel="symmetric") for x in s.x]
    ticks = [tick for tick in (1, 2, 3, 5, 8, 12, 20, 40, 80, 160, 320) if min(places) <= tick <= max(places)]
    right.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    right.xaxis.set_minor_locator(NullLocator())
    norms = r"$|W_{QK}|_F\,|W_V|_{op}\,|W_1|_{op}$"
    about = f"sparse functions of T = {data.facts['T']} bits as explicit weights · margin 1 · {norms}"
    finish(figure, about, title=spec.title)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """How fast norms grow."""
    growth, start = data.facts["growth"], data.facts["from"]
    parts: list[str] = []
    if "any" in growth:
        parts.append(f"norms that suffice for any function of s bits grow like {growth['any']:.2f}^s")
    for name in ("symmetric", "threshold"):
        if name in growth:
            parts.append(f"for {name} functions like s^{growth[name]:.2f}")
    tail = f" (the product of three norms at margin 1, T = {data.facts['T']}, fitted from s = {start} on)"
    return f"{sentence(', '.join(parts) + tail)} Hence many bits are within reach where the function is symmetric."
