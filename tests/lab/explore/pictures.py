"""The questions of docs/explore.md, each with its two moves, and their pictures: `python -m
tests.lab.explore.pictures`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from boundcalc.lab.explore import page
from tests.lab.explore.browser import Browser

PICTURES = Path(__file__).resolve().parents[3] / "docs" / "explore"
STOP = 18
"""Pixels by which a number of the sentence is dragged to its next stop."""
LEFT = "\ue012"
"""The arrow key, as WebDriver has it."""


class Walk(NamedTuple):
    """The moves that answer a question, and how its picture is taken: file, size, theme, what is scrolled into
    sight."""

    moves: tuple[Callable[[Browser], None], Callable[[Browser], None]]
    name: str
    size: tuple[int, int]
    theme: str = "light"
    focus: str = ""


WALKS = {
    "How does the bound grow with T?": Walk(
        (lambda b: b.click("[data-preset='log T or not?']"), lambda b: b.drag("[data-knob=T]", 7 * STOP)),
        "desktop",
        (1200, 760),
    ),
    "How many sequences does my model need?": Walk(
        (lambda b: b.press("#r-depth", LEFT), lambda b: b.press("#r-C", LEFT)),
        "phone",
        (390, 760),
        focus="r-C",
    ),
    "Why is it vacuous?": Walk(
        (lambda b: b.click("[data-preset='BERT-like']"), lambda b: b.drag("[data-knob=C]", -2 * STOP)),
        "dark",
        (1200, 1150),
        "dark",
    ),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "explore.html"
        file.write_text(page.build(), encoding="utf-8")
        browser = Browser(Path(folder) / "profile")
        try:
            for walk in WALKS.values():
                browser.prefer(walk.theme)
                browser.resize(*walk.size)
                browser.open("about:blank")
                browser.open(file.as_uri())
                for move in walk.moves:
                    move(browser)
                browser.run("scrollTo(0, 0); document.activeElement.blur()")
                if walk.focus:
                    browser.run("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", walk.focus)
                time.sleep(0.3)
                picture = PICTURES / f"{walk.name}.png"
                browser.picture(picture)
                Image.open(picture).convert("RGB").quantize(256, Image.Quantize.MAXCOVERAGE).save(
                    picture, optimize=True
                )
        finally:
            browser.close()


if __name__ == "__main__":
    main()
