"""A browser for the tests of a module, and the module's page `text` opened in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.explore.browser import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("chromium"))
    yield made
    made.close()


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
