"""How far from optimal: a proved floor and the best proved bound of the same gap, over depth, C, width and m.

    python examples/edelman2022/both_sides.py            the table of the README: m = 10^6
    python examples/edelman2022/both_sides.py --all      every m from 10^4 to 10^8, and floors of errors less ramp losses

Margins are 1/2, or half the largest output where C is below 1. Computed: the best bound; measured against: the floor.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from common import Values

from boundcalc import Setting
from boundcalc.base.rounding import down, up
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.floors import floor_of
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems.policies import POLICIES

QUICK = {"quick": True}
DEPTHS, KNOBS, WIDTHS, SAMPLES = (1, 2, 4), (0.5, 1.0, 2.0), (64, 768), (10**4, 10**5, 10**6, 10**7, 10**8)


def at(depth: int, knob: float, d: int, m: int) -> Setting:
    """The setting of a cell."""
    margin = min(1.0, knob ** (2 * depth + 1)) / 2
    return Setting.of("edelman", depth=depth, C=knob, d=d, n_train=m, margin=margin)


def bounds(setting: Setting) -> tuple[float, float]:
    """The best gap bound, and the best by covers alone; at most 1."""
    desk = Desk(setting)
    covers = Search(desk.paid, replace(POLICIES["best"], comparison=False), log_union=desk.log_union)
    return desk.value("best").gap, desk.value_of("best", covers, setting, risks=False).gap


def floor(setting: Setting, *, errors: bool = False) -> float:
    """The floor, 0 where none is known."""
    found = floor_of(setting, "errors" if errors else "gap")
    return 0.0 if found is None else found.value


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """The best bound and the floor of every cell at m = 10^6: no floor is above a bound."""
    del store
    few = slice(1) if quick else slice(None)
    places = [(*cell, 10**6) for cell in itertools.product(DEPTHS[few], KNOBS[few], WIDTHS[few])]
    return {place: bounds(at(*place))[0] for place in places}, {place: floor(at(*place)) for place in places}


def table(samples: Sequence[int], *, errors: bool) -> Iterator[Sequence[str]]:
    """A row for each depth, C and m."""
    headings = ["floor", *(["floor, errors"] if errors else []), "bound", "ratio", "covers alone"]
    yield ["depth", "C", "m", *(f"{what}, d {d}" for d in WIDTHS for what in headings)]
    yield ["---:"] * (3 + len(WIDTHS) * len(headings))
    for depth, knob, m in itertools.product(DEPTHS, KNOBS, samples):
        row = [str(depth), f"{knob:g}", f"10^{len(str(m)) - 1}"]
        for d in WIDTHS:
            setting = at(depth, knob, d, m)
            (best, covers), low = bounds(setting), floor(setting)
            row += [down(low, 3)] + ([down(floor(setting, errors=True), 3)] if errors else [])
            row += [up(best, 3), "-" if best >= 1 else up(best / low, 2), up(covers, 3)]
        yield row


if __name__ == "__main__":
    if "--quick" in sys.argv:
        print(main(quick=True))
    else:
        whole = "--all" in sys.argv
        for row in table(SAMPLES if whole else (10**6,), errors=whole):
            print("| " + " | ".join(row) + " |")
