"""`boundcalc plot`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import output, validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli._options import (
    FILE,
    NEW_FILE,
    bounds_option,
    command_with,
    number,
    option,
    pairs,
    refuse_given,
    refuse_others,
    several,
    whole,
)
from boundcalc.cli._setting import SAMPLE, picture_options, take_setting
from boundcalc.lab.figures.gap import AXES

if TYPE_CHECKING:
    from boundcalc.lab.figures.data import Figure
    from boundcalc.setting import Setting

FIGURES: Mapping[str, str] = {
    **{f"gap-vs-{letter}": f"Bounds and runs along {axis.words}." for letter, axis in AXES.items()},
    "overlay": "Risk over m: measured, certified, proved for a class.",
}
"""What `boundcalc plot` draws of a setting or a store."""


@command_with(
    """\
  boundcalc plot gap-vs-m --depth 1 --T 128 -o gap.pdf
  boundcalc plot gap-vs-T --sweep T=64:65536:x2 --bound best --bound published -o T.png
  boundcalc plot gap-vs-m --store runs.db --runs task=conjunction --runs T=128 --norms-from runs
  boundcalc plot gap-vs-m --points mine.csv --bound best --bound mine.py:bound
  boundcalc plot --from gap.json -o again.pdf

Next to FIGURE.png stands FIGURE.json with the numbers drawn; --from draws it again.

\b
Figures:
"""
    + "".join(f"  {name:<14} {about}\n" for name, about in FIGURES.items())
)
@click.argument("what", metavar="FIGURE", required=False)
@option("-o --out out", NEW_FILE, "The image: .png, .pdf or .svg.  [default: FIGURE.png]")
@option("--from source", FILE, "Draw a figure's JSON again, without computing anything.")
@option("--sweep axis", str, "Values of the axis: m=16:1e8:log29, T=64:4096:x2, depth=1,2,4.", metavar="AXIS")
@bounds_option
@several("--points", "Your own measurements: m, train, test, n_test, seed.", "CSV", FILE)
@option("--store", FILE, "A store of trials.")
@several("--runs", "Which trials: task, T, m, depth, sweep (repeatable).", "NAME=VALUE")
@option("--norms-from", click.Choice(("setting", "runs")), "Bounds for norms up to the trials' largest.")
@picture_options
def command(what: str | None, out: Path | None, source: str | None, axis: str | None, **options: Any) -> None:
    """Draw bounds along one axis of a setting, and runs that were measured.

    Bounds of 1 or more are vacuous: the grey band names them.
    """
    from boundcalc.lab.figures import canvas
    from boundcalc.lab.figures.data import contradictions, read

    if source is not None:
        refuse_others("with --from, which draws the numbers as they were", ("source", "out"))
        _save(read(Path(source)), out or Path(source).with_suffix(".png"), numbers=False)
        return
    if what is None:
        raise InvalidSetting(f"name a figure: {', '.join(FIGURES)}")
    validate.choice("figure", what, FIGURES)
    target = out or Path(f"{what}.png")
    canvas.check_name(target)
    for file in (target, target.with_suffix(".json")):
        output.check(file)
    of_trials = what == "overlay" or options["norms_from"] == "runs"
    if what == "overlay":
        refuse_given("on overlay, which is of the risk of trials", "points", "norms_from")
    if options["points"]:
        refuse_given("with --points: either your own measurements or trials of this library", "store")
    if options["store"] is None:
        refuse_given("without --store, among whose trials it chooses", "runs")
        if of_trials:
            raise InvalidSetting("name the store of the trials, --store runs.db")
    question = take_setting(options)
    letter = "m" if what == "overlay" else what.removeprefix("gap-vs-")
    question.refuse(AXES[letter].field, f"{what} runs over {letter}, see --sweep")
    if of_trials:
        for name in set(question.typed) - set(SAMPLE):
            question.refuse(name, "bounds at the norms of trials take the trials' network")
    values = _values(axis, AXES[letter].field) if axis else ()
    figure = _figure(what, letter, question.setting, values, options)
    typed = " ".join(["boundcalc", *(shlex.quote(word) for word in sys.argv[1:])])
    _save(figure.but(command=typed), target)
    for text in contradictions(figure.series):
        click.echo(f"contradicted: {text}", err=True)


def _figure(what: str, letter: str, setting: Setting, values: Sequence[Any], options: Mapping[str, Any]) -> Figure:
    """What the figure draws along an axis: bounds, and trials of a store or points of a file."""
    from boundcalc.lab.figures import gap, trials
    from boundcalc.lab.figures import overlay as of_overlay
    from boundcalc.lab.figures.runs import read_csv

    bounds, points = options["bounds"], options["points"]
    if options["store"] is None:
        return gap.collect(letter, setting, values, bounds, read_csv(points) if points else [])
    store, chosen = Path(options["store"]), _trials_wanted(options["runs"])
    records = trials.select(store, chosen)
    trials.refuse_mixture(records, {letter})
    if what == "overlay":
        return of_overlay.collect(records, trials.select(store, {}), setting, bounds, values)
    if letter != "m":
        setting = setting.but(n_train=records[0].config["m"])
    about = trials.describe(records)
    if options["norms_from"] == "runs":
        setting = trials.class_of(records, setting)
        about += "; bounds of a class chosen after training"
    measured = trials.as_runs(records, setting.sample.margin)
    extra = int(letter == "T")  # next to the bits stands the row that is read out
    figure = gap.collect(letter, setting, values, bounds, measured, extra=extra)
    return figure.but(facts={**figure.facts, "note": about})


def drawing(figure: Figure) -> Callable[[Figure], Any]:
    """The function that draws a figure of the package."""
    from boundcalc.lab.figures import gap, overlay

    if figure.name not in FIGURES:
        raise InvalidSetting(f"{figure.name} is drawn by a script: python examples/*/{figure.name}.py --from FILE")
    return overlay.draw if figure.name == "overlay" else gap.draw


def _save(figure: Figure, target: Path, *, numbers: bool = True) -> None:
    from boundcalc.lab.figures import canvas

    canvas.save(figure, drawing(figure), target, numbers=numbers)
    click.echo(f"{figure.title}\n{target}" + f" and {target.with_suffix('.json')}" * numbers)


def _trials_wanted(texts: Sequence[str]) -> dict[str, Any]:
    """What --runs chooses trials by: numbers where values are numbers."""
    words = pairs("--runs", texts, "task=conjunction or T=128").items()
    named = ("task", "sweep", "law")

    def typed(text: str) -> Any:
        return next((value for value in (whole(text), number(text)) if value is not None), text)

    return {name: text if name in named else typed(text) for name, text in words}


def _values(text: str, field: str) -> list[Any]:
    from boundcalc.cli._grid import parse_axes

    ((entry, values),) = parse_axes([text]).values()
    if entry.field != field:
        raise InvalidSetting(f"the figure runs over {field}, got --sweep {text}")
    return values
