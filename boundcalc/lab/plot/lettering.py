"""What a figure says in words: its setting, names at the ends of curves, one key of kinds, the band that says nothing."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from boundcalc.lab.plot.data import Series
from boundcalc.lab.plot.style import KIND_WORDS, SHADE, latex

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 7.0
"""The size of every text, in points at the size a figure is printed."""
LINE = 8.6
"""From line to line."""
QUIET = "#555555"
_NAME_WIDTH = 15
"""Characters in a line of a name."""


@dataclass
class Ending:
    """A curve that may be named where it ends.

    Attributes:
        text: its name.
        kind: of its numbers.
        artist: what the legend shows where there is no room for the name.
        y: where it ends, in data coordinates.
        last: its last abscissa.
    """

    text: str
    kind: str
    artist: Any
    y: float
    last: float


@dataclass
class _Sheet:
    """What is to be written about one panel."""

    endings: list[Ending] = field(default_factory=list[Ending])
    silent: list[str] | None = None
    top: Any = None


_SHEETS: WeakKeyDictionary[Any, _Sheet] = WeakKeyDictionary()


def _sheet(axes: Axes) -> _Sheet:
    return _SHEETS.setdefault(axes, _Sheet())


def legend_label(series: Series) -> str:
    """What the legend says of a series that is not named at its curve: always with its kind."""
    word = KIND_WORDS[series.kind]
    return series.label if word in series.label else f"{series.label} ({word})"


def ends(axes: Axes, series: Series, artist: Any, x: Sequence[float], y: Sequence[float]) -> None:
    """Notes where a curve ends, so that `finish` can name it there."""
    known = [(a, b) for a, b in zip(x, y, strict=True) if not math.isnan(b)]
    if known:
        last, height = max(known)
        _sheet(axes).endings.append(Ending(series.label, series.kind, artist, height, last))


def says_nothing(axes: Axes, one: float, silent: Sequence[str], *, capped: bool) -> None:
    """The quiet band from the bound 1, which holds anyway, upwards; bounds that never leave it are named there.

    Where bounds are capped nothing is drawn in it, so that it need not be high.
    """
    low, high = axes.get_ylim()
    logarithmic = axes.get_yscale() == "log"
    lines = 1 + (len("; ".join(silent)) + 24) // 40 if silent else 1
    if capped:
        share = 0.075 * lines + 0.02
        if logarithmic:
            low = min(low, 0.7 * one)
            high = one * (one / low) ** (share / (1 - share))
        else:
            low = min(low, one - 0.1)
            high = one + (one - low) * share / (1 - share)
        axes.set_ylim(low, high)
    elif high <= one:
        return
    high = axes.get_ylim()[1]
    band = axes.axhspan(one, high, color=SHADE, lw=0, zorder=0.4)
    band.set_gid("says nothing")
    axes.axhline(one, color=QUIET, lw=0.6, zorder=1.2, gid="trivial")
    _sheet(axes).silent = list(silent)
    _sheet(axes).top = one


def finished(figure: Figure) -> Callable[[str], str]:
    """Makes the text of axes ready for LaTeX, if LaTeX sets it; gives back what does the same with other text."""
    import matplotlib as mpl

    if not mpl.rcParams["text.usetex"]:
        return str
    for axes in figure.axes:
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title, *axes.texts):
            text.set_text(latex(text.get_text()))
    return latex


def finish(figure: Figure, setting: str, *, title: str = "", words: Mapping[str, str] | None = None) -> None:
    """Write what there is to say: the setting above, names at curves, a key of kinds below, the band's text.

    Args:
        figure: with everything drawn.
        setting: what the numbers are about.
        title: above it.
        words: what a kind is called in the key, where more is to be said than its name ("measured": "median of 20").
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    said = finished(figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    state(figure, said, setting, title)
    placed: dict[Any, list[tuple[Ending, Any]]] = {axes: _attach(axes, said) for axes in figure.axes}
    _key(figure, said, renderer, [one for each in placed.values() for one, _ in each], words or {})
    figure.draw_without_rendering()
    for axes, names in placed.items():
        _spread(figure, axes, names)
        _band_text(figure, axes, said)


def state(figure: Figure, said: Callable[[str], str], setting: str, title: str = "") -> None:
    """The setting above a figure, under its title, in room of its own."""
    width, height = figure.get_size_inches()
    lines = ([title] if title else []) + _broken(figure, said, setting, 0.97 * figure.bbox.width)
    if lines:
        head = "\n".join(said(line) for line in lines)
        figure.suptitle(head, x=0.01, ha="left", fontsize=POINTS, color=QUIET, linespacing=1.2)
        figure.set_size_inches(width, height + LINE * 1.2 * len(lines) / 72)


def _broken(figure: Figure, said: Callable[[str], str], text: str, width: float) -> list[str]:
    """Lines of at most so many pixels; " · " separates what had better stay together."""
    found: list[str] = []
    for part in text.split(" · ") if text else []:
        longer = f"{found[-1]} · {part}" if found else part
        if found and _wide(figure, said(longer)) <= width:
            found[-1] = longer
        elif _wide(figure, said(part)) <= width:
            found.append(part)
        else:
            found += _words(figure, said, part, width)
    return found


def _words(figure: Figure, said: Callable[[str], str], text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _wide(figure, said(longer)) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _wide(figure: Figure, text: str) -> float:
    """Pixels that a line of text takes."""
    made = figure.text(0, 0, text, fontsize=POINTS)
    found = made.get_window_extent().width
    made.remove()
    return found


def _attach(axes: Axes, said: Callable[[str], str]) -> list[tuple[Ending, Any]]:
    """Names to the right of a panel, for all curves that reach its right end; none where they would not fit."""
    endings = _sheet(axes).endings
    last = max((one.last for one in endings), default=0.0)
    low, high = sorted(axes.get_ylim())
    fit = [one for one in endings if one.last >= last * (1 - 1e-9) and low <= one.y <= high]
    texts = {id(one): _short(one.text) for one in fit}
    needed = sum(LINE * (text.count("\n") + 1) for text in texts.values())
    if needed > 72 * _height(axes):
        return []
    found: list[tuple[Ending, Any]] = []
    for one in fit:
        colour = one.artist.get_color()
        if any(one.text == other.text and colour == other.artist.get_color() for other, _ in found):
            found.append((one, None))  # what is measured of a thing that was computed has its name
            continue
        name = axes.annotate(
            said(texts[id(one)]),
            (1.0, 0.5),
            xycoords="axes fraction",
            xytext=(7, 0),
            textcoords="offset points",
            va="center",
            fontsize=POINTS,
            color=colour,
            annotation_clip=False,
            linespacing=1.05,
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": colour, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)},
        )
        name.set_gid(f"name:{one.text}")
        found.append((one, name))
    return found


def _height(axes: Axes) -> float:
    """In inches, before anything is laid out: a row of the figure, less labels."""
    found: Any = axes.figure
    rows = axes.get_subplotspec().get_gridspec().nrows if axes.get_subplotspec() else 1  # type: ignore[union-attr]
    return found.get_size_inches()[1] / rows - 0.45


def _short(text: str) -> str:
    """A name in as few lines as it needs, none much shorter than the others."""
    if "$" in text:
        return text
    lines = textwrap.wrap(text, _NAME_WIDTH, break_long_words=False)
    for width in range(_NAME_WIDTH - 1, 5, -1):
        narrower = textwrap.wrap(text, width, break_long_words=False)
        if len(narrower) > len(lines) or max(map(len, narrower)) > width:
            break
        lines = narrower
    return "\n".join(lines)


def _spread(figure: Figure, axes: Axes, names: Sequence[tuple[Ending, Any]]) -> None:
    """Moves names apart, each as near as can be to the end of its curve."""
    high = axes.get_window_extent().height * 72 / figure.dpi
    rows: list[list[Any]] = []  # middle, half of the height, its end, the text
    for one, name in names:
        if name is None:
            continue
        end = axes.transAxes.inverted().transform(axes.transData.transform((one.last, one.y)))[1]
        rows.append([end * high, LINE * (name.get_text().count("\n") + 1) / 2, end, name])
    rows.sort(key=lambda row: row[0])
    for before, row in itertools.pairwise(rows):
        row[0] = max(row[0], before[0] + before[1] + row[1])
    ceiling = high + 4
    for row in reversed(rows):
        row[0] = min(row[0], ceiling - row[1])
        ceiling = row[0] - row[1]
    for middle, _, end, name in rows:
        name.xy = (1.0, end)
        name.set_position((7, middle - end * high))


def _band_text(figure: Figure, axes: Axes, said: Callable[[str], str]) -> None:
    sheet = _sheet(axes)
    if sheet.silent is None:
        return
    text = "says nothing" + (f" (everywhere: {'; '.join(sheet.silent)})" if sheet.silent else "")
    lines = _words(figure, said, text, axes.get_window_extent().width - 8)
    axes.annotate(
        "\n".join(said(line) for line in lines),
        (0.0, sheet.top),
        xycoords=("axes fraction", "data"),
        xytext=(3, 2.5),
        textcoords="offset points",
        va="bottom",
        fontsize=POINTS,
        color=QUIET,
        linespacing=1.05,
        zorder=1.3,
        gid="band",
    )


def _key(
    figure: Figure, said: Callable[[str], str], renderer: Any, named: Sequence[Ending], words: Mapping[str, str]
) -> None:
    """One legend under all panels: a line per kind of what is named at its curve, and what is not."""
    handles: dict[str, Any] = {}
    for one in named:
        text = words.get(one.kind, KIND_WORDS[one.kind])
        handles.setdefault(said(text), _sample(one.artist))
        one.artist.set_label("_")
    done = {id(one.artist) for one in named}
    kinds = {one.kind for one in named}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            line = getattr(handle, "lines", [handle])[0]
            if not label.startswith("_") and id(line) not in done:
                handles.setdefault(said(_without_kind(label, kinds)), handle)
    if not handles:
        return
    for columns in range(min(6, len(handles)), 0, -1):
        found = figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns)
        extent = found.get_window_extent(renderer)
        if columns == 1 or extent.width <= 0.98 * figure.bbox.width:
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + extent.height / figure.dpi)  # panels keep their height
            return
        found.remove()


def _without_kind(label: str, kinds: Collection[str]) -> str:
    """A label whose kind the key says already."""
    for kind in kinds:
        label = label.removesuffix(f" ({KIND_WORDS[kind]})")
    return label


def _sample(artist: Any) -> Any:
    """A line of the same look without colour: it stands for all of its kind."""
    from matplotlib.lines import Line2D

    made = Line2D([], [])
    made.update_from(artist)
    made.set(color=QUIET, lw=1.1, alpha=1, markersize=3.4, markeredgecolor=QUIET)
    hollow = artist.get_markerfacecolor() in ("white", "none")
    made.set_markerfacecolor("white" if hollow else QUIET)
    if artist.get_linestyle() not in ("None", "none", ""):
        made.set_marker("")
    return made
