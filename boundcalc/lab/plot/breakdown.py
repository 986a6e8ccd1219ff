"""`breakdown`: where a bound's entropy goes, by kind of matrix, over depth and from block to block."""

from __future__ import annotations

import re
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.base.prose import plain
from boundcalc.engine.evaluate import evaluate
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import FILLS
from boundcalc.lab.plot.words import called, rounded_up, setting_words
from boundcalc.setting import Setting

_PLACE = re.compile(r"(?P<kind>[^\[]+)(\[(?P<block>\d+).*\])?")
NAMES = {"W_QK": "$W_{QK}$", "W_V": "$W_V$", "W_1": "$W_1$", "W_2": "$W_2$", "W_O": "$W_O$", "W_Q": "$W_Q$"}
NAMES |= {"W_K": "$W_K$", "W_C": "$W_C$", "W_3": "$W_3$", "readout": "read-out"}


def setting_of(spec: Spec) -> Setting:
    """The setting whose depth is varied."""
    return spec.setting or Setting.of("edelman", n_train=10**8, C=1.5)


def collect(spec: Spec) -> FigureData:
    """Shares of the log counts as the checker confirmed them: by kind per depth, by kind and block at the deepest."""
    setting = setting_of(spec)
    layered = setting.architecture.layers is not None
    depths = [0] if layered else list(spec.whole) or list(range(1, 13))
    bound = (spec.bounds or ("best",))[0]
    by_depth: dict[str, list[float]] = {}
    facts: dict[str, Any] = {"bound": bound, "setting": setting.to_json()}
    shares: dict[str, float] = {}
    kind = "bound"
    values = []
    for row, depth in enumerate(depths):
        value = evaluate(setting if layered else setting.but(depth=depth), bound)
        shares, kind = dict(value.pieces), value.kind
        if value.trivial:
            raise NoSolution(f"the gap bound is trivial at depth {depth} (it covers nothing): take a larger m")
        values.append({"depth": depth, "gap": value.gap, "log10": value.log10, "strategy": value.strategy})
        for key, share in shares.items():
            place = _PLACE.fullmatch(key)
            name = place["kind"] if place else key
            column = by_depth.setdefault(name, [0.0] * len(depths))
            column[row] += share
    series = [_bars(name, kind, depths, column, "depth") for name, column in _ordered(by_depth)]
    series += _by_block(shares, kind)
    return FigureData(tuple(series), facts | {"values": values})


def _ordered(found: dict[str, list[float]]) -> list[tuple[str, list[float]]]:
    """The read-out last, the rest as the network has them; beyond eight kinds the least are one."""
    named = sorted(found.items(), key=lambda item: item[0] == "readout")
    if len(named) <= len(FILLS):
        return named
    large = sorted(named, key=lambda item: -sum(item[1]))[: len(FILLS) - 1]
    rest = [column for name, column in named if name not in dict(large)]
    return [*large, ("other", [sum(values) for values in zip(*rest, strict=True)])]


def _bars(name: str, kind: str, x: list[int], y: list[float], panel: str) -> Series:
    label = NAMES.get(name, name.replace("_", " "))
    return Series(name, label, kind, "share", tuple(map(float, x)), tuple(y), panel=panel)


def _by_block(shares: dict[str, float], kind: str) -> list[Series]:
    table: dict[str, dict[int, float]] = {}
    last = 0
    for key, share in shares.items():
        place = _PLACE.fullmatch(key)
        if place is None or place["block"] is None:
            continue
        block = int(place["block"]) + 1
        last = max(last, block)
        row = table.setdefault(place["kind"], {})
        row[block] = row.get(block, 0.0) + share
    columns = {name: [row.get(b, 0.0) for b in range(1, last + 1)] for name, row in table.items()}
    return [_bars(name, kind, list(range(1, last + 1)), column, "block") for name, column in _ordered(columns)]


def draw(spec: Spec, data: FigureData) -> Any:
    """Stacked bars: at a few depths, and over the blocks of the deepest model."""
    left, right = data.of(panel="depth"), data.of(panel="block")
    figure, places = canvas.sheet(spec, 1 + bool(right), 0.7, usual="wide", widths=[1, 2.2] if right else None)
    order = [series.key for series in left]
    shown = _telling(len(left[0].x))
    for axes, part in zip(places, (left, right), strict=False):
        canvas.refuse_mixture(part)
        rows = shown if part is left else range(len(part[0].x))
        bars = [(one, order.index(one.key) if one.key in order else len(order)) for one in part]
        heights = [[100 * (one.y[row] or 0.0) for row in rows] for one in part]
        canvas.draw_stack(axes, bars, range(len(rows)), heights, named=axes is places[0], width=0.78)
        axes.grid(axis="x", visible=False)
        axes.set_ylabel("share of the log count (%)")
        axes.set_xticks(range(len(rows)), [f"{part[0].x[row]:g}" for row in rows])
    places[0].set_xlabel("depth" if left[0].x[0] else "")
    places[0].set_ylim(0, 100)
    if right:
        places[1].set_xlabel(f"block (depth {round(left[0].x[-1])})" if left[0].x[-1] else "block")
    setting = Setting.from_json(data.facts["setting"])
    about = (
        f"proof of the gap bound, checked ({called(data.facts['bound'])}) · {setting_words(setting, but=('depth',))}"
    )
    finish(figure, about, title=spec.title)
    return figure


def _telling(count: int) -> list[int]:
    """The first, the last and some between: bars that hardly differ need not be a dozen."""
    return sorted({0, *(i for i in (1, 3, 7) if i < count), count - 1})


def caption(spec: Spec, data: FigureData) -> str:
    """Which kind takes most, and where in the deepest model."""
    left, right = data.of(panel="depth"), data.of(panel="block")
    top = max(left, key=lambda s: s.y[-1] or 0)
    values = data.facts["values"]
    text = (
        f"Of the log covering numbers behind the {called(data.facts['bound'])} at depth {round(top.x[-1])}, "
        f"{plain(top.label)} takes {100 * (top.y[-1] or 0):.0f}%; the gap bound goes from {rounded_up(values[0]['gap'])} "
        f"at depth {values[0]['depth']} to {rounded_up(values[-1]['gap'])}."
    )
    if right and len(right[0].x) > 1:
        totals = [sum(s.y[i] or 0.0 for s in right) for i in range(len(right[0].x))]
        text += f" The first block's share is {100 * totals[0]:.0f}%, the last block's {100 * totals[-1]:.0f}%."
    return text
