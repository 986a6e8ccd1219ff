"""The figure of `boundcalc norms --plot`: spectral norms by block, one line per kind."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from boundcalc.base import output

if TYPE_CHECKING:
    from boundcalc.checkpoints import Audit


def _curves(found: Audit) -> dict[str, list[tuple[int, float]]]:
    """By kind: (block, largest spectral norm of its heads)."""
    points: dict[str, dict[int, float]] = {}
    for key, m in found.measured.items():
        kind, _, place = key.removesuffix("~").partition("[")
        value = m.op if m.op is not None else m.row
        if not place or value is None or len(m.shape) < 2:
            continue
        block = int(place.rstrip("]").partition(",")[0])
        line = points.setdefault(kind, {})
        line[block] = max(line.get(block, 0.0), value)
    return {kind: sorted(line.items()) for kind, line in points.items()}


def draw(found: Audit, path: Path) -> None:
    """Write the figure, and beside it the numbers it shows."""
    from matplotlib.ticker import MaxNLocator

    from boundcalc.lab.plot import canvas
    from boundcalc.lab.plot.render import save_image
    from boundcalc.lab.plot.style import house_style

    lines = _curves(found)
    with house_style():
        figure = canvas.new_figure("neurips", 0.6)
        axes = figure.subplots()
        for (kind, points), mark in zip(lines.items(), cycle("os^DvXP*")):
            axes.plot([b for b, _ in points], [v for _, v in points], marker=mark, markersize=3, label=kind)
        axes.set(xlabel="block", ylabel="spectral norm (upper bound, largest head)", yscale="log")
        axes.set_title(Path(found.where).name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        save_image(figure, path, f"norms of {found.where}", dpi=200)
    output.write_json(path.with_suffix(".json"), {"model": found.where, "curves": lines})
