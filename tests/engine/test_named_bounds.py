"""Published theorems by name: what `--bound` takes beside the policies."""

from __future__ import annotations

import pytest

from boundcalc import Setting, compare, evaluate
from boundcalc.theorems.policies import BOUNDS, POLICIES

SETTING = Setting.of(depth=2, d=32, d_head=4, seq_len=64, n_train=10**6)
T_FREE = ("trauger2024", "zhang2022", "truong2024", "sakai2026")


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
    assert evaluate(SETTING, "truong2024").log10 < evaluate(full, "truong2024").log10
    assert evaluate(SETTING, "zhang2022").log10 == evaluate(full, "zhang2022").log10
