"""Published theorems by name: what `--bound` takes beside the policies."""

from __future__ import annotations

import math

import pytest

from boundcalc import Setting, evaluate
from boundcalc.base.errors import InvalidSetting
from boundcalc.theorems import BOUNDS, POLICIES, THEOREMS

SETTING = Setting.of(depth=2, d=32, d_head=4, seq_len=64, n_train=10**6)


@pytest.mark.parametrize(("name", "more"), [("edelman2022", ("T",)), ("trauger2024", ("K",))])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_a_theorem_is_its_formula_everywhere(name: str, more: tuple[str, ...], depth: int) -> None:
    """What the checker makes of a setting, what `derive` prints and what pages draw are one number."""
    C = 1.25
    setting = SETTING.but(depth=depth, d_head=None, C=C, n_train=10**9, margin=0.5)
    values = {"C": C, "m": 10**9, "depth": depth, "d": 32, "heads": 1, "gamma": 0.5, "delta": 0.05}
    values |= {letter: {"T": 64, "K": C * math.sqrt(32)}[letter] for letter in more}
    checked = evaluate(setting, name)
    assert checked.name == name
    assert 10**checked.log10 == pytest.approx(THEOREMS[name].gap.value(**values), rel=1e-10)


def test_what_a_search_finds_has_a_name_of_its_own() -> None:
    assert evaluate(SETTING).log10 < evaluate(SETTING, "T-free").log10 < evaluate(SETTING, "trauger2024").log10 - 0.1
    assert all(POLICIES[name].form == "search" for name in ("best", "T-free", "parameters"))
    assert all(BOUNDS[name].form != "search" for name in set(BOUNDS) - set(POLICIES))


def test_statements_name_their_theorems_and_others_say_which_command_they_are_for() -> None:
    for name in ("X3", "X4", "X5", "X6", "zhang2022", "K1", "edelman2022_head"):
        with pytest.raises(InvalidSetting, match=f"boundcalc eval --bound {name}"):
            evaluate(SETTING, name)
