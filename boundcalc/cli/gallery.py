"""`boundcalc gallery`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.output import make_folder
from boundcalc.cli.files import FileCommand, output_folder
from boundcalc.cli.idle import refuse_given
from boundcalc.cli.learning import store_option
from boundcalc.cli.progress import watched


@click.command(
    cls=FileCommand,
    name="gallery",
    short_help="Every figure, from real runs, into a folder.",
    epilog="""\b
Examples:
  boundcalc gallery                          train what is missing, draw everything into figures/
  boundcalc gallery --quick -o /tmp/gallery  tiny models, a minute
  boundcalc gallery --predicted              without training: bounds alone
  boundcalc gallery --only overlay --only parity""",
)
@click.option("-o", "--out", "output", type=output_folder(), default=Path("figures"))
@store_option
@click.option("--quick", is_flag=True, help="Tiny models and coarse axes, in a minute or two (store: in the folder).")
@click.option("--predicted", is_flag=True, help="Only the figures that show no trials; needs no torch.")
@click.option("--no-train", is_flag=True, help="Draw what the store has; train nothing.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this figure (repeatable).")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes for training.")
@click.pass_context
def command(
    context: click.Context,
    output: Path,
    store_path: Path,
    quick: bool,
    predicted: bool,
    no_train: bool,
    only: tuple[str, ...],
    jobs: int,
) -> None:
    """Train what is missing of the gallery's sweeps, then draw every figure with its data beside it."""
    from click.core import ParameterSource

    from boundcalc.lab.plot import gallery, making

    plates = gallery.chosen(only, predicted=predicted)
    if not any(plate.sweep for plate in plates):
        refuse_given(dict.fromkeys(("store_path", "no_train", "jobs"), "on figures that show no trials"))
    if no_train:
        refuse_given({"jobs": "with --no-train"})
    if not output.parent.is_dir():
        raise InvalidSetting(f"there is no directory {output.parent} to make {output.name} in")
    make_folder(output)
    if quick and context.get_parameter_source("store_path") is ParameterSource.DEFAULT:
        store_path = output / "quick-runs.db"
    typed = " ".join(["boundcalc", *sys.argv[1:]])

    def say(text: str) -> None:
        click.echo(text)

    if any(plate.sweep for plate in plates):
        making.train(plates, store_path, quick=quick, jobs=jobs, say=say, dry=no_train, watched=watched)
    made = list(making.build(output, store_path, plates, quick=quick, command=typed, say=say))
    if not only:
        say(str(making.write_index(output, made, typed)))
