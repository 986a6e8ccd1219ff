"""`boundcalc explore`."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click

from boundcalc.base import output
from boundcalc.base.errors import InvalidSetting
from boundcalc.cli._options import NEW_FILE, command_with, option, refuse_given
from boundcalc.cli._text import progress


@command_with("""\
  boundcalc explore
  boundcalc explore -o explore.html

Without -o the page opens in your browser, every point checked as you move; a file opens without network.
`boundcalc plot gap-vs-AXIS` draws the bounds of any other setting, and your own runs.""")
@option("-o --out file", NEW_FILE, "Write the page to this file.")
@option("--serve", bool, "Serve the page on this machine without opening a browser.")
def command(file: Path | None, serve: bool) -> None:
    """Show how floor and bounds of the gap depend on m, T, C, depth, d, heads and gamma.

    The page is served on this machine and opened in a browser, where every point is checked as you move. With -o, or
    where no browser can be opened, it is one file with a grid of checked points. Nothing is ever sent to another
    machine.
    """
    if serve:
        refuse_given("with --serve: a page that is served is not written", "file")
    browser = None if serve or file is not None else _browser()
    if serve or browser is not None:
        _serve(browser)
    else:
        _write(file or Path("explore.html"))


def _browser() -> Any:
    """The user's browser, or None where none can be opened."""
    if os.environ.get("CI") or not sys.stdout.isatty():
        return None
    try:
        return webbrowser.get()
    except webbrowser.Error:
        return None


def _write(path: Path) -> None:
    """Check a grid of settings and write the page."""
    from boundcalc.lab.explore import page

    if path.suffix.lower() not in (".html", ".htm"):
        raise InvalidSetting(f"a page is written as .html, got {path.name!r}: use -o explore.html")
    with progress(10.0) as show:
        counted = "{} of {} settings are checked"
        text = page.build(progress=lambda *of: show(counted.format(*of)))
    output.write_text(path, text)
    click.echo(f"{path}  ({len(text.encode()) // 1000} kB): open it in a browser")


def _serve(browser: Any) -> None:
    """Serve the page until Ctrl-C; open it where there is a browser."""
    from boundcalc.lab.explore import page
    from boundcalc.lab.explore.serve import Server

    server = Server(page.build(served=True))
    click.echo(f"{server.url}  (Ctrl-C ends it)")
    if browser is not None:
        browser.open(server.url)
    with server:
        server.serve_forever()
