"""What the library registers brings cases, all of it: of every registry there is, every entry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import boundcalc
from boundcalc.base.cases import Cases
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.registry import Registry
from boundcalc.predictors.certificate import known_methods

PACKAGE = Path(boundcalc.__file__).parent


def registries() -> Iterator[Registry[Any]]:
    """Every registry that a module of the package makes."""
    for file in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"import Registry$", file.read_text(encoding="utf-8"), re.MULTILINE):
            module = import_module(
                ".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
            )
            yield from (value for value in vars(module).values() if isinstance(value, Registry))


known_methods()
ALL = {registry.kind: registry for registry in registries()}
KINDS = ("layer", "lemma", "strategy", "theorem", "family", "task", "predictor")
"""Every kind that a registry has."""


def test_every_registry_is_looked_at() -> None:
    assert set(ALL) == set(KINDS)
    assert all(len(registry) for registry in ALL.values())
    assert all(hasattr(boundcalc, f"check_{kind}") for kind in KINDS)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, registry in ALL.items() for name in registry])
def test_every_entry_brings_cases(kind: str, name: str) -> None:
    cases = ALL[kind].cases(name)
    assert isinstance(cases, Cases)
    assert not cases.missing


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_is_not_there_brings_none(kind: str) -> None:
    with pytest.raises(InvalidSetting, match=f"no {kind} 'nobody brought it' was registered with cases"):
        ALL[kind].cases("nobody brought it")


@pytest.mark.parametrize("kind", ["family", "task", "predictor"])
def test_one_without_cases_is_seen(kind: str) -> None:
    """The control: an entry of the library's own that nobody has written a row of cases for. Others are made by a rule."""
    registry = ALL[kind]
    dict.__setitem__(registry, "nobody brought it", next(iter(registry.values())))
    try:
        with pytest.raises(InvalidSetting, match=f"{kind} 'nobody brought it' is not registered: it brings no cases"):
            test_every_entry_brings_cases(kind, "nobody brought it")
    finally:
        dict.pop(registry, "nobody brought it")
