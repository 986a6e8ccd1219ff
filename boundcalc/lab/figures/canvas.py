"""Drawing: the house style, titles that are claims, curves, runs, the vacuous band and labels at the ends of curves."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.figures.data import Figure, Series, write
from boundcalc.lab.figures.names import BAND, GREEN, GREY, INK, PALE, dark_theme, look

_FORMATS = (".png", ".pdf", ".svg")
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 7.5,
    "axes.titlesize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.markersize": 3.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "boundcalc",
}
_LINE = 10.5
"""Points between the baselines of two labels."""
RUNS = (
    "Small dots: one run each. Large dots: medians, 95% bootstrap intervals over runs.\n"
    "Triangles: runs without test error, upper limit (95% for all runs)."
)
"""What the marks of measured runs mean, everywhere."""


@contextmanager
def house_style() -> Iterator[None]:
    """The style, for as long as a figure is made; the user's own settings are as before after."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        parameters: Any = mpl.rcParams
        parameters.update(_STYLE)
        yield


def sheet(
    figure: Figure, panels: int = 1, *, size: tuple[float, float] = (5.5, 3.2), **grid: Any
) -> tuple[Any, list[Any]]:
    """An empty figure with its title and subtitle, and its panels from left to right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Drawn

    drawn = Drawn(figsize=size, layout="constrained")
    FigureCanvasAgg(drawn)
    drawn.get_layout_engine().set(w_pad=0.06, wspace=0.06)  # type: ignore[union-attr]
    axes: Any = drawn.subplots(1, panels, squeeze=False, **grid)
    drawn.text(0.01, 1 + 0.25 / size[1], figure.title, fontsize=10, weight="bold", color=INK, va="bottom")
    drawn.text(0.01, 1 + 0.07 / size[1], figure.subtitle, fontsize=7.5, color=GREY, va="bottom")
    return drawn, list(axes.flat)


def note(drawn: Any, text: str) -> None:
    """A line of small print below a figure."""
    drawn.text(0.01, -0.06 / drawn.get_size_inches()[1], text, fontsize=6.5, color=GREY, va="top")


def percent(axis: Any) -> None:
    """Shares as percentages on an axis."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:g}%")


