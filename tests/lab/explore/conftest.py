"""A browser for the tests of a module, and a page with a smaller grid, which is quicker, opened in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from boundcalc.lab.explore import _checked as checked
from boundcalc.lab.explore import page
from tests.lab.explore.browser import Browser

SMALL = {
    "COMPARED": ({"depth": (1, 2, 4), "C": (0.5, 1)},),
    "COVERED": (
        {"depth": (1, 2, 4), "C": (2,), "size": ((64, 1), (1024, 16)), "gamma": (0.1, 0.5)},
        {"depth": (12,), "C": (0.2, 0.5, 1), "size": ((1024, 16),), "gamma": (0.05,)},
    ),
    "FLOORED": {"depth": (1, 2, 4), "C": (0.5, 1), "gamma": (0.12, 0.5), "T": (16,)},
    "SEARCHED": ({"depth": (1,), "C": (0.5, 1), "gamma": (0.12,), "T": (16,), "m": (1e4, 1e8)},),
}


@pytest.fixture(scope="session")
def text() -> str:
    with pytest.MonkeyPatch.context() as patch:
        for name, axes in SMALL.items():
            patch.setattr(checked, name, axes)
        return page.build()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = Browser(tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()


@pytest.fixture
def opened(browser: Browser, text: str, tmp_path: Path) -> Iterator[Browser]:
    """The page from disk; afterwards the console must be empty, and nothing but the file may have been asked for."""
    file = tmp_path / "explore.html"
    file.write_text(text, encoding="utf-8")
    browser.resize(1200, 1000)
    browser.prefer("light")
    browser.forget()
    browser.open(file.as_uri())
    yield browser
    assert browser.complaints() == []
    requested = [url for url in browser.requests() if not url.startswith(("data:", "blob:"))]
    assert {url.partition("#")[0] for url in requested} == {file.as_uri()}
