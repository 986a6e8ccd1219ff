"""`boundcalc plot`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FILE, FileCommand, output_file
from boundcalc.cli.learning import runs_of
from boundcalc.cli.options import points_options
from boundcalc.cli.setting import picture_options, take_setting
from boundcalc.cli.values import pairs
from boundcalc.lab.figures.gap import AXES, BOUNDS
from boundcalc.setting import Setting

if TYPE_CHECKING:
    from boundcalc.lab.figures.data import Figure

FIGURES: Mapping[str, str] = {
    **{f"gap-vs-{letter}": f"Bounds and runs along {axis.words}." for letter, axis in AXES.items()},
    "overlay": "Risk over m: measured, certified, proved for a class.",
}
"""What `boundcalc plot` draws of a setting or a store."""


_SAMPLE = ("margin", "delta", "train_error", "lipschitz", "measured")


def _with_numbers(image: Path, values: Mapping[str, Any]) -> list[Path]:
    return [image] if _beside(image, values["source"]) else [image, image.with_suffix(".json")]


def _beside(image: Path, source: str | None) -> bool:
    """Whether the numbers of an image are the file it is drawn from, which then stays as it is."""
    return source is not None and image.with_suffix(".json").resolve() == Path(source).resolve()


@click.command(
    cls=FileCommand,
    epilog="\b\nFigures:\n"
    + "".join(f"  {name:<14} {about}\n" for name, about in FIGURES.items())
    + """\b
Examples:
  boundcalc plot gap-vs-m --depth 1 --T 128 -o gap.pdf
  boundcalc plot gap-vs-T --sweep T=64:65536:x2 --bound best --bound published -o T.png
  boundcalc plot gap-vs-m --store runs.db --runs task=conjunction --runs T=128 --norms-from runs
  boundcalc plot gap-vs-m --points mine.csv --bound best --bound mine.py:bound
  boundcalc plot --from gap.json -o again.pdf

