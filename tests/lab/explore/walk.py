"""The script of docs/explore.md, walked in a real browser: `python -m tests.lab.explore.walk` takes its pictures anew.

Each picture carries the words that the page said when it was taken; a test walks again and compares them.
"""

from __future__ import annotations

import base64
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from boundcalc import Setting
from boundcalc.lab.explore import page
from tests.lab.explore.browser import Browser

PICTURES = Path(__file__).resolve().parents[3] / "docs" / "explore"
CHART, WHY = ("#chart", "#says"), ("#why-title", "#why")
"""Where one looks: from the first to the second."""
MODEL = {"depth": "4", "C": "1", "T": "512"}
"""What the third question is asked for."""


def choose(browser: Browser, name: str, value: str) -> None:
    """Pick from a list."""
    browser.run(
        "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('change'))",
        name,
        value,
    )


def grows(browser: Browser) -> None:
    """How does the bound grow with T?"""
    choose(browser, "axis", "T")
    browser.type("#n-m", "100000000")


def vacuous(browser: Browser) -> None:
    """Which matrix makes it vacuous?"""
    browser.type("#n-m", "10000")


def enough(browser: Browser) -> None:
    """How many samples are enough for my model?"""
    for name, value in MODEL.items():
        browser.type(f"#n-{name}", value)


QUESTIONS: dict[str, tuple[Callable[[Browser], None], tuple[str, str]]] = {
    "grows": (grows, CHART),
    "vacuous": (vacuous, WHY),
    "enough": (enough, CHART),
}
"""By the names of their pictures: what one does, from the page as it opens, and where one looks then."""


def ask(browser: Browser, name: str) -> str:
    """What the page says to a question."""
    browser.click("#reset")
    do, where = QUESTIONS[name]
    do(browser)
    said: dict[str, str] = browser.run(
        "return Object.fromEntries(['says', 'why-text'].map(id => [id, document.getElementById(id).textContent]))"
    )
    return said["why-text" if where == WHY else "says"]


def picture(browser: Browser, part: tuple[str, str]) -> Any:
    """A part of the page as it looks."""
    from PIL import Image

    box: dict[str, float] = browser.run(
        """const [a, b] = [...arguments].map(css => document.querySelector(css).getBoundingClientRect());
           return {x: a.left + scrollX, y: a.top + scrollY - 6,
                   width: Math.max(a.width, b.width), height: b.bottom - a.top + 12}""",
        *part,
    )
    clip = {"format": "png", "clip": {**box, "scale": 1}}
    shown = browser._call("POST", "/goog/cdp/execute", {"cmd": "Page.captureScreenshot", "params": clip})
    return Image.open(io.BytesIO(base64.b64decode(shown["data"])))


def words_of(path: Path) -> str:
    """What the page said when a picture was taken."""
    from PIL import Image

    with Image.open(path) as image:
        return str(image.info["says"])


def main() -> None:
    """Take every picture."""
    from PIL.PngImagePlugin import PngInfo

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "explore.html"
        file.write_text(page.build(Setting.of("edelman")), encoding="utf-8")
        browser = Browser(Path(folder) / "chromium")
        try:
            browser.resize(1000, 2800)  # so that nothing scrolls
            browser.open(file.as_uri())
            for name, (_, where) in QUESTIONS.items():
                said, info = ask(browser, name), PngInfo()
                info.add_itxt("says", said)
                picture(browser, where).convert("RGB").save(PICTURES / f"{name}.png", optimize=True, pnginfo=info)
                sys.stdout.write(f"{name}: {said}\n")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
