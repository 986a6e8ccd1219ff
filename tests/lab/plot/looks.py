"""What must hold of every figure, as checks that return what is wrong."""

from __future__ import annotations

import itertools
import math
from typing import Any

from boundcalc.formulas.theorems import BOUNDS
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.style import KIND_WORDS, LOOKS
from boundcalc.lab.plot.words import called

WORDS = (*KIND_WORDS.values(), "measured")
NAMES = {called(name): name for name in BOUNDS}
SMALLEST = 7.0
"""Points, at the size a figure is printed."""
MOST_LEGEND = 0.15
"""Of the height of a figure."""


def by_gid(figure: Any) -> dict[str, list[Any]]:
    """Artists by what they are called."""
    found: dict[str, list[Any]] = {}
    for axes in figure.axes:
        for artist in [*axes.lines, *axes.collections, *axes.patches]:
            if artist.get_gid():
                found.setdefault(artist.get_gid(), []).append(artist)
    return found


def unnamed_kinds(figure: Any) -> list[str]:
    """Legend entries that do not say what kind of number they are, nor are bounds beside an entry that says so."""
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    said = KIND_WORDS["bound"] in texts
    shares = all(axes.get_ylabel().startswith("share") for axes in figure.axes)  # parts of one checked proof
    return [t for t in texts if not any(word in t for word in WORDS) and not (said and t in NAMES) and not shares]


def mislabelled(figure: Any) -> list[str]:
    """Names of theorems, at curves or in the legend, that are not in the theorem's colour and with its mark."""
    wrong: list[str] = []
    for axes in figure.axes:
        for text in axes.texts:
            name = NAMES.get((text.get_gid() or "").removeprefix("name:"), "")
            if name in LOOKS and text.get_color() != LOOKS[name].colour:
                wrong.append(f"{name} is named in {text.get_color()}")
    for legend in figure.legends:
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            name = NAMES.get(text.get_text().removesuffix(f" ({KIND_WORDS['bound']})"), "")
            if name in LOOKS and hasattr(handle, "get_marker"):
                own = (handle.get_color(), handle.get_marker())
                if own != (LOOKS[name].colour, LOOKS[name].mark):
                    wrong.append(f"{name} is drawn as {own[0]} {own[1]}")
    return wrong


def solid_where_vacuous(figure: Any, data: FigureData) -> list[str]:
    """Curves whose solid line enters a stretch where the bound says nothing."""
    wrong: list[str] = []
    artists = by_gid(figure)
    for series in data.of(kind="bound"):
        for line in artists.get(f"{series.quantity}:{series.key}:{series.kind}", []):
            if line.is_dashed():
                continue
            y = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
            wrong += [
                f"{series.key} at {x:g}"
                for x, vacuous in zip(series.x, series.vacuous, strict=True)
                if vacuous and not math.isnan(float(y.get(x, math.nan)))
            ]
    return wrong


def drawn(figure: Any, series: Series) -> dict[float, float]:
    """The values of a series as its lines show them, solid and dashed together."""
    artists, name = by_gid(figure), f"{series.quantity}:{series.key}:{series.kind}"
    found: dict[float, float] = {}
    for line in [*artists.get(name, []), *artists.get(f"{name}:vacuous", [])]:
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
            if not math.isnan(float(y)):
                found[float(x)] = float(y)
    return found


def misplaced(figure: Any) -> list[str]:
    """Text that leaves the figure, legends that cover axes, and tick labels that run into each other."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox.padded(1.0)
    wrong: list[str] = []
    for axes in figure.axes:
        for text in [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.texts, *_shown(axes)]:
            box = text.get_window_extent(renderer)
            if text.get_text() and box.width and not (page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1)):
                wrong.append(f"{text.get_text()!r} leaves the figure")
        for side, labels in (
            ("x0", axes.get_xticklabels(which="both")),
            ("y0", axes.get_yticklabels(which="both")),
        ):
            shown = [t for t in labels if t.get_text() and _inside(axes, t)]
            boxes = sorted((t.get_window_extent(renderer) for t in shown), key=lambda b, side=side: getattr(b, side))
            wrong += [
                f"tick labels of {axes.get_xlabel()!r} overlap"
                for a, b in itertools.pairwise(boxes)
                if a.overlaps(b) and a.shrunk(0.9, 0.9).overlaps(b.shrunk(0.9, 0.9))
            ]
        for legend in figure.legends:
            if legend.get_window_extent(renderer).overlaps(axes.get_tightbbox(renderer).padded(-2)):
                wrong.append("the legend covers an axis")
    for text in figure.texts:
        box = text.get_window_extent(renderer)
        if not (page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1)):
            wrong.append(f"{text.get_text()!r} leaves the figure")
    for legend in figure.legends:
        box = legend.get_window_extent(renderer)
        if box.height > MOST_LEGEND * figure.bbox.height:
            wrong.append(f"the legend takes {box.height / figure.bbox.height:.0%} of the height")
        if box.x0 < -1 or box.x1 > figure.bbox.width + 1:
            wrong.append("the legend is wider than the figure")
    return wrong


def too_small(figure: Any) -> list[str]:
    """Text that is below seven points where the figure is printed."""
    texts = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        texts += [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.texts, *_shown(axes)]
    return [f"{t.get_text()!r} has {t.get_fontsize():g} points" for t in texts if t.get_fontsize() < SMALLEST]


def in_the_band(figure: Any) -> list[str]:
    """Solid lines, or marks, inside a band that says nothing."""
    wrong: list[str] = []
    for axes in figure.axes:
        if not [a for a in axes.patches if a.get_gid() == "says nothing"]:
            continue
        for line in axes.lines:
            ys = [float(y) for y in line.get_ydata() if not math.isnan(float(y))]
            if ":bound" in (line.get_gid() or "") and any(y > 1 for y in ys):
                wrong.append(str(line.get_gid()))
    return wrong


def _shown(axes: Any) -> list[Any]:
    return [t for t in [*axes.get_xticklabels(which="both"), *axes.get_yticklabels(which="both")] if _inside(axes, t)]


def _inside(axes: Any, label: Any) -> bool:
    """Matplotlib keeps labels of ticks beyond the axis; they are not drawn."""
    x, y = label.get_position()
    (a, b), (c, d) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
    return (a <= x <= b) if label in axes.get_xticklabels(which="both") else (c <= y <= d)
