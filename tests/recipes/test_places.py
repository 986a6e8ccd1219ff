"""What is added is known in few places: its class in one file of its room, and that room's list of them.

The other places are its lines in the verifier, its paragraph in docs/theory.md and a falsifier.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import boundcalc
from boundcalc.setting import Linear, SoftCap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.strategies import STRATEGIES

ROOT = Path(boundcalc.__file__).parent
OTHERS = ("checkpoints/families/", "engine/_witness.py")
"""A family that has such layers, and networks with a margin that are built, which any layer may do without."""
SEARCHED = {"engine/search.py", "engine/why.py"}
"""Where chains, of all strategies alone, are known: their levels are searched for one after the other."""


@cache
def imports() -> dict[tuple[str, str], set[str]]:
    """The files that import a name from the package, by its room and the name."""
    names: dict[tuple[str, str], set[str]] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("boundcalc"):
                room = (node.module or "").split(".")[1:2]
                for alias in node.names:
                    names.setdefault(("".join(room), alias.name), set()).add(path.relative_to(ROOT).as_posix())
    return names


def strangers(cls: type, room: str) -> set[str]:
    """The files outside of a class's room that import it."""
    first = cls.__module__.split(".")[1]
    files = imports().get((first, cls.__name__), set()) | imports().get(("setting", cls.__name__), set())
    return {file for file in files if not file.startswith((room, *OTHERS))}


def test_a_layer_is_known_in_its_room_alone() -> None:
    """SoftCap stands for layers that no style is built of."""
    assert strangers(SoftCap, "layers/") == set()
    assert {"setting/_architecture.py", "statements/merge.py"} <= strangers(Linear, "layers/")  # the law sees importers


@pytest.mark.parametrize("lemma", LEMMAS.values(), ids=lambda lemma: lemma.name)
def test_a_lemma_is_known_in_its_room_alone(lemma: object) -> None:
    assert strangers(type(lemma), "statements/covers/") == set()


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=lambda strategy: strategy.name)
def test_a_strategy_is_known_in_its_room_alone(strategy: object) -> None:
    files = strangers(type(strategy), "statements/strategies/")
    assert files == (SEARCHED if strategy is STRATEGIES["chain"] else set())
