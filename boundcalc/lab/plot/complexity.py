"""`sample-complexity`: how many samples are needed at each length, measured and promised."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from boundcalc.base.errors import InvalidSetting, NoSolution
from boundcalc.base.numbers import FLOAT
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.predicted import least_samples
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.words import at_most, decades, setting_words, task_words
from boundcalc.setting import Setting
from boundcalc.statements.gap import support_floor

_DEFAULT_BOUNDS = ("best", "log-T", "trauger", "parameters")
LENGTHS = (32, 64, 128, 256, 512, 1024)
_SPARSE = 3
_FIT_KEYS = {"log": "second", "power": "third", "linear": "fourth"}
_FIT_NAMES = {"log": "$a + b\\,\\log T$", "power": "$a\\,T^b$", "linear": "$a + b\\,T$"}


def collect(spec: Spec) -> FigureData:
    """Measured m* and its fits, the floor, the finite class, and the m each bound asks for."""
    facts: dict[str, Any] = {"target": spec.target, "share": spec.share}
    series: list[Series] = []
    trials: tuple[str, ...] = ()
    base = spec.setting or Setting.of("edelman", depth=1)
    s, lengths = _SPARSE, [float(v) for v in spec.values] or [float(v) for v in LENGTHS]
    if spec.store:
        from boundcalc.lab.plot import measured as runs

        chosen = runs.read(spec, vary=("T", "m"))
        found, s, lengths, extra = _thresholds(spec, chosen)
        series += found
        facts |= extra
        facts["task"] = runs.described(chosen)
        trials = tuple(record.hash for record in chosen)
        base = runs.setting_of(chosen, spec, base)
    settings = [
        (T, base.but(seq_len=round(T) + 1, delta=1 - spec.share, train_error=0.0)) for T in lengths
    ]  # a row of its own is read out beside the T bits
    series += references(s, lengths, spec.target, 1 - spec.share)
    series.append(_explicit(s, lengths, spec.target, 1 - spec.share))
    for name in spec.bounds or _DEFAULT_BOUNDS:
        series.append(least_samples(settings, name, spec.target))
    facts |= {"s": s, "setting": base.to_json()}
    return FigureData(tuple(series), facts, trials)


def references(s: int, lengths: list[float], target: float, delta: float) -> list[Series]:
    """The counting floor, and the samples with which every consistent hypothesis of the finite class is good."""
    from boundcalc.lab.train.tasks import task_from_json

    floor = [max(0.0, support_floor(FLOAT, s, T)) for T in lengths]
    tasks = [task_from_json({"task": "conjunction", "T": round(T), "s": s}) for T in lengths]
    finite = [task.complexity().finite_class_samples(target, delta) for task in tasks]
    x = tuple(lengths)
    return [
        Series("finite-class", "any consistent learner", "bound", "m", x, tuple(finite)),
        Series("floor", "counting floor", "reference", "m", x, tuple(floor)),
    ]


def _explicit(s: int, lengths: list[float], target: float, delta: float) -> Series:
    """What the best bound asks for with the norms of certified weights that represent every threshold of s bits."""
    from boundcalc.lab.represent.samples import sample_complexity

    found: list[float | None] = []
    for T in lengths:
        needed: list[float] = []
        for positions in ("orthonormal", "compact"):
            with suppress(InvalidSetting):  # few positions fit into fewer dimensions than there are
                (row,) = sample_complexity(
                    s, round(T), target, delta, name="threshold", positions=positions, policies=("best",)
                ).rows
                needed += [] if row.solution is None else [row.solution.value]
        found.append(min(needed, default=None))
    return Series("eighth", "explicit weights", "bound", "m", tuple(lengths), tuple(found))


def _thresholds(spec: Spec, records: Any) -> tuple[list[Series], int, list[float], dict[str, Any]]:
    from boundcalc.lab.plot import measured as runs
    from boundcalc.lab.train.threshold import analyse, cells

    if runs.where(records[0], "s") is None:
        raise NoSolution("sample-complexity is about functions of s hidden bits: --runs task=conjunction")
    found = analyse(cells(records, 1 - spec.target), level=spec.share)
    x = tuple(float(t.T) for t in found.thresholds)
    kept = found.thresholds
    series = [
        Series(
            "measured",
            "measured m*, 95% interval",
            "measured",
            "m",
            x,
            tuple(t.m_star for t in kept),
            (),
            tuple(t.low for t in kept),
            tuple(t.high for t in kept),
            tuple(t.trials for t in kept),
        )
    ]
    for fit in found.fits:
        label = _FIT_NAMES[fit.model]
        series.append(Series(_FIT_KEYS[fit.model], label, "fit", "m", x, tuple(fit(T) for T in x)))
    return series, int(runs.where(records[0], "s")), list(x), {"threshold": found.to_json()}


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, everything on one axis; right, the measured thresholds and their fits, near enough to be told apart."""
    measured = data.of(kind="measured")
    count = 2 if measured else 1
    width = spec.size or ("wide" if measured else "column")
    figure = canvas.new_figure(width, canvas.ratio_for(count, width, 0.85))
    places = canvas.panels(figure, count, width)
    every = [s for s in data.series if s.kind != "fit" and any(s.y)]
    _panel(places[0], every, data)
    places[0].set_ylabel("samples m")
    if measured:
        near = [s for s in data.series if s.kind in ("measured", "fit", "reference")]
        _panel(places[1], near, data)
        places[1].set_ylabel("samples m, measured")
        low = min(v for s in near for v in s.y if v)
        places[1].yaxis.set_major_formatter(lambda v, _: f"{v:g}")
        places[1].yaxis.set_minor_formatter(lambda v, _: f"{v:g}" if str(v)[0] in "235" else "")
        places[1].set_ylim(bottom=low * 0.8)
    base, task = Setting.from_json(data.facts["setting"]), data.facts.get("task")
    hidden = ("seq_len", "n_train", "delta", *(("depth", "d", "heads") if task else ()))
    about = setting_words(base, but=hidden, trained=bool(task) and spec.norms == "runs")
    if task:
        about = f"{task_words(task, but=('T', 'm'))} · bounds: {about.partition(' · ')[2]}"
    finish(figure, f"risk at most {spec.target:g} with probability {spec.share:g} · {about}", title=spec.title)
    return figure


