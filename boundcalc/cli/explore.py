"""`boundcalc explore`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli.files import FILE, FileCommand, output_file
from boundcalc.cli.options import points_options
from boundcalc.cli.setting import ENTRIES, Question, setting_options, take_setting

_OWN = {"depth", "seq_len", "n_train", "C", "d", "heads", "margin", "delta", "style"}
"""Fields of a setting that the page itself changes."""
_STARTS = {"preset": "preset", "setting": "setting_file"}


@click.command(
    cls=FileCommand,
    name="explore",
    short_help="A page of bounds to play with: one file, or served on this machine.",
    epilog="""\b
Examples:
  boundcalc explore                                  writes explore.html, which opens in any browser
  boundcalc explore --depth 4 --T 2048 -o deep.html
  boundcalc explore --points mine.csv                your own runs under the curves (m, train, test, n_test)
  boundcalc explore --store runs.db --runs task=conjunction --runs T=128
  boundcalc explore --serve                          every point checked by the engine as you move""",
)
@click.option("-o", "--out", "file", type=output_file(), help="The page.  [default: explore.html, unless --serve]")
@click.option("--serve", is_flag=True, help="Serve the page on this machine, with the engine behind it.")
@points_options
@click.option("--store", type=FILE, help="Measured points: a store of trials, or a JSON export of one.")
@click.option("--runs", "runs", multiple=True, metavar="NAME=VALUE", help="Which trials: task, T, m, depth, sweep ...")
@setting_options
def command(
    file: Path | None,
    serve: bool,
    points: tuple[str, ...],
    columns: tuple[str, ...],
    store: str | None,
    runs: tuple[str, ...],
    **options: Any,
) -> None:
    """Write a page with sliders for T, m, C, depth, d, heads, gamma, delta and the style.

    Closed forms are computed by the browser; the least of all proofs comes from a table of checked values, or with --serve
    from the engine. Nothing is ever sent to another machine.
    """
    from boundcalc.lab.explore import page
    from boundcalc.lab.explore.content import letters
    from boundcalc.lab.explore.points import from_files, from_store

    start = next((f"--{name} {options[key]}" for name, key in _STARTS.items() if options[key] is not None), "")
    question = take_setting(options)
    if serve and file is not None:
        raise InvalidSetting("give --serve or -o: a page that is served is not written")
    if store is None and runs:
        raise InvalidSetting("--runs choose among the trials of --store: name it")
    if columns and not points:
        raise InvalidSetting("--column is of --points: name a CSV")
    letters(question.setting)  # refuses what the page cannot show
    from boundcalc.cli.plot import columns_of, pairs

    measured = from_files(points, columns_of(columns)) if points else []
    if store is not None:
        measured += from_store(store, pairs(runs))
    base = _base(question, start)
    if serve:
        _serve(question.setting, measured, base)
        return
    target = file if file is not None else Path("explore.html")
    _output_check(target)
    click.echo("checking the least bound over a grid, about half a minute ...", err=True)
    text = page.build(question.setting, points=measured, base=base)
    write(target, text)
    click.echo(f"{target}  ({len(text.encode()) // 1000} kB): open it in a browser")


def _output_check(path: Path) -> None:
    """Refuse what could not be written before anything is computed."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidSetting(f"a page is written as .html, got {path.name!r}: use -o explore.html")
    if not path.parent.is_dir():
        raise InvalidSetting(f"there is no directory {path.parent} to write {path.name} to: make it first")
    output.check(path)


def write(path: Path, text: str) -> None:
    """With a last line by which it is known again."""
    output.write_text(path, text)


def _base(question: Question, start: str) -> str:
    """The options of `boundcalc eval` that the page has no field for, as they were given."""
    words = [start] if start else []
    for entry in ENTRIES:
        if entry.field in _OWN or question.origin.get(entry.field) != "given":
            continue
        value = getattr(question.setting.architecture, entry.field, None)
        value = getattr(question.setting.sample, entry.field, None) if value is None else value
        words.append(entry.typed(value))
    return "".join(f"{word} " for word in words)


def _serve(setting: Any, measured: list[dict[str, Any]], base: str) -> None:
    from boundcalc.lab.explore import page
    from boundcalc.lab.explore.serve import Server

    server = Server(page.build(setting, points=measured, served=True, base=base), setting)
    click.echo(f"{server.url}  (Ctrl-C ends it)")
    with server:
        server.serve_forever()
