"""How many examples a conjunction of s of T bits takes in training, and how that grows with T.

    python examples/edelman2022/samples.py [-o figures/samples.png]                   (1920 networks: six minutes)
    python examples/edelman2022/samples.py --sweep conjunction-half --share 0.5       (T to 4096, 6400 networks: an
    hour) python examples/edelman2022/samples.py --sweep conjunction-natural-4096 --sparsity 2

Computed: the information-theoretic minimum G8: with fewer examples no learner finds the bits. Measured: m*, the number
of examples with which a share of the trials reaches 99% on new sequences, by T.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from common import TINY, Values, preset, run, trained
from thresholds import Analysis, analyse, cells, words_of

from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.gap import least_m
from boundcalc.lab.figures.names import BROWN, GREEN, GREY, INK, LONG, look
from boundcalc.lab.figures.trials import class_of, describe
from boundcalc.setting import Setting

QUICK = {"quick": True}

TARGET = 0.01
"""The risk that counts as learned."""
_LAWS = {"log": "a + b log T", "power": "a T^b", "linear": "a + b T"}
_WITH = {"conjunction-half": (), "conjunction-natural-4096": ("conjunction-natural",)}
"""Presets that go with another one."""


def records(quick: bool, store: Path | None, sweep: str, sparsity: int) -> tuple[list[Any], float]:
    """Trials, and the risk that counts as learned (tiny networks on few examples learn less)."""
    if quick:
        tiny = {"name": "samples", "task": {"task": "conjunction", "s": 2}, **TINY, "seeds": 4, "n_test": 256}
        return trained({**tiny, "grid": {"T": [8, 12, 16], "m": [6, 12, 24, 48]}}, store), 0.05
    trials = [record for name in (*_WITH.get(sweep, ()), sweep) for record in trained(preset(name), store)]
    return [record for record in trials if sparsity in (0, record.config["task"]["s"])], TARGET


def main(
    quick: bool = False, store: Path | None = None, sweep: str = "conjunction", share: float = 0.8, sparsity: int = 0
) -> tuple[Values, Values]:
    """The information-theoretic minimum and m*, by T."""
    chosen, target = records(quick, store, sweep, sparsity)
    analysis = analyse(cells(chosen, 1 - target), level=share)
    for line in words_of(analysis):
        print(line)
    s = int(chosen[0].config["task"]["s"])
    return {t.T: support_floor(s, t.T) for t in analysis.thresholds}, {t.T: t.m_star for t in analysis.thresholds}


def support_floor(s: int, length: int) -> float:
    """G8: labels without which no learner finds the bits with probability 1/2: log_2 binom(T, s) - 1."""
    return math.log2(math.comb(length, s)) - 1


def consistent(s: int, length: int, risk: float, delta: float) -> float:
    """The examples with which every conjunction of s of T bits that fits them has a small risk: a union bound over
    them."""
    return (math.log(math.comb(length, s)) - math.log(delta)) / -math.log1p(-risk)


def collect(
    quick: bool = False, store: Path | None = None, sweep: str = "conjunction", share: float = 0.8, sparsity: int = 0
) -> Figure:
    """m* with its fits, the floor, any learner without training errors, and the best bound of the networks' class."""
    chosen, target = records(quick, store, sweep, sparsity)
    counted = cells(chosen, 1 - target)
    analysis = analyse(counted, level=share)
    s, T = int(chosen[0].config["task"]["s"]), [t.T for t in analysis.thresholds]
    base = class_of(chosen, Setting.of("edelman", depth=1, margin=0.5)).but(delta=1 - share, train_error=0.0)
    rows = {
        "consistent": ("bound", [consistent(s, at, target, 1 - share) for at in T]),
        "floor": ("reference", [support_floor(s, at) for at in T]),
        "best": ("bound", [least_m(base.but(seq_len=at + 1), "best", target) for at in T]),
    }
    x = tuple(float(at) for at in T)
    stars = [(float(t.T), t.m_star, t.low, t.high) for t in analysis.thresholds]
    series = [Series.of_rows("median", "measured", "m", stars)]
    for at in T:
        rates = [(float(one.m), one.successes / one.n) for one in counted if at == one.T]
        series.append(Series.of_rows("share", "measured", "share", rates, f"{at}"))
    series += [Series(key, kind, "m", x, tuple(values)) for key, (kind, values) in rows.items()]
    series += [Series(fit.model, "fit", "m", x, tuple(fit(at) for at in T)) for fit in analysis.fits]
    facts = {
        "share": share,
        "target": target,
        "fits": [vars(fit) for fit in analysis.fits],
        "words": words_of(analysis),
    }
    caption = (
        f"Left: share of networks that reach {1 - target:.0%} on new sequences. Middle: examples m* with which "
        f"{share:.0%} do, 95% bootstrap intervals, and fits (AIC above the best one). Right, next to what is proved: "
        "the fewest examples any learner needs, those with which every consistent conjunction is right, and the best "
        "bound at the networks' norms."
    )
    alt = (
        "Curves rise from no network to all, further right the more bits there are; the number of examples needed "
        "grows by about the same amount at each doubling. Right, the measured points lie between a floor and two "
        "proved bounds, the upper one 10^5 times higher."
    )
    return Figure("samples", title(analysis), describe(chosen), caption, alt, tuple(series), facts)


