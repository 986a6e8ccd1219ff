"""Published theorems by name: what `--bound` takes beside the policies."""

from __future__ import annotations

import pytest

from boundcalc import Setting, compare, evaluate
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.formulas.theorems import BOUNDS, POLICIES

SETTING = Setting.of(depth=2, d=32, d_head=4, seq_len=64, n_train=10**6)
T_FREE = ("trauger2024", "zhang2022")


def test_a_name_that_stands_for_a_policy_gives_its_value() -> None:
    for name, policy in (("edelman2022", "closed"), ("trauger2024", "trauger")):
        assert evaluate(SETTING, name).log10 == evaluate(SETTING, policy).log10
        assert evaluate(SETTING, name).name == name


@pytest.mark.parametrize("name", T_FREE)
def test_uniform_theorems_are_constant_in_the_length(name: str) -> None:
    here, far = evaluate(SETTING, name), evaluate(SETTING.but(seq_len=10**6), name)
    assert (here.log10, here.log_risk) == (far.log10, far.log_risk)


def test_best_is_below_every_named_theorem() -> None:
    best = evaluate(SETTING)
    for value in compare(SETTING, set(BOUNDS) - set(POLICIES)):
        assert best.log10 <= value.log10 + 1e-9


def test_rank_helps_only_who_uses_it() -> None:
    full = SETTING.but(d_head=None)
    assert evaluate(SETTING, "zhang2022").log10 < evaluate(full, "zhang2022").log10
    assert evaluate(SETTING, "parameters").log10 == evaluate(full, "parameters").log10


def test_the_size_independent_bound_refuses_positions_that_grow_with_the_input() -> None:
    learned = Setting.of("gpt2", seq_len=64, n_train=10**6)
    with pytest.raises(Unsupported, match="learned positions, whose number grows with T"):
        evaluate(learned, "zhang2022")
    fixed = learned.but(positions="fixed", position_radius=1.0)
    assert evaluate(fixed, "zhang2022").log10 == evaluate(fixed.but(seq_len=512), "zhang2022").log10


def test_statements_name_their_theorems_and_others_say_which_command_they_are_for() -> None:
    assert evaluate(SETTING, "X5").name == "zhang2022"
    for name in ("X3", "X4", "X6", "edelman2022_head"):
        with pytest.raises(InvalidSetting, match=f"boundcalc eval --bound {name}"):
            evaluate(SETTING, name)
