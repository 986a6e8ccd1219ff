"""How the steps until a parity is learned grow with T, for 2, 3 and 4 bits that matter, where some networks never
learn.

    python examples/edelman2022/parity_growth.py      (140 networks: ten minutes)

Computed: the fitted median of the steps, scale T^exponent; measured: the median over seeds; by (s, T). A network that
is looked at every so often tells an interval: it had learned at this look and not yet at the one before, or not at its
last one. Leaving out those that never got there, or counting them as if they just had, makes growth look slower than it
is. So the intervals themselves are fitted: log steps = a + b log T + noise of one normal law, by the likelihood that
each step lies where it was seen to lie.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import TINY_PARITY, Values, by, preset, run, trained
from scipy.special import log_ndtr

from boundcalc.base.errors import NoSolution
from boundcalc.lab.figures import canvas
from boundcalc.lab.figures.data import Figure, Series
from boundcalc.lab.figures.names import GREY

QUICK = {"quick": True}

LEARNED = 0.99
_COLOURS = ("#0B6E4F", "#3A8F2F", "#00695C")
_MARKS = "osD"

_Array = Any
_ROUNDS = 400
_LEAST_SPREAD = 0.02
"""Of the noise: trials that agree to the look leave none to be seen."""


class Waited(NamedTuple):
    """When one trial learned: the last look at which it had not, and the first at which it had (infinite: never)."""

    after: float
    until: float


class Waiting(NamedTuple):
    """Median steps are scale T^exponent, log steps at one length deviate by `spread`.

    The 95% bootstrap interval of the exponent draws trials anew within each length.
    """

    exponent: float
    low: float
    high: float
    scale: float
    spread: float

    def __call__(self, T: float) -> float:
        """The fitted median."""
        return self.scale * T**self.exponent


def growth(by_length: Mapping[float, Sequence[Waited]], *, draws: int = 1000, seed: int = 0) -> Waiting:
    """The power law of the steps, from trials by length."""
    if len(by_length) < 2 or not all(by_length.values()):
        raise NoSolution("growth needs trials at two lengths or more")
    lengths = np.repeat([float(T) for T in by_length], [len(some) for some in by_length.values()])
    every = [one for some in by_length.values() for one in some]
    if sum(math.isfinite(one.until) for one in every) < 3:
        raise NoSolution("growth needs three trials that learned: train longer (train.steps in the sweep)")
    low = np.log(np.array([max(one.after, 1e-9) for one in every]))
    high = np.log(np.array([one.until for one in every]))
    rng = np.random.default_rng(seed)
    chosen = [
        np.flatnonzero(lengths == T)[rng.integers(len(some), size=(draws, len(some)))] for T, some in by_length.items()
    ]
    fits = _fit(np.log(lengths)[None], low[None], high[None])
    which = np.concatenate(chosen, 1)
    again = _fit(np.log(lengths)[which], low[which], high[which])
    ends = np.quantile(again[:, 1], [0.025, 0.975])
    a, b, spread = (float(value) for value in fits[0])
    return Waiting(b, float(ends[0]), float(ends[1]), math.exp(a), spread)


def _fit(x: _Array, low: _Array, high: _Array) -> _Array:
    """Rows (a, b, spread) of the greatest likelihood, by expectation and maximisation: one fit for each row of
    trials."""
    middle = x.mean(1, keepdims=True)
    x = x - middle
    seen = np.where(np.isfinite(high), (np.maximum(low, high - 1) + high) / 2, low + 0.5)
    a, b, spread = seen.mean(1), np.zeros(len(x)), np.maximum(seen.std(1), 0.3)
    for _ in range(_ROUNDS):
        mean = a[:, None] + b[:, None] * x
        expected, variance = _within(mean, spread[:, None], low, high)
        old = (a, b)
        a = expected.mean(1)
        b = (x * expected).sum(1) / (x**2).sum(1)
        rest = (expected - a[:, None] - b[:, None] * x) ** 2 + variance
        spread = np.maximum(np.sqrt(rest.mean(1)), _LEAST_SPREAD)
        if max(np.abs(a - old[0]).max(), np.abs(b - old[1]).max()) < 1e-7:
            break
    return np.stack([a - b * middle[:, 0], b, spread], 1)


def _within(mean: _Array, spread: _Array, low: _Array, high: _Array) -> tuple[_Array, _Array]:
    """Mean and variance of a normal number that is known to lie between low and high."""
    left, right = (low - mean) / spread, (high - mean) / spread
    mirrored = left > 0  # the lower tail, where nothing cancels
    left, right = np.where(mirrored, -right, left), np.where(mirrored, -left, right)
    tails = log_ndtr(left), log_ndtr(right)
    mass = tails[1] + np.log1p(-np.exp(np.minimum(tails[0] - tails[1], -1e-300)))
    at_left, at_right = (np.exp(-(x**2) / 2 - mass) / math.sqrt(2 * math.pi) for x in (left, right))
    finite = [np.where(np.isfinite(x), x, 0.0) for x in (left, right)]
    shift = np.clip(at_left - at_right, left, right)
    variance = 1 + finite[0] * at_left - finite[1] * at_right - shift**2
    return mean + spread * np.where(mirrored, -shift, shift), spread**2 * np.clip(variance, 0.0, 1.0)


def waited(record: Any) -> Waited:
    """Between which looks a network learned."""
    points = record.result["curves"]
    steps = [float(point["step"]) for point in points]
    first = next((k for k, point in enumerate(points) if 1 - point["test_error"] >= LEARNED), None)
    if first is None:
        return Waited(steps[-1], math.inf)
    return Waited(steps[first - 1] if first else 0.0, steps[first])


SHORT = ({"s": 2, "T": [10, 20, 40, 60]}, {"s": 3, "T": [10, 20, 30]}, {"s": 4, "T": [10, 15, 20]})
"""Of the cells of the preset those where nearly all seeds learn, a fifth of its training: what the figure shows."""


def steps_of(
    quick: bool, store: Path | None, **changes: Any
) -> tuple[dict[float, dict[float, list[Waited]]], list[Any]]:
    """When every network learned, by s and T."""
    sweep = {"name": "growth", "task": {"task": "parity"}, **TINY_PARITY, "grid": {"s": 2, "T": [4, 6]}}
    records = trained(sweep if quick else preset("parity-growth", **changes), store)
    waits: dict[float, dict[float, list[Waited]]] = {}
    for (s, length), some in by(records, "s", "T").items():
        waits.setdefault(s, {})[length] = [waited(record) for record in some]
    return waits, records


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """Fitted and measured medians, where more than half of the seeds learn."""
    waits, _ = steps_of(quick, store)
    computed: Values = {}
    measured: Values = {}
    for s, lengths in waits.items():
        with suppress(NoSolution):
            law = growth(lengths)
            print(f"s = {s}: T^{law.exponent:.2f} [{law.low:.2f}, {law.high:.2f}]")
            for length, some in lengths.items():
                middle = statistics.median_high(one.until for one in some)
                if math.isfinite(middle):
                    computed[s, length], measured[s, length] = law(length), middle
    return computed, measured


def growth_of(quick: bool, store: Path | None) -> tuple[list[Series], dict[str, Any], str]:
    """Medians and ranges by s and T (`SHORT`); how many learn, the fitted laws and the budget.

    The exponents in words.
    """
    waits, records = steps_of(quick, store, grid=list(SHORT))
    series: list[Series] = []
    laws: dict[str, Any] = {}
    learned: dict[str, list[list[int]]] = {}
    for s, lengths in waits.items():
        ends: list[list[float | None]] = [[], [], []]
        for some in lengths.values():
            steps = sorted(one.until for one in some)
            for end, value in zip(ends, (statistics.median_high(steps), steps[0], steps[-1]), strict=True):
                end.append(value if math.isfinite(value) else None)
            learned.setdefault(f"{s:g}", []).append([sum(math.isfinite(step) for step in steps), len(steps)])
        middle, low, high = (tuple(end) for end in ends)
        x = tuple(float(length) for length in lengths)
        series.append(Series(f"s = {s:g}", "measured", "steps", x, middle, low, high))
        with suppress(NoSolution):
            laws[f"{s:g}"] = growth(lengths)._asdict()
    budget = max(record.config["optimisation"]["steps"] for record in records)
    words = [f"s = {s}: {law['exponent']:.1f} [{law['low']:.1f}, {law['high']:.1f}]" for s, law in laws.items()]
    return series, {"laws": laws, "learned": learned, "budget": budget}, ", ".join(words)


def draw_growth(axes: Any, figure: Figure) -> None:
    """Medians; bars over all seeds, which are arrows where some seeds never learn."""
    budget, shown = figure.facts["budget"], figure.of(quantity="steps")
    every = sorted({x for one in shown for x in one.x})
    canvas.lengths(axes, every)
    axes.set(yscale="log", xlabel="bits T", ylabel="training steps until 99% are right", ylim=(30, 3.2 * budget))
    axes.axhline(budget, color=GREY, lw=0.8, ls=(0, (1, 1.5)), gid="budget")
    axes.annotate(
        f"budget: {budget:,.0f} steps", (every[0], budget), xytext=(0, 3), textcoords="offset points", color=GREY
    )
    labels = []
    for k, one in enumerate(shown):
        s, colour, shift = one.key.removeprefix("s = "), _COLOURS[k % 3], 1.03 ** (k - 1)
        rows = zip(one.x, one.y, one.low, one.high, figure.facts["learned"][s], strict=True)
        for x, middle, low, high, (learned, seeds) in rows:
            at = x * shift
            if low is not None:
                axes.plot([at, at], [low, high or 1.4 * budget], color=colour, lw=0.9, alpha=0.6)
            if high is None:
                axes.plot([at], [1.4 * budget], marker="^", color=colour, ms=4)
                axes.annotate(
                    f"{learned}/{seeds}",
                    (at, 1.4 * budget),
                    xytext=(4, 4 + 8 * k),
                    textcoords="offset points",
                    ha="right",
                    color=colour,
                    fontsize=6.5,
                )
            if middle is not None:
                axes.plot(
                    [at], [middle], marker=_MARKS[k % 3], ms=4.5, color=colour, mfc="white" if high is None else colour
                )
        law = figure.facts["laws"].get(s)
        if law is not None:
            fitted = [law["scale"] * x ** law["exponent"] for x in every]
            axes.plot(every, fitted, color=colour, ls=(0, (1, 2)), lw=0.7)  # dotted beyond the data
            seen = [(x, y) for x, y in zip(every, fitted, strict=True) if x <= one.x[-1]]
            axes.plot(*zip(*seen, strict=True), color=colour, ls=(0, (4, 1.6)), lw=1)
            text = f"s = {s}: $T^{{{law['exponent']:.1f}}}$ [{law['low']:.1f}, {law['high']:.1f}]"
            labels.append(((every[-1], fitted[-1]), text, colour))
    canvas.end_labels(axes, labels)


if __name__ == "__main__":
    run(main, words=("fitted steps", "median steps"))
