"""`boundcalc plot`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FILE, NAME_OR_FILE, FileCommand, output_file
from boundcalc.cli.learning import default_store, run_pair
from boundcalc.cli.options import points_options
from boundcalc.cli.setting import BY_FIELD, Question, parameters, setting_options, take_setting
from boundcalc.cli.text import wrapped
from boundcalc.cli.values import NUMBER, WHOLE
from boundcalc.lab.plot.gallery import PLATES
from boundcalc.lab.plot.registry import FIGURES
from boundcalc.lab.plot.style import SIZES
from boundcalc.setting import validate

_SAMPLE = ("margin", "delta", "train_error", "lipschitz", "measured")
_COUNTED = ("s", "L", "steps")
"""Axes that are no options of a setting."""


def _figures() -> str:
    """The names of figures, and of the gallery's pictures of them that have names of their own."""
    own = [plate.name for plate in PLATES if plate.name not in FIGURES]
    indent = " " * 9

    def lines(names: Iterable[str], first: str) -> str:
        return textwrap.fill(
            " ".join(names), 78, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
        )

    return f"""\b
{lines(FIGURES, "Figures: ")}
Of the gallery's trials (`boundcalc gallery --only NAME` trains them):
{lines(own, indent)}
"""


def _beside(image: Path, source: str | None) -> bool:
    """Whether the numbers of an image are the file it is drawn from, which then stays as it is."""
    return source is not None and image.with_suffix(".json").resolve() == Path(source).resolve()


def _drawn(image: Path, values: Mapping[str, Any]) -> list[Path]:
    return [image] if _beside(image, values["source"]) else [image, image.with_suffix(".json")]


@click.command(
    cls=FileCommand,
    name="plot",
    short_help="A figure of predictions against measurements, with the data it shows.",
    epilog=_figures()
    + """\b
Examples:
  boundcalc plot gap-vs-m --depth 1 --T 128 -o gap.pdf
  boundcalc plot gap-vs-T --sweep T=64:65536:x2 --bound best --bound published -o T.png
  boundcalc plot gap-vs-m --store runs.db --runs task=conjunction --runs T=128 --norms-from runs
  boundcalc plot gap-vs-m --points mine.csv --bound best --bound mine.py:bound
  boundcalc plot spec.json -o figure.svg --size wide
  boundcalc plot --from gap.json -o again.pdf
\b
Beside FIGURE.png stands FIGURE.json: the specification, the numbers drawn, the command, the versions
and the hashes of the trials. --from draws exactly that again, with other looks if you say so.""",
)
@click.argument("what", metavar="FIGURE|SPEC", type=NAME_OR_FILE, required=False)
@click.option(
    "-o",
    "--out",
    "output",
    type=output_file(_drawn),
    help="The image: .png, .pdf, .svg or .pgf.  [default: FIGURE.png]",
)
@click.option("--from", "source", type=FILE, help="Draw a figure's JSON again, without computing anything.")
@click.option("--sweep", "axis", metavar="AXIS", help="Values of the axis: m=16:1e8:log29, T=64:4096:x2, depth=1,2,4.")
@click.option("--bound", "bounds", multiple=True, help="Only this bound (repeatable).")
@click.option("--quantity", "quantities", multiple=True, help="gap (default) or risk; repeated: a panel each.")
@points_options
@click.option("--store", type=FILE, help="A store of trials, or a JSON export of one.")
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
@click.option("--target", type=NUMBER, help="Risk that counts as learned (sample-complexity).  [default: 0.01]")
@click.option("--share", type=click.FloatRange(0.01, 0.99), help="Share of trials that must reach it.  [default: 0.8]")
@click.option("--repetitions", type=WHOLE, help="Inputs or runs per place, in figures that measure as they are made.")
@click.option("--size", help=f"One of {', '.join(SIZES)}.")
@click.option("--uncapped", is_flag=True, default=None, help="Draw bounds above 1 at their size, dashed.")
@click.option("--usetex", is_flag=True, default=None, help="Set text with LaTeX.")
@click.option("--title", help="Above the figure.")
@setting_options
def command(
    what: str | None,
    output: Path | None,
    source: str | None,
    axis: str | None,
    columns: Sequence[str],
    runs: Sequence[str],
    norms_from: str | None,
    **options: Any,
) -> None:
    """Draw a figure: predicted curves of checked bounds, and what training measured.

    Every legend entry says its kind; vacuous stretches are dashed; proxies never share an axis with bounds.
    """
    from boundcalc.lab.plot import provenance, render
    from boundcalc.lab.plot.data import contradictions

    settings = {name: options.pop(name) for name in parameters()}
    changes = {name: value for name, value in options.items() if value not in (None, ())}
    if columns:
        changes["columns"] = columns_of(columns)
    if source is not None:
        looks = {name: changes.pop(name) for name in _LOOKS if name in changes}
        asked = (what, axis, norms_from, *settings.values(), *changes.values(), *runs)
        if any(value not in (None, ()) for value in asked):
            raise InvalidSetting(
                "--from draws the numbers as they were: beside it only -o, --size, --uncapped, --usetex and --title"
            )
        spec, data, made_by = provenance.read(Path(source))
        target = output if output is not None else Path(source).with_suffix(".png")
        kept = _beside(target, source)
        if looks and kept:
            raise InvalidSetting(f"{source} says how {target} looks: name another image, -o FILE, for other looks")
        _show(render.save(spec.but(**looks), data, target, made_by or _typed(), record=not kept))
        return
    if what is None:
        raise InvalidSetting(f"name a figure ({', '.join(_names())}) or a specification file")
    spec = _spec(what, settings, axis, runs, norms_from, changes)
    target = output if output is not None else Path(f"{spec.figure}.png")
    render.check_output(target)
    data = render.collect(spec)
    _show(render.save(spec, data, target, _typed()))
    for found in contradictions(data):
        click.echo(f"contradicted: {found}", err=True)


