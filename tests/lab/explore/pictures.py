"""The pictures of docs/explore.md, from the page in a real browser: `python -m tests.lab.explore.pictures`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from boundcalc import Setting
from boundcalc.lab.explore import page
from tests.lab.explore.browser import Browser

PICTURES = Path(__file__).resolve().parents[3] / "docs" / "explore"
VIEWS = {
    "desktop": ("log T or not?", (1200, 760), "light", None),
    "phone": ("Toy model", (390, 760), "light", "r-C"),
    "dark": ("BERT-like", (1200, 760), "dark", None),
}
"""Name -> preset, size, theme, what is scrolled into sight."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "explore.html"
        file.write_text(page.build(Setting.of("edelman")), encoding="utf-8")
        browser = Browser(Path(folder) / "profile")
        try:
            for name, (preset, size, scheme, focus) in VIEWS.items():
                browser.prefer(scheme)
                browser.resize(*size)
                browser.open(file.as_uri())
                browser.click(f"[data-preset='{preset}']")
                browser.run("scrollTo(0, 0)")
                if focus is not None:
                    browser.run("document.getElementById(arguments[0]).scrollIntoView({block: 'center'})", focus)
                time.sleep(0.3)
                browser.picture(PICTURES / f"{name}.png")
        finally:
            browser.close()


if __name__ == "__main__":
    main()
