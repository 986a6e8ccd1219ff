"""`tightness`: how many times more samples than training needed a bound asks for, gap by gap."""

from __future__ import annotations

from typing import Any, cast

from boundcalc.base.errors import NoSolution, Unsupported
from boundcalc.engine.solve import Quantity, solve
from boundcalc.lab.plot import canvas, gap, measured, runs
from boundcalc.lab.plot.data import FigureData, Series
from boundcalc.lab.plot.lettering import finish
from boundcalc.lab.plot.spec import Spec
from boundcalc.lab.plot.style import look
from boundcalc.lab.plot.words import called, short, trials_words
from boundcalc.setting import Setting

_DEFAULT_BOUNDS = ("best", "trauger", "parameters", "log-T", "closed", "published")
GUESSING = 0.45
"""Where a measured gap is this large nothing was learned, so that no samples were needed for it."""


def collect(spec: Spec) -> FigureData:
    """For every gap that was measured with m samples: the samples from which on a bound promises it, over m.

    The values of bounds at the trials' own m would not do: there each is trivial or vacuous, so a ratio of values
    compares what was measured with nothing.
    """
    chosen = runs.read(spec, vary="m")
    setting = measured.setting_of(chosen, spec, gap.setting_of(spec.but(figure="gap-vs-m")))
    quantity = cast("Quantity", spec.quantities[0])
    seen = measured.errors(chosen, "m", [quantity], setting.sample.margin)[0]
    reached = sorted((y, m) for m, y in seen.known().items() if 0 < y < GUESSING)
    if not reached:
        raise NoSolution("there is nothing to compare with: no trial measured a gap above 0 that is not guessing")
    series = [_ratio(name, quantity, setting, reached) for name in spec.bounds or _DEFAULT_BOUNDS]
    if not any(one.known() for one in series):
        raise NoSolution(f"there is nothing to draw: no bound promises these gaps ({series[0].refusal})")
    return runs.shown((seen, *series), chosen, setting=setting.to_json(), quantity=quantity)


def _ratio(name: str, quantity: Quantity, setting: Setting, reached: list[tuple[float, float]]) -> Series:
    """Samples asked for over samples used, by the value that was measured."""
    found: list[float | None] = []
    refusal = ""
    for value, m in reached:
        try:
            found.append(solve(setting, "m", value, bound=name, quantity=quantity, digits=3).value / m)
        except (NoSolution, Unsupported) as error:
            found.append(None)
            refusal = refusal or str(error)
    x = tuple(value for value, _ in reached)
    return Series(name, called(name), "bound", "ratio", x, tuple(found), refusal=refusal, panel="ratio")


def draw(spec: Spec, data: FigureData) -> Any:
    """Ratios on log axes; 1 would be a bound met exactly."""
    figure, (axes,) = canvas.sheet(spec, 1, 0.85)
    shown = data.of(panel="ratio")
    canvas.refuse_mixture(shown)
    for index, one in enumerate(shown):
        canvas.draw_curve(axes, one, canvas.Heights(), look(one.key, index), index)
    line = axes.axhline(1, color="#666666", lw=0.9, ls=(0, (1, 1.2)), label="as many (reference)", gid="one")
    line.set_zorder(1)
    word = "gap" if data.facts["quantity"] == "gap" else "risk"
    axes.set(xscale="log", yscale="log", xlabel=f"{word} that was measured", ylabel="samples: promised / used")
    axes.set_ylim(0.3, None)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    setting = Setting.from_json(data.facts["setting"])
    finish(figure, trials_words(data.facts["task"], setting, trained=spec.norms == "runs"), title=spec.title)
    return figure


def caption(spec: Spec, data: FigureData) -> str:
    """The ratio of the least bound at the largest and the smallest gap measured."""
    (seen,) = data.of(kind="measured")
    used = {y: m for m, y in seen.known().items()}
    best = next(one for one in data.of(panel="ratio") if one.known())
    ends = sorted(best.known().items(), reverse=True)
    word = data.facts["quantity"]
    parts = [
        f"a {word} of {value:.2g}, measured with {short(used[value])} samples, from {_times(ratio)} as many on"
        for value, ratio in dict.fromkeys((ends[0], ends[-1]))
    ]
    text = f"The {best.label} promises {' and '.join(parts)}."
    never = [one.label for one in data.of(panel="ratio") if not one.known()]
    return text + (f" Never up to 10^18 samples: {', '.join(never)}." if never else "")


def _times(ratio: float) -> str:
    return f"{ratio:.3g} times" if ratio < 1e4 else f"{short(ratio)} times"
