"""Every entry of every registry has cases, on which its laws are tried."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import boundcalc
from boundcalc.base.registry import Registry
from boundcalc.predictors.certificate import known_methods
from tests.cases import lemmas, predictors, strategies, tasks, theorems

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
CASES = {
    "lemma": lemmas.cases,
    "strategy": strategies.cases,
    "theorem": theorems.cases,
    "task": tasks.cases,
    "predictor": predictors.cases,
}


def test_every_registry_has_cases() -> None:
    assert set(ALL) == {*CASES, "family"}  # tests/laws/test_families_and_tasks.py has a model of each
    assert all(len(registry) for registry in ALL.values())


ENTRIES = [(kind, name) for kind in CASES for name in ALL[kind]]


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_every_built_in_entry_has_cases(kind: str, name: str) -> None:
    assert not CASES[kind](name).missing


@pytest.mark.parametrize("kind", ["task", "predictor"])
def test_an_entry_without_cases_is_seen(kind: str) -> None:
    """Negative control: a built-in entry for which nobody has written cases. The other kinds make theirs by a rule."""
    registry = ALL[kind]
    dict.__setitem__(registry, "new", next(iter(registry.values())))
    try:
        with pytest.raises(KeyError, match="new"):
            test_every_built_in_entry_has_cases(kind, "new")
    finally:
        dict.pop(registry, "new")