def lengths(axes: Any, values: Sequence[float], most: int = 7) -> None:
    """A binary logarithmic axis whose ticks are some of the values."""
    from matplotlib.ticker import NullLocator

    axes.set_xscale("log", base=2)
    ticks = sorted(set(values))
    ticks = ticks[:: -(-len(ticks) // most)]
    axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def curve(axes: Any, one: Series) -> tuple[float, float] | None:
    """A line through the informative values; its last point, or None where there is none."""
    points, seen = one.informative, look(one.key)
    if not points:
        return None
    how = {"color": seen.colour, "lw": seen.width, "ls": seen.dashes, "marker": seen.mark or None}
    how |= {"markevery": max(1, len(points) // 6), "zorder": 3 if seen.width > 2 else 2.5}
    axes.plot(*zip(*points, strict=True), gid=gid(one), **how)
    return points[-1]


def gid(one: Series) -> str:
    """What an artist is called, so that a test finds it again (and SVG shows it)."""
    return ":".join((one.quantity, one.key, one.kind))


def runs(axes: Any, every: Series, middle: Series) -> None:
    """A dot for each run, and the median with its interval; runs without an error are hollow, at their upper limit."""
    points = list(zip(every.x, every.y, every.high or every.y, strict=True))
    seen = [(x, y) for x, y, _ in points if (y or 0) > 0]
    hollow = [(x, high) for x, y, high in points if not (y or 0) > 0]
    for rows, name, how in (
        (seen, "seen", {"marker": ".", "ms": 3, "alpha": 0.5}),
        (hollow, "none", {"marker": "v", "mfc": "white", "ms": 3.2, "mew": 0.6}),
    ):
        if rows:
            axes.plot(*zip(*rows, strict=True), ls="none", color=GREEN, gid=f"{gid(every)}:{name}", **how)
    lows, highs = middle.known("low"), middle.known("high")
    middles = {x: y for x, y in middle.known().items() if y > 0}
    if middles:
        below = [y - min(y, max(lows.get(x, y), y / 30)) for x, y in middles.items()]
        above = [highs.get(x, y) - y for x, y in middles.items()]
        how = {"fmt": "o", "ms": 4, "color": GREEN, "elinewidth": 1, "zorder": 4}
        bars = axes.errorbar(list(middles), list(middles.values()), yerr=[below, above], **how)
        bars.lines[0].set_gid(gid(middle))


def vacuous(axes: Any, silent: Sequence[str], top: float = 3.0) -> None:
    """The band of values of 1 or more, with the bounds that are in it everywhere."""
    axes.set_ylim(top=top)
    axes.axhspan(1, top, color=PALE, lw=0, zorder=0.5, gid="vacuous")
    text = "vacuous (1 or more)" + (f": {', '.join(silent)}" if silent else "")
    axes.annotate(
        text, (0.01, (top) ** 0.5), xycoords=axes.get_yaxis_transform(), va="center", color=GREY, fontsize=6.5
    )


def between(axes: Any, bound: Series, floor: Series) -> None:
    """The band in which the smallest possible bound lies: from the floor to the best bound."""
    low, high = floor.known(), bound.known()
    x = sorted(low.keys() & high.keys())
    if x:
        ends = [low[at] for at in x], [min(1.0, high[at]) for at in x]
        axes.fill_between(x, *ends, color=BAND, lw=0, zorder=0, gid=f"band:{bound.quantity}")


def end_labels(axes: Any, labels: Sequence[tuple[tuple[float, float] | None, str, str]]) -> None:
    """Names at the right of the last points of curves, moved apart where they would overlap."""
    axes.figure.canvas.draw()  # the layout decides how far apart labels are
    per_inch = 72 / axes.figure.dpi
    present = [(at, text, colour) for at, text, colour in labels if at is not None]
    placed: list[tuple[float, float, float]] = []
    for at, text, colour in sorted(present, key=lambda label: label[0][1]):
        left, y = (float(value) * per_inch for value in axes.transData.transform(at))
        right, place = left + 10 + 0.62 * axes.xaxis.label.get_size() * len(text), y
        for taken, start, end in sorted(placed):
            if start < right and left < end and place < taken + _LINE:
                place = taken + _LINE
        placed.append((place, left, right))
        arrow = {"arrowstyle": "-", "color": colour, "lw": 0.4, "shrinkA": 0, "shrinkB": 2, "relpos": (0, 0.5)}
        moved = place - y > 2
        how = {"textcoords": "offset points", "va": "center", "annotation_clip": False, "color": colour, "zorder": 5}
        axes.annotate(text, at, xytext=(11 if moved else 7, place - y), arrowprops=arrow if moved else None, **how)


def check_name(path: Path) -> None:
    """Refuse a name that no image has."""
    if path.suffix.lower() not in _FORMATS:
        raise InvalidSetting(f"a figure is written as {', '.join(_FORMATS)}; got {path.name!r}: use -o figure.pdf")


def save(
    figure: Figure, draw: Callable[[Figure], Any], path: Path, *, numbers: bool = True, force: bool = False
) -> None:
    """Write the image, and (unless `numbers` is False) the JSON next to it; both or neither."""
    check_name(path)
    kind = path.suffix.lower()
    about = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(kind, {})
    about |= {"Title": figure.name, "Software" if kind == ".png" else "Creator": "boundcalc"}
    with house_style(), output.writing(path, force=force) as image, warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout that does not fit is no figure
        draw(figure).savefig(image, bbox_inches="tight", pad_inches=0.06, metadata=about)
        if kind == ".svg":
            _add_dark_theme(image)
        if numbers:
            write(figure, path.with_suffix(".json"), force=force)


def _add_dark_theme(image: Path) -> None:
    """Let an SVG follow the reader's dark theme: every colour has a counterpart of its hue."""
    text = image.read_text("utf-8")
    rules = [f"text:not([style*='fill']){{fill:{dark_theme('#000000')}}}"]
    for colour in sorted(set(re.findall(r"#[0-9a-fA-F]{6}", text))):
        rules += [f'[style*="{k}: {colour}"]{{{k}:{dark_theme(colour)} !important}}' for k in ("fill", "stroke")]
    style = f"<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"
    image.write_text(text.replace("<defs>", f"{style}<defs>", 1), "utf-8")
