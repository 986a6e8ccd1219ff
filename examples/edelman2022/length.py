"""How bounds grow with the length of sequences, relative to T = 16.

    python examples/edelman2022/length.py -o figures/length.png

Computed: the growth of the bound that counts covers on the sample, from T = 16 to T; measured against: log T's share of
it, the growth of sqrt(log T), which it stays below.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from common import Values, run

from boundcalc import Setting
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure
from boundcalc.lab.figures.gap import curves, describe
from boundcalc.lab.figures.names import look

QUICK = {"quick": True}
LENGTHS = tuple(2.0**k for k in range(4, 17))
BOUNDS = ("best", "closed", "T-free")
SETTING = Setting.of("edelman", depth=2, n_train=10**8)


def collect(quick: bool = False, store: Path | None = None) -> Figure:
    """Four bounds and the floor along T."""
    del store
    values = LENGTHS[::6] if quick else LENGTHS
    series = tuple(curves(SETTING, "seq_len", values, BOUNDS))
    growth = {one.key: _growth(one.known()) for one in series}
    most = max(rows[-1][1] for rows in growth.values())
    title = f"{LENGTHS[-1] / LENGTHS[0]:,.0f} times longer sequences cost {_percent(most)} or nothing"
    best, floor = (dict(next(one for one in series if one.key == key).known()) for key in ("best", "gap-floor"))
    return Figure(
        "length",
        title,
        describe(SETTING, but="T"),
        f"Each bound of the generalization gap divided by its value at T = {LENGTHS[0]:g}. The closed form counts "
        "covers on the sample and grows with log T. Gaussian comparison (best bound), covers without T, and the proved "
        "floor do not change: at bounded norms no part of log T is unavoidable.",
        "Relative growth of bounds against sequence length. The closed form, which counts covers on the sample, rises "
        f"by {_percent(most)}; the best bound, covers without T and the floor are flat.",
        series,
        {"best": best[values[0]], "floor": floor[values[0]]},
    )


def _growth(curve: dict[float, float]) -> list[tuple[float, float]]:
    first = curve[min(curve)]
    return [(x, y / first - 1) for x, y in sorted(curve.items())]


def _percent(share: float) -> str:
    return f"{math.ceil(100 * share - 1e-9):.0f}%"


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """Growth of the bound with covers of the sample, and of sqrt(log T), by T."""
    (one,) = collect(quick, store).of(key="closed")
    computed = {x: 1 + y for x, y in _growth(one.known())}
    return computed, {x: math.sqrt(math.log(x) / math.log(LENGTHS[0])) for x in computed}


def draw(figure: Figure) -> Any:
    """Relative growth on a linear axis; the absolute value at the right end of each curve."""
    drawn, (axes,) = canvas.sheet(figure, size=(5.0, 2.9))
    labels = []
    for one in figure.series:
        rows, seen = _growth(one.known()), look(one.key)
        axes.plot(*zip(*rows, strict=True), color=seen.colour, ls=seen.dashes, lw=seen.width, gid=canvas.gid(one))
        value = list(one.known().values())[-1]
        labels.append((rows[-1], f"{seen.name}: {value:.2g}", seen.colour))
    canvas.lengths(axes, figure.series[0].x, most=5)
    canvas.percent(axes.yaxis)
    most = max(rows[-1][1] for rows in (_growth(one.known()) for one in figure.series))
    axes.set(xlabel="sequence length T", ylabel="growth since T = 16", ylim=(-0.15 * most, 1.15 * most))
    canvas.end_labels(axes, labels)
    return drawn


if __name__ == "__main__":
    run(main, collect, draw, ("bound grows by", "sqrt(log T) by"))