def _panel(axes: Any, series: list[Series], data: FigureData) -> None:
    heights = canvas.Heights()
    canvas.draw_all(axes, series, heights)
    axes.set_yscale("log")
    axes.set_xscale("log", base=2)
    ticks = sorted({x for s in series for x in s.x})
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.minorticks_on()
    axes.xaxis.set_minor_locator(_none())
    axes.set_xlabel(f"T (bits, of which {data.facts['s']} matter)")


def _none() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _ends(one: Series) -> str:
    """The first and the last m."""
    known = [(x, y) for x, y in zip(one.x, one.y, strict=True) if y]
    (first, low), (last, high) = known[0], known[-1]
    return f"m = {at_most(low)} at T = {first:g} and {at_most(high)} at T = {last:g}"


def caption(spec: Spec, data: FigureData) -> str:
    """How far the least bound is from what was measured, and what the fits say."""
    best = min(
        (s for s in data.of(kind="bound") if s.key not in ("finite-class", "eighth") and any(s.y)),
        key=lambda s: min(v for v in s.y if v),
        default=None,
    )
    sentences: list[str] = []
    if best is not None:
        which = "the class that holds the trained models" if spec.norms == "runs" else "the class of the setting"
        sentences.append(
            f"For risk {spec.target:g} with probability {spec.share:g}, the {best.label} asks for {_ends(best)} in {which}"
            + "".join(
                f", for {_ends(one)} with the norms of explicit weights" for one in data.series if one.key == "eighth"
            )
            + "."
        )
    hopeless = [s.label for s in data.of(kind="bound") if not any(s.y)]
    if hopeless:
        sentences.append(f"{', '.join(hopeless)}: no m up to 10^18 is enough.")
    measured = data.of(kind="measured")
    if measured:
        one = measured[0]
        first, last = one.y[0] or math.nan, one.y[-1] or math.nan
        far = [v / y for v, y in zip(best.y, one.y, strict=True) if v and y] if best else []
        text = f"Training needs m* = {first:.1f} to {last:.1f}"
        if best and far:
            text += f", at every T at least {decades(min(far))} fewer than the {best.label} asks for in that class"
        sentences.append(f"{text}.")
        sentences += data.facts["threshold"]["words"]
    return " ".join(sentences)
