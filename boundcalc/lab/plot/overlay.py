"""`overlay`: what training does, what certificates of one predictor promise, and what bounds of a class do, over m."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from boundcalc.base.errors import NoSolution, Unsupported
from boundcalc.engine.solve import solve
from boundcalc.lab.plot import canvas, measured, runs
from boundcalc.lab.plot.certified import WHY, groups
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.gap import SMALL
from boundcalc.lab.plot.lettering import finished, state
from boundcalc.lab.plot.predicted import curves
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import look
from boundcalc.lab.plot.words import functions, listed, rounded_up, sentence, short, trials_words
from boundcalc.setting import Setting

BOUNDS = ("best", "published")
_TIMED_AT = 1000
"""The m whose seconds are told, where it is there."""
_LEFT_OUT = ("gibbs",)
"""Not drawn: in the table of docs/certificates.md."""


def collect(spec: Spec) -> FigureData:
    """Trials, certificates, and curves for the class that holds the trials."""
    trials = runs.read(spec, vary="m")
    setting = measured.setting_of(trials, spec, spec.setting or Setting.of("edelman", seq_len=128, depth=1))
    seen = measured.errors(trials, "m", ("risk",), setting.sample.margin)
    values = spec.values or (16, 128, 1024, *(round(10 ** (k / 8)) for k in range(32, 65)))
    bounds = spec.bounds or BOUNDS
    predicted = curves(setting, "n_train", values, bounds, ("risk",))
    made = [group for group in _one_model_each(groups(spec, trials)) if group.method not in _LEFT_OUT]
    certified = [group.series for group in made]
    needs: dict[str, float | None] = {}
    for name in bounds:
        needs[name] = None
        with suppress(NoSolution, Unsupported):
            needs[name] = solve(setting, "m", SMALL, bound=name, quantity="risk", digits=3).value
    certificates = [group.to_json() for group in made]
    series = (*predicted, *seen, *certified)
    return runs.shown(series, trials, setting=setting.to_json(), needs=needs, certificates=certificates)


def _one_model_each(found: Sequence[Any]) -> list[Any]:
    """The default model's certificates of a method; another's where there are none."""
    chosen: dict[str, Any] = {}
    for group in found:
        if group.method not in chosen or not group.model:
            chosen[group.method] = group
    return list(chosen.values())


def draw(spec: Spec, data: FigureData) -> Any:
    """One panel; every line has its name at its end."""
    width = spec.size or "wide"
    figure = canvas.new_figure(width, 0.58 if width in ("wide", "neurips") else 0.95)
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axhline(1.0, color="#666666", lw=0.9, ls=(0, (1, 1.2)), zorder=1.2).set_gid("trivial")
    heights = canvas.Heights()
    names: list[tuple[float, float, str, str, str]] = []
    for one in data.of(kind="measured"):
        canvas.draw_measured(axes, one, heights, look(one.key, 0))
        last = max(i for i, y in enumerate(one.y) if y)
        below = one.x[last] * 1.3, float(one.y[last] or 1) / 4  # clear of the certificates' lines
        names.append((*below, "error of\ntrained models", look(one.key, 0).colour, "left"))
    ends: list[tuple[float, str, str]] = []
    for index, one in enumerate(data.of(kind="certificate")):
        seen = look(one.key, index)
        _draw_certificate(axes, one, seen.colour, seen.mark)
        ends.append((float(one.y[-1] or 1), _label(one, data), seen.colour))
    right = max((x for one in data.of(kind="certificate") for x in one.x), default=1e4)
    for y, text, colour in _apart(ends, 1.42 if width in ("wide", "neurips") else 1.6):
        axes.annotate(text, (right * 1.35, y), color=colour, va="center", fontsize=7)
    for index, one in enumerate(data.of(kind="bound")):
        seen = look(one.key, index)
        telling = [i for i, empty in enumerate(one.vacuous) if not empty and one.y[i] is not None]
        if not telling:
            continue
        heights_at = [float(one.y[i] or 1) for i in telling]
        line = axes.plot([one.x[i] for i in telling], heights_at, color=seen.colour, lw=2.0)[0]
        line.set_gid(canvas.gid(one))
        at = telling[len(telling) // 3]
        names.append(
            (
                one.x[at] / 1.25,
                float(one.y[at] or 1) / 2.2,
                f"{one.key}, at the\nnorms of trained models",
                seen.colour,
                "right",
            )
        )
    for x, y, text, colour, side in names:
        axes.annotate(text, (x, y), color=colour, ha=side, va="top", fontsize=7)
    silent = [one.key for one in data.of(kind="bound") if not one.telling]
    says = f"says nothing: {', '.join(silent)}" if silent else "says nothing"
    axes.annotate(says, (0.99, 1.12), xycoords=axes.get_yaxis_transform(), ha="right", va="bottom", fontsize=7)
    axes.set_xlabel("training samples m")
    axes.set_ylabel("risk: error on fresh examples")
    axes.set_ylim(top=2.2)
    about = trials_words(data.facts["task"], Setting.from_json(data.facts["setting"]), letter="m", trained=True)
    state(figure, finished(figure), about, spec.title)
    return figure


def _label(one: Series, data: FigureData) -> str:
    """Its name: what it is, on which model, and what one took."""
    name = "norms, a layer made for it" if one.key == "norms" else one.label
    return f"{name}{_seconds(one, data)}"


def _draw_certificate(axes: Any, one: Series, colour: str, mark: str) -> None:
    """Medians joined by a line, and the range of all runs."""
    y = [float(value or 1) for value in one.y]
    low = [a - float(b or a) for a, b in zip(y, one.low, strict=True)]
    high = [float(b or a) - a for a, b in zip(y, one.high, strict=True)]
    drawn = axes.errorbar(one.x, y, yerr=[low, high], color=colour, marker=mark or "o", ms=3.5, lw=1.1, elinewidth=0.7)
    drawn.lines[0].set(gid=canvas.gid(one), zorder=2.6)


def _seconds(one: Series, data: FigureData) -> str:
    """What one took, on one core."""
    for held in data.facts["certificates"]:
        if held["method"] == one.key:
            at = held["m"].index(_TIMED_AT) if _TIMED_AT in held["m"] else len(held["m"]) - 1
            return f" ({held['seconds'][at]:.1g} s)"
    return ""


def _apart(ends: Sequence[tuple[float, str, str]], factor: float) -> list[tuple[float, str, str]]:
    """Heights moved so that names do not run into each other: from below, each at least a factor above the last."""
    found: list[tuple[float, str, str]] = []
    for y, text, colour in sorted(ends):
        least = found[-1][0] * factor if found else 0.0
        found.append((max(y, least), text, colour))
    return found


def caption(spec: Spec, data: FigureData) -> str:
    """How far what is seen, what one predictor is certified by and what its class promises lie apart; and why."""
    del spec
    task, needs = data.facts["task"], data.facts["needs"]
    what = f"{functions(task)} among {task['T'][0]} bits"
    seen = next((one.settled(SMALL) for one in data.of(kind="measured")), None)
    of_class = needs.get("best")
    certified = {one.key: at for one in data.of(kind="certificate") if (at := _first_below(one)) is not None}
    parts = [f"on {what} the error of trained models is below {SMALL} from m = {short(seen)} on"] if seen else []
    if certified:
        parts.append(f"a certificate of one predictor says so from {_by_place(certified)}")
    silent = [f"`{one.key}`" for one in data.of(kind="bound") if not one.telling]
    if of_class is not None and certified:
        gap = math.log10(of_class / min(certified.values()))
        last = f"the bound at the norms of trained models from m = {rounded_up(of_class)}, {gap:.1f} orders of magnitude later"
        parts.append(last)
    if silent:
        end = short(max(x for one in data.of(kind="bound") for x in one.x))
        parts.append(f"{' and '.join(silent)} says nothing up to m = {end}")
    why = [
        f"{reason} ({name})"
        for name, reason in WHY.items()
        if any(one.key == name for one in data.of(kind="certificate"))
    ]
    runs_ = max((c for one in data.of(kind="certificate") for c in one.count), default=0)
    return (
        f"{sentence('; '.join(parts))} Where data are this easy a test set (holdout) certifies most; the others withhold "
        f"no example and say why the risk is small, by {', '.join(why)}, each of a predictor of its own (medians of "
        f"{runs_} runs, with the seconds each took at m = {_TIMED_AT})."
    )


def _first_below(one: Series) -> float | None:
    """The first place of the axis where a median is small."""
    return next((x for x, y in zip(one.x, one.y, strict=True) if y is not None and y <= SMALL), None)


def _by_place(places: Mapping[str, float]) -> str:
    """Which says so from where."""
    by: dict[float, list[str]] = {}
    for name, x in places.items():
        by.setdefault(x, []).append(name)
    return listed([f"m = {short(x)} ({', '.join(names)})" for x, names in sorted(by.items())])
