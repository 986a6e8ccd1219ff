"""`boundcalc explore`."""

from __future__ import annotations

import os
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli._files import FileCommand, output_file
from boundcalc.cli._options import option, points_option
from boundcalc.cli._setting import ENTRIES, Question, picture_options, take_setting
from boundcalc.cli._text import progress


@click.command(
    cls=FileCommand,
    epilog="""\b
Examples:
  boundcalc explore
  boundcalc explore -o explore.html
  boundcalc explore --points mine.csv

--points puts your own runs into the picture (m, train, test, n_test).""",
)
@option("-o --out file", output_file(), "Write the page to this file, and do not open it.")
@points_option
@picture_options
def command(file: Path | None, points: tuple[str, ...], **options: Any) -> None:
    """Show how floor and bounds of the gap depend on m, T, C, depth, d, heads and gamma.

    The page is one file with a grid of checked points, and opens in your browser. It needs no network.
    """
    from boundcalc.lab.explore import page
    from boundcalc.lab.explore.content import FIELDS, from_files, letters

    starts = {"--preset": options["preset"], "--setting": options["setting_file"]}
    words = [f"{name} {value}" for name, value in starts.items() if value is not None]
    question = take_setting(options)
    letters(question.setting)  # refuses what the page cannot show
    if file is not None and file.suffix.lower() not in (".html", ".htm"):
        raise InvalidSetting(f"a page is written as .html, got {file.name!r}: use -o explore.html")
    measured = from_files(points) if points else []
    base = _base(question, words, {field.field for field in FIELDS.values()})
    with progress(10.0) as show:

        def tell(done: int, total: int) -> None:
            show(f"{done} of {total} settings are checked")

        text = page.build(question.setting, own=measured, base=base, progress=tell)
    path = file or Path(tempfile.mkdtemp()) / "explore.html"
    output.write_text(path, text)
    click.echo(f"{path}  ({len(text.encode()) // 1000} kB): open it in a browser")
    if file is None and sys.stdout.isatty() and not os.environ.get("CI"):
        webbrowser.open(path.as_uri())


def _base(question: Question, words: list[str], own: set[str]) -> str:
    """The options of `boundcalc eval` that the page has no slider for, as they were given."""
    setting = question.setting
    for entry in ENTRIES:
        if entry.field not in own and question.origin.get(entry.field) == "given":
            value = getattr(setting.architecture, entry.field, None)
            words.append(entry.typed(getattr(setting.sample, entry.field, None) if value is None else value))
    return "".join(f"{word} " for word in words)