Next to FIGURE.png stands FIGURE.json with the numbers drawn; --from draws it again.""",
)
@click.argument("what", metavar="FIGURE", required=False)
@click.option(
    "-o", "--out", "out", type=output_file(_with_numbers), help="The image: .png, .pdf or .svg.  [default: FIGURE.png]"
)
@click.option("--from", "source", type=FILE, help="Draw a figure's JSON again, without computing anything.")
@click.option("--sweep", "axis", metavar="AXIS", help="Values of the axis: m=16:1e8:log29, T=64:4096:x2, depth=1,2,4.")
@click.option("--bound", "bounds", multiple=True, help="Only this bound (repeatable).")
@click.option("--quantity", "quantities", multiple=True, help="gap (default) or risk; repeated: a panel each.")
@points_options
@click.option("--store", type=FILE, help="A store of trials.")
@click.option(
    "--runs",
    "runs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Which trials: task, T, m, depth, sweep ... (repeatable).",
)
@click.option(
    "--norms-from", type=click.Choice(("setting", "runs")), help="Bounds for norms up to the trials' largest."
)
@picture_options
def command(
    what: str | None,
    out: Path | None,
    source: str | None,
    axis: str | None,
    bounds: tuple[str, ...],
    quantities: tuple[str, ...],
    points: tuple[str, ...],
    columns: tuple[str, ...],
    store: str | None,
    runs: tuple[str, ...],
    norms_from: str | None,
    **options: Any,
) -> None:
    """Draw bounds along one axis of a setting, and runs that were measured.

    Bounds of 1 or more are vacuous: the grey band names them. Proxies have axes of their own.
    """
    from boundcalc.lab.figures import canvas
    from boundcalc.lab.figures.data import contradictions, read

    if source is not None:
        typed = (what, axis, norms_from, store, *bounds, *quantities, *points, *columns, *runs, *options.values())
        if any(value not in (None, ()) for value in typed):
            raise InvalidSetting("--from draws the numbers as they were: next to it only -o")
        figure = read(Path(source))
        target = out if out is not None else Path(source).with_suffix(".png")
        _save(figure, target, numbers=not _beside(target, source))
        return
    if what is None:
        raise InvalidSetting(f"name a figure: {', '.join(FIGURES)}")
    validate.choice("figure", what, FIGURES)
    target = out if out is not None else Path(f"{what}.png")
    if target.suffix.lower() not in canvas.FORMATS:
        raise InvalidSetting(
            f"a figure is written as {', '.join(canvas.FORMATS)}; got {target.name!r}: use -o figure.pdf"
        )
    question = take_setting(options)
    letter = what.removeprefix("gap-vs-") if what != "overlay" else "m"
    field = AXES[letter].field
    question.refuse(field, f"{what} runs over {letter}, see --sweep")
    if norms_from == "runs" or what == "overlay":
        for name in question.origin:
            if name not in _SAMPLE:
                question.refuse(name, "bounds at the norms of trials take the trials' network")
    for quantity in quantities:
        validate.choice("quantity", quantity, ("gap", "risk"))
    _refuse(what, store, points, columns, runs, norms_from, quantities)
    values = _values(axis, field) if axis else ()
    chosen = runs_of(runs)
    if what == "overlay":
        figure = _overlay(Path(str(store)), chosen, question.setting, bounds, values)
    else:
        figure = _gap(
            letter, question.setting, values, bounds, quantities or ("gap",), points, columns, store, chosen, norms_from
        )
    command = " ".join(["boundcalc", *(shlex.quote(word) for word in sys.argv[1:])])
    _save(figure.but(command=command), target)
    for text in contradictions(figure.series):
        click.echo(f"contradicted: {text}", err=True)


def _refuse(
    what: str,
    store: str | None,
    points: Sequence[str],
    columns: Sequence[str],
    runs: Sequence[str],
    norms: str | None,
    quantities: Sequence[str],
) -> None:
    """Refuse options that would change nothing."""
    overlay = what == "overlay"
    for wrong, why in (
        (
            overlay and (points or norms or quantities),
            "overlay is of the risk of the trials of --store, at their norms",
        ),
        (points and store, "--points are measurements of your own, --store trials of this library: leave one out"),
        (columns and not points, "--column says what columns of --points hold: name a file, --points mine.csv"),
        (runs and not store, "--runs choose among the trials of a store: name it, --store runs.db"),
        (
            norms == "runs" and not store,
            "--norms-from runs reads the norms of trials: name their store, --store runs.db",
        ),
    ):
        if wrong:
            raise InvalidSetting(why)


def _gap(
    letter: str,
    setting: Setting,
    values: Sequence[float],
    bounds: Sequence[str],
    quantities: Sequence[str],
    points: Sequence[str],
    columns: Sequence[str],
    store: str | None,
    chosen: Mapping[str, Any],
    norms: str | None,
) -> Figure:
    from boundcalc.base.files import is_name
    from boundcalc.lab.figures import gap, runs, trials
    from boundcalc.theorems import BOUNDS as KNOWN

    for name in bounds:
        if not is_name(name):
            validate.choice("bound", name, KNOWN)
    if store is None:
        measured = runs.read_csv(points, pairs("--column", columns, "test=eval/error")) if points else []
        return gap.collect(letter, setting, values, bounds or BOUNDS, quantities, measured)
    records = trials.select(Path(store), chosen)
    trials.refuse_mixture(records, {letter, "m"} if letter == "m" else {letter})
    if letter != "m":
        setting = setting.but(n_train=records[0].config["m"])
    about = trials.describe(records)
    if norms == "runs":
        setting = trials.class_of(records, setting)
        about += "; bounds of a class chosen after training"
    measured = trials.as_runs(records, setting.sample.margin)
    extra = int(letter == "T")  # next to the bits stands the row that is read out
    figure = gap.collect(letter, setting, values, bounds, quantities, measured, extra=extra)
    return figure.but(facts={**figure.facts, "note": about})


def _overlay(
    store: Path, chosen: Mapping[str, Any], setting: Setting, bounds: Sequence[str], values: Sequence[float]
) -> Figure:
    from boundcalc.lab.figures import overlay, trials

    records = trials.select(store, chosen)
    trials.refuse_mixture(records, "m")
    return overlay.collect(records, trials.select(store, {}), setting, bounds, values)


def drawing(figure: Figure) -> Callable[[Figure], Any]:
    """The function that draws a figure of the package."""
    from boundcalc.lab.figures import gap, overlay

    if figure.name not in FIGURES:
        raise InvalidSetting(f"{figure.name} is drawn by a script: python examples/*/{figure.name}.py --from FILE")
    return overlay.draw if figure.name == "overlay" else gap.draw


def _save(figure: Figure, target: Path, *, numbers: bool = True) -> None:
    from boundcalc.lab.figures import canvas

    canvas.save(figure, drawing(figure), target, numbers=numbers)
    click.echo(f"{figure.title}\n{target} and {target.with_suffix('.json')}")


def _values(text: str, field: str) -> list[Any]:
    from boundcalc.cli.axes import parse_axes

    ((option, values),) = parse_axes([text]).values()
    if option.field != field:
        raise InvalidSetting(f"the figure runs over {field}, got --sweep {text}")
    return values