_LOOKS = ("size", "uncapped", "usetex", "title")


def _names() -> list[str]:
    """Figures, and the gallery's pictures of them that have names of their own."""
    return list(dict.fromkeys([*FIGURES, *(plate.name for plate in PLATES)]))


def _spec(
    what: str, settings: dict[str, Any], axis: str | None, runs: Sequence[str], norms: str | None, changes: Any
) -> Any:
    from boundcalc.base.documents import SUFFIXES, read_document
    from boundcalc.lab.plot import gallery, making
    from boundcalc.lab.plot.spec import Spec

    if what in FIGURES:
        spec = Spec(what)
    elif (plate := gallery.plate(what)) is not None:
        spec = making.specification(plate, Path(changes.get("store") or default_store()))
    elif Path(what).suffix.lower() in SUFFIXES:
        spec = Spec.from_json(read_document(Path(what), "the specification"))
    else:
        validate.choice("figure", what, _names())
        raise AssertionError
    if any(value not in (None, ()) for value in settings.values()):
        question = take_setting(settings, spec.setting)
        _refuse_own(question, spec.figure, bool(changes.get("store") or spec.store), norms or spec.norms)
        spec = spec.but(setting=question.setting)
    if axis is not None:
        changes["values"] = tuple(_values(spec.figure, axis))
    if runs:
        changes["runs"] = {**spec.runs, **pairs(runs)}
    if norms is not None:
        changes["norms"] = norms
    return spec.but(**changes)


def _refuse_own(question: Question, figure: str, trials: bool, norms: str) -> None:
    """Refuses options of the setting that the figure would overrule."""
    entry = FIGURES[figure]
    chosen = entry.chooses.split()
    if entry.chooses.startswith("-"):
        chosen = [field for field in BY_FIELD if field != entry.chooses[1:]]
    for field in chosen:
        how = f"runs over {entry.axis}, see --sweep" if entry.axis else "chooses it itself"
        question.refuse(field, f"{figure} {how}")
    if trials and entry.of_one_m:
        question.refuse("n_train", "the bounds are for the m of the trials, see --runs m=64")
    if norms == "runs":
        for field in question.origin:
            if field not in _SAMPLE:
                question.refuse(field, "--norms-from runs takes the network of the trials")
    if question.sources and (norms == "runs" or entry.chooses.startswith("-")):
        only = f"of a setting it reads {BY_FIELD[entry.chooses[1:]].option}"
        why = "--norms-from runs takes the network of the trials" if norms == "runs" else only
        raise InvalidSetting(f"{question.sources[0]} would change nothing: {why}")


def _values(figure: str, text: str) -> list[Any]:
    from boundcalc.cli.axes import parse_axes

    name, equals, rest = text.partition("=")
    wanted = FIGURES[figure].axis
    if equals and name != wanted:
        runs_over = f"runs over {wanted}" if wanted else "has no axis of its own"
        raise InvalidSetting(f"{figure} {runs_over}, got --sweep {text}")
    if name not in _COUNTED:
        ((_, values),) = parse_axes([text]).values()
        return values
    try:
        ((_, values),) = parse_axes([f"T{equals}{rest}"]).values()  # counted like T, which is an option of a setting
    except InvalidSetting as error:
        raise InvalidSetting(str(error).replace("sweep T: T", name).replace("sweep T", f"--sweep {name}")) from None
    return values


def pairs(texts: Sequence[str]) -> dict[str, Any]:
    """What `--runs` chooses trials by."""
    found: dict[str, Any] = {}
    for text in texts:
        key, value = run_pair(text)
        if key in found:
            raise InvalidSetting(f"--runs gives {key} twice: a figure is of one")
        found[key] = value
    return found


def columns_of(texts: Sequence[str]) -> dict[str, str]:
    """What `--column` says of the columns of `--points`."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, column = text.partition("=")
        if not equals or not column or name in found:
            raise InvalidSetting(f"--column is NAME=COLUMN, once for each, such as test=eval/error; got {text!r}")
        found[name] = column
    return found


def _typed() -> str:
    """The command as it was typed."""
    import shlex

    return " ".join(["boundcalc", *(shlex.quote(word) for word in sys.argv[1:])])


def _show(drawn: Any) -> None:
    click.echo(f"{drawn.image} and {drawn.record}")
    if drawn.caption:
        click.echo("\n".join(wrapped(drawn.caption.split())))
