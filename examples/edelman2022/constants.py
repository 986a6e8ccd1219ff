"""From the published constants to the best bound of the same gap, one ingredient at a time.

    python examples/edelman2022/constants.py [-o figures/constants.png]

Computed: the gap bound after each step; published: the gap bound with the published constants. The first and the last
are checked certificates, those between are closed forms.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import Values, run
from flint import arb

from boundcalc import Setting
from boundcalc.base.intervals import INTERVAL, upper_log
from boundcalc.base.rounding import up
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.search import Search
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure
from boundcalc.lab.figures.gap import describe
from boundcalc.lab.figures.names import BROWN, GREY, INK, PALE
from boundcalc.statements import gap
from boundcalc.statements.covers import ALWAYS, CENTRES, COUNTING, LEMMAS
from boundcalc.statements.network import Network
from boundcalc.theorems.policies import POLICIES

QUICK = {"quick": True}

_LN10 = math.log(10)
DEFAULT = Setting.of("edelman", depth=2, seq_len=512, n_train=10**6)


def capacity(network: Network, samples: arb) -> arb:
    """A1, A4: C_F with log N(e) <= C_F/e^2 on the loss, as every cost is at most y^2 times that at y = 1."""
    lemmas, total = [LEMMAS[name] for name in COUNTING | ALWAYS], arb(0)
    for piece in network.pieces:
        cost = arb(0)
        for member in piece.members:
            costs = [
                lemma.reach(target) ** 2 * lemma.closed(INTERVAL, arb(1), target, target.points.count(samples))
                for target in member.targets
                for lemma in lemmas
                if lemma.applies(target) is None
            ]
            cost = cost + member.multiplicity * min(costs)
        total = total + (cost * piece.gain**2) ** (arb(1) / 3)
    return total**3


def ladder(setting: Setting) -> Iterator[tuple[str, str, float]]:
    """What changes, the statements it is based on, and log10 of the gap bound after it."""
    sample = setting.sample
    m, confidence = arb(sample.n_train), arb(-math.log(sample.delta))
    deviation = 3 * gap.deviation(INTERVAL, confidence + INTERVAL.log(2), m)
    evaluator = Evaluator(setting)

    def covered(samples: int, *, published: bool = False) -> arb:
        return capacity(Network(setting, INTERVAL, published=published), arb(samples))

    def dudley(value: arb) -> float:
        return upper_log(2 * gap.complexity_published(INTERVAL, value, m) + deviation) / _LN10

    yield "published constants", "PUB", evaluator.value("published").log10
    yield "covers with explicit constants", "T1, T2", dudley(covered(sample.n_train, published=True))
    ours = covered(sample.n_train)
    yield "sharper Lipschitz factors of softmax and of a head", "L1, L7", dudley(ours)
    chained = gap.chain_closed(INTERVAL, ours, arb(2), m) + deviation
    yield "entropy chaining instead of Dudley's integral", "G1", upper_log(chained) / _LN10
    many = covered((1 + gap.CLOSED_GHOSTS) * sample.n_train)
    ghosts = gap.chain_closed(INTERVAL, many, gap.chain_factor(INTERVAL, gap.CLOSED_GHOSTS), m)
    ghosts = ghosts + gap.deviation(INTERVAL, confidence, m)
    yield "ghost samples instead of symmetrisation", "G2", upper_log(ghosts) / _LN10
    whole = replace(POLICIES["best"], comparison=False)
    bare = replace(whole, lemmas=whole.lemmas - CENTRES, refining=False, meeting=False, laws=frozenset())
    rungs = (
        (bare, "covers and scales chosen numerically", "A2, T3-T5"),
        (whole, "noise instead of covers, merged linear maps", "A6, A7, G11, G12"),
    )
    for policy, what, rests in rungs:
        search = Search(evaluator.paid, policy, log_union=evaluator.log_union, measured=evaluator.measured)
        value = evaluator.value(policy.name, search)
        if not value.trivial:
            yield what, rests, value.log10
    best = evaluator.value("best")
    if not best.trivial:
        yield "Gaussian comparison instead of covers", "K1, K2", best.log10


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """The gap bound after each step, and with the published constants: the first lie below the second."""
    del store
    steps = list(ladder(DEFAULT.but(depth=1) if quick else DEFAULT))
    published = 10 ** steps[0][2]
    return {name: 10**log10 for name, _, log10 in steps[1:]}, {name: published for name, _, _ in steps[1:]}


def collect(quick: bool = False, store: Path | None = None) -> Figure:
    """The steps."""
    del store
    setting = DEFAULT.but(depth=1) if quick else DEFAULT
    steps: list[Any] = [list(step) for step in ladder(setting)]
    title = f"From vacuous to {upper(steps[-1][2])}, step by step"
    caption = (
        "The bound of one gap, from the constants as published to the best bound of today, one ingredient at a time; "
        "the factor that each gains stands next to its bar. Grey: vacuous. The first and the last are checked "
        "certificates, those between are closed forms or searched with less allowed."
    )
    alt = (
        "A waterfall of bars from top to bottom on a logarithmic axis. The bound starts far in the vacuous range and "
        "ends well below one."
    )
    return Figure("constants", title, describe(setting), caption, alt, facts={"steps": steps})


def draw(figure: Figure) -> Any:
    """A bar from each gap bound to the next, on a logarithmic axis."""
    steps = figure.facts["steps"]
    drawn, (axes,) = canvas.sheet(figure, size=(5.6, 2.6))
    values = [10**log10 for _, _, log10 in steps]
    for row, (before, here) in enumerate(itertools.pairwise([values[0], *values])):
        if row:
            axes.barh(row, before - here, left=here, height=0.6, color=BROWN, alpha=0.55, gid=f"step:{row}")
        axes.plot([here, here], [row - 0.3, row + (1.3 if row + 1 < len(values) else 0.3)], color=INK, lw=0.9)
        gain = f"  {factor(math.log10(before / here)).replace('×', '÷')}" if row else ""
        heavy = "bold" if row in (0, len(values) - 1) else "normal"
        text = f"{upper(math.log10(here))}{gain}"
        axes.annotate(text, (before, row), xytext=(5, 0), textcoords="offset points", va="center", weight=heavy)
    low, high = min(values) / 2, max(values) * 600
    axes.set(xscale="log", xlim=(low, high), ylim=(len(values) - 0.4, -1.3), xlabel="bound of the generalization gap")
    axes.set_yticks(range(len(steps)), [f"{name} ({rests})" for name, rests, _ in steps])
    axes.axvspan(1, high, color=PALE, lw=0, zorder=0.5, gid="vacuous")
    axes.annotate("vacuous (1 or more)", (high / 1.2, -0.85), color=GREY, va="center", ha="right")
    return drawn


def upper(log10: float) -> str:
    """A bound by its logarithm, rounded up."""
    return up(10**log10) if log10 < 300 else f"10^{math.ceil(log10)}"


def factor(log10: float) -> str:
    """Three digits; powers of ten beyond 10^4."""
    return f"×{float(f'{10**log10:.3g}'):g}" if log10 < 4 else f"×10^{log10:.1f}"


def table() -> None:
    """The ladder as Markdown."""
    print("| from published to best | statement | gap | factor |\n| --- | --- | ---: | ---: |")
    before = None
    for name, rests, log10 in ladder(DEFAULT):
        print(f"| {name} | {rests} | {upper(log10)} | {'' if before is None else factor(before - log10)} |")
        before = log10


if __name__ == "__main__":
    if len(sys.argv) == 1:
        table()
    else:
        run(main, collect, draw, ("bound", "published"))
