"""`sample-complexity`: how many samples are needed at each length, measured and promised."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

from boundcalc.base.errors import NoSolution
from boundcalc.base.numbers import FLOAT
from boundcalc.lab.plot import canvas
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.predicted import least_samples
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import look
from boundcalc.lab.plot.words import decades, rounded_up, setting_words, short, task_words
from boundcalc.setting import Setting
from boundcalc.statements.gap import support_floor

_DEFAULT_BOUNDS = ("best", "log-T")
LENGTHS = (32, 64, 128, 256, 512, 1024)
_BEYOND = (4096, 16384, 65536)
"""Lengths beyond those of trials, at which only what needs no trained norms is shown."""
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
        from boundcalc.lab.plot import measured, runs

        chosen = runs.read(spec, vary=("T", "m"))
        found, s, lengths, extra = _thresholds(spec, chosen)
        series += found
        facts |= extra
        facts["task"] = runs.described(chosen)
        trials = tuple(record.hash for record in chosen)
        series += _certified(spec, chosen)
        base = measured.setting_of(chosen, spec, base)
    reach = lengths if spec.values else [*lengths, *(float(T) for T in _BEYOND if lengths[-1] < T)]
    settings = [
        (T, base.but(seq_len=round(T) + 1, delta=1 - spec.share, train_error=0.0)) for T in lengths
    ]  # a row of its own is read out beside the T bits
    series += references(s, reach, spec.target, 1 - spec.share)
    for name in spec.bounds or _DEFAULT_BOUNDS:
        one = least_samples(settings, name, spec.target)
        series.append(replace(one, label=f"{name}, norms of trained models") if spec.norms == "runs" else one)
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


def _certified(spec: Spec, records: Any) -> list[Series]:
    """The least m tried from which on certificates of one predictor promise the target: the best and the last method."""
    from boundcalc.lab.plot import runs
    from boundcalc.lab.plot.certified import groups

    if "certified" not in spec.runs:
        return []
    rows: list[tuple[float, float, float]] = []
    for T, some in runs.grouped(records, "T"):
        with suppress(NoSolution):  # none of this length
            medians = [one.series for one in groups(spec, some)]
            enough = [
                next(m for m, y in zip(one.x, one.y, strict=True) if y is not None and y <= spec.target)
                for one in medians
                if any(y is not None and y <= spec.target for y in one.y)
            ]
            if enough:
                rows.append((T, min(enough), max(enough)))
    if not rows:
        return []
    x, low, high = zip(*rows, strict=True)
    return [Series("holdout", "certificates of one predictor", "certificate", "m", x, low, (), low, high)]


def _thresholds(spec: Spec, records: Any) -> tuple[list[Series], int, list[float], dict[str, Any]]:
    from boundcalc.lab.plot import runs
    from boundcalc.lab.train.threshold import analyse, cells

    if runs.where(records[0], "s") is None:
        raise NoSolution("sample-complexity is about functions of s hidden bits: --runs task=conjunction")
    found = analyse(cells(records, 1 - spec.target), level=spec.share)
    x = tuple(float(t.T) for t in found.thresholds)
    rows = [(t.T, (t.m_star, t.low, t.high), t.trials) for t in found.thresholds]
    series = [Series.measured("measured", "measured m*, 95% interval", "m", rows)]
    for fit in found.fits:
        label = _FIT_NAMES[fit.model]
        series.append(Series(_FIT_KEYS[fit.model], label, "fit", "m", x, tuple(fit(T) for T in x)))
    return series, int(runs.where(records[0], "s")), list(x), {"threshold": found.to_json()}


def draw(spec: Spec, data: FigureData) -> Any:
    """Left, everything on one axis; right, the measured thresholds and their fits, near enough to be told apart."""
    measured = data.of(kind="measured")
    figure, places = canvas.sheet(spec, 2 if measured else 1, 0.85)
    every = [s for s in data.series if s.kind not in ("fit", "certificate") and any(s.y)]
    _panel(places[0], every, data)
    for one in data.of(kind="certificate"):
        _draw_certified(places[0], one)
    places[0].set_ylabel("samples m")
    if measured:
        last = max(x for one in measured for x in one.x)
        near = [_until(last, s) for s in data.series if s.kind in ("measured", "fit", "reference")]
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
        about = f"{task_words(task, but=('T', 'm'))} · black: {about.partition(' · ')[2]}"
    finish(figure, f"risk at most {spec.target:g} with probability {spec.share:g} · {about}", title=spec.title)
    return figure


def _until(last: float, one: Series) -> Series:
    """A reference as far as trials go."""
    if one.kind != "reference":
        return one
    kept = [(x, y) for x, y in zip(one.x, one.y, strict=True) if x <= last]
    return replace(one, x=tuple(x for x, _ in kept), y=tuple(y for _, y in kept))


def _draw_certified(axes: Any, one: Series) -> None:
    """From the m of the best method to that of the last one that gets there; named in the key."""
    colour = look(one.key).colour
    y = [float(value or 1) for value in one.y]
    above = [float(high or 1) - at for high, at in zip(one.high, y, strict=True)]
    label = "certificates of one predictor, best to last method"
    drawn = axes.errorbar(one.x, y, yerr=[[0.0] * len(y), above], fmt="s", ms=3.5, color=colour, label=label)
    drawn.lines[0].set(gid=canvas.gid(one), zorder=3.4)


def _panel(axes: Any, series: list[Series], data: FigureData) -> None:
    heights = canvas.Heights()
    canvas.draw_all(axes, series, heights)
    axes.set_yscale("log")
    x = [x for s in series for x in s.x]
    (canvas.few_lengths if max(x) >= _BEYOND[0] else canvas.plain_lengths)(axes, x)
    axes.set_xlabel(f"T (bits, of which {data.facts['s']} matter)")


def _ends(one: Series) -> str:
    """The first and the last m."""
    known = [(x, y) for x, y in zip(one.x, one.y, strict=True) if y]
    (first, low), (last, high) = known[0], known[-1]
    return f"m = {rounded_up(low)} at T = {first:g} and {rounded_up(high)} at T = {last:g}"


def caption(spec: Spec, data: FigureData) -> str:
    """How far the least bound is from what was measured, and what the fits say."""
    of_class = [s for s in data.of(kind="bound", panel="main") if s.key != "finite-class"]
    best = min((s for s in of_class if any(s.y)), key=lambda s: min(v for v in s.y if v), default=None)
    sentences: list[str] = [f"Samples for risk {spec.target:g} with probability {spec.share:g}."]
    if best is not None:
        which = "the class that holds the trained models" if spec.norms == "runs" else "the class of the setting"
        sentences.append(f"`{best.key}` asks for {_ends(best)} in {which}.")
    for one in data.of(kind="certificate"):
        ends = f"{short(float(one.y[0] or 0))} to {short(float(one.high[0] or 0))}"
        sentences.append(f"Certificates of one trained predictor reach it with m = {ends} (T = {one.x[0]:g}).")
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
            text += f", at every T at least {decades(min(far))} fewer than `{best.key}` asks for in that class"
        sentences.append(f"{text}.")
        sentences += data.facts["threshold"]["words"]
    return " ".join(sentences)