def title(analysis: Analysis) -> str:
    """What the longest sequences cost, against the shortest: as measured, by no law."""
    first, last = analysis.thresholds[0], analysis.thresholds[-1]
    return f"{last.T / first.T:g} times longer sequences need {last.m_star / first.m_star:.1f} times the examples"


def draw(figure: Figure) -> Any:
    """Left, shares of networks; then the measured m* with fits; right, on one axis, what is proved."""
    drawn, (shares, left, right) = canvas.sheet(figure, 3, size=(6.8, 2.5))
    (seen,) = figure.of(key="median")
    rates = figure.of(key="share")
    for k, one in enumerate(rates):
        curve = one.known()
        alpha = 1 - 0.7 * (1 - k / max(1, len(rates) - 1))  # which a dark theme keeps
        style = {"color": GREEN, "alpha": alpha, "lw": 1, "marker": ".", "ms": 3}
        shares.plot(list(curve), list(curve.values()), label=f"T = {one.panel}", **style)
    shares.axhline(figure.facts["share"], color=GREY, lw=0.6, ls=(0, (1, 2)), zorder=1)
    shares.set(xlabel="training sequences m", ylabel=f"networks with {1 - figure.facts['target']:.0%} right")
    canvas.percent(shares.yaxis)
    shares.legend(loc="lower right", fontsize=6, handlelength=1.2)
    y = [float(value or 0) for value in seen.y]
    spans = [
        [a - (b or a) for a, b in zip(y, seen.low, strict=True)],
        [(b or a) - a for a, b in zip(y, seen.high, strict=True)],
    ]
    for axes in (left, right):
        axes.errorbar(seen.x, y, yerr=spans, fmt="o", ms=3.5, color=GREEN, elinewidth=0.8, zorder=4)
        canvas.lengths(axes, seen.x, most=3)
        axes.set(xlabel="bits T")
    least = min((fit["aic"] for fit in figure.facts["fits"]), default=0.0)
    names = {fit["model"]: f"{_LAWS[fit['model']]}, AIC +{fit['aic'] - least:.1f}" for fit in figure.facts["fits"]}
    for one, dashes in zip(figure.of(kind="fit"), ("-", (0, (4, 1.6)), (0, (1, 1.3))), strict=False):
        left.plot(one.x, one.known().values(), color=GREY, ls=dashes, lw=1, label=names[one.key])
    left.legend(loc="upper left", fontsize=6, handlelength=1.5)
    left.set_ylim(top=1.3 * max(y))
    left.set(ylabel=f"m*: {figure.facts['share']:.0%} of networks reach {1 - figure.facts['target']:.0%}")
    right.set(yscale="log", ylabel="training sequences m")
    labels = [((seen.x[-1], y[-1]), "measured m*", GREEN)]
    for key, name, colour, dashes in (
        ("floor", look("floor").name, GREY, look("floor").dashes),
        ("consistent", "any learner that\nfits the data", BROWN, LONG),
        ("best", "best bound, norms\nof trained networks\n(chosen after training)", BROWN, "-"),
    ):
        for one in figure.of(key=key):
            curve = list(one.known().items())
            right.plot(
                [at for at, _ in curve], [m for _, m in curve], color=colour, ls=dashes, lw=2 if key == "best" else 1.2
            )
            labels.append((curve[-1], name, colour))
    canvas.end_labels(right, labels)
    verdict = figure.facts["words"][-1]
    canvas.note(
        drawn, f"Bars: 95% bootstrap over networks. {verdict}".replace("(a power law: 0), ", "(a power law: 0),\n")
    )
    left.tick_params(colors=INK)
    return drawn


if __name__ == "__main__":
    run(main, collect, draw, ("floor", "measured m*"))
