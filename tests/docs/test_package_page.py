"""Links of the README on a package index: absolute where an address is known, and nothing else touched."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page() -> ModuleType:
    spec = importlib.util.spec_from_file_location("package_page", ROOT / "docs" / "package_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_become_absolute_and_lead_to_files_that_are_there(page: ModuleType) -> None:
    found = page.absolute(README, "https://example.org/us/boundcalc/")
    links = re.findall(r"\]\(([^)\s]+)\)", found)
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://example.org/us/boundcalc/"), link
        kind, _, path = link.removeprefix("https://example.org/us/boundcalc/").split("/", 2)
        assert (ROOT / path).exists(), path
        assert kind == ("raw" if path.endswith(".png") else "tree" if (ROOT / path).is_dir() else "blob"), link
    assert re.sub(r"\]\([^)\s]+\)", "]()", found) == re.sub(r"\]\([^)\s]+\)", "]()", README)


def test_without_an_address_nothing_changes(page: ModuleType) -> None:
    assert page.absolute(README, None) == README
    kept = "[a](https://x.org/b) [c](#d) [e](mailto:f)"
    assert page.absolute(kept, "https://example.org") == kept


def test_the_project_names_the_hook() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["readme"]
    assert (ROOT / project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]).exists()
