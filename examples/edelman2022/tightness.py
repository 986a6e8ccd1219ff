"""The best checked bound beside the same theorem with published constants, over depth, C, T and m: a Markdown table.

    python examples/edelman2022/tightness.py              the table of the README
    python examples/edelman2022/tightness.py --without    the best bounds of one setting without each ingredient

A cell holds the best gap bound by how much smaller it is, then by how much any proof at training error 0 is.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import Values

from boundcalc import Setting
from boundcalc.base.rounding import up
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems.policies import CENTRES, LAWS, POLICIES, Policy
from boundcalc.statements.covers import LEMMAS, family

QUICK = {"quick": True}

DEPTHS, KNOBS, LENGTHS, SAMPLES = (1, 2, 4), (1.0, 2.0), (64, 4096), (10**6, 10**7, 10**8)
_LN10 = math.log(10)


def compare(setting: Setting) -> tuple[float, float | None, float | None]:
    """log10 of the gap with published constants, of the best gap, and of the best of gap and risk, at training error 0."""
    desk = Desk(setting.but(train_error=0.0))
    best, published = desk.value("best"), desk.value("published").log10
    gap = None if best.trivial else best.log10
    known = [value for value in (gap, risk_of(best)) if value is not None]
    return published, gap, min(known, default=None) if best.risk_refusal is None else None


def risk_of(value: Any) -> float | None:
    """log10 of a risk bound, where there is one."""
    return None if value.risk_refusal is not None or value.risk_trivial else value.log_risk / _LN10


def grid(quick: bool = False) -> Iterator[Any]:
    """Depth, C, T and m."""
    yield from itertools.product(*((axis[:1] if quick else axis) for axis in (DEPTHS, KNOBS, LENGTHS, SAMPLES)))


def at(place: tuple[int, float, int, int]) -> Setting:
    """The setting of a cell."""
    depth, knob, length, m = place
    return Setting.of("edelman", depth=depth, C=knob, seq_len=length, n_train=m)


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """log10 of the best gap, and of the gap with published constants, by (depth, C, T, m)."""
    del store
    found = {place: compare(at(place)) for place in grid(quick)}
    known = {place: row for place, row in found.items() if row[1] is not None}
    return {place: float(row[1] or 0) for place, row in known.items()}, {place: row[0] for place, row in known.items()}


def table() -> Iterator[Sequence[str]]:
    """The table of the README."""
    yield ["depth", "C", "T", *(f"m = 10^{len(str(m)) - 1}" for m in SAMPLES)]
    yield ["---:"] * (3 + len(SAMPLES))
    for (depth, knob, length), places in itertools.groupby(grid(), lambda place: place[:3]):
        cells = [str(depth), f"{knob:g}", str(length)]
        for place in places:
            published, gap, anything = compare(at(place))
            same = "vacuous" if gap is None else f"{upper(gap)}: {factor(published - gap)}"
            cells.append(f"{same}, {'-' if anything is None else factor(published - anything)}")
        yield cells


def without(setting: Setting) -> Iterator[Sequence[str]]:
    """The best gap, and risk at training error 0, where one ingredient after another is left out."""
    yield ["without", "gap", "factor", "risk at training error 0", "factor"]
    yield ["---", "---:", "---:", "---:", "---:"]
    desk = Desk(setting.but(train_error=0.0))
    whole: list[float | None] = []
    for name, policy in less(POLICIES["best"]):
        search = Search(desk.paid, policy, log_union=desk.log_union, measured=desk.measured)
        value = desk.value_of(policy.name, search, desk.setting)
        here = [None if value.trivial else value.log10, risk_of(value)]
        whole = whole or here
        cells = [name]
        for one, best in zip(here, whole, strict=True):
            cells += ["-" if one is None else upper(one), "" if one is None or best is None else factor(one - best)]
        yield cells


def less(whole: Policy) -> Iterator[tuple[str, Policy]]:
    """The whole search, and searches that lack one thing."""
    yield "nothing", whole
    for name in dict.fromkeys(LEMMAS[lemma].family for lemma in LEMMAS if lemma in whole.lemmas):
        yield name, replace(whole, lemmas=whole.lemmas - family(name))
    yield "random centres (T12-T14)", replace(whole, lemmas=whole.lemmas - CENTRES)
    yield "merged linear maps (A6, A7, V4)", replace(whole, meeting=False)
    yield "Gaussian comparison (K1, K2)", replace(whole, comparison=False)
    yield "refining levels (G12)", replace(whole, refining=False)
    yield "noise (V, G11)", replace(whole, laws=whole.laws - LAWS)


def upper(log10: float) -> str:
    """A bound by its logarithm, rounded up."""
    return up(10**log10) if log10 < 300 else f"10^{math.ceil(log10)}"


def factor(log10: float) -> str:
    """Three digits; powers of ten beyond 10^4."""
    return f"×{float(f'{10**log10:.3g}'):g}" if log10 < 4 else f"×10^{log10:.1f}"


if __name__ == "__main__":
    if "--quick" in sys.argv:
        print(main(quick=True))
    else:
        rows = without(Setting.of("edelman", n_train=10**6)) if "--without" in sys.argv else table()
        for row in rows:
            print("| " + " | ".join(row) + " |")
