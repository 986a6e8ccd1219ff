"""X5: constant in the input size, sharper for low ranks, and refused where the number of parameters grows with T."""

from __future__ import annotations

from typing import Any

import pytest

from boundcalc import Setting
from boundcalc.base.errors import Unsupported
from boundcalc.lab.latent.bounds import learning_bound
from boundcalc.setting import Budget, Norms


def test_x5_is_exactly_constant_in_the_input_size() -> None:
    several: tuple[dict[str, Any], ...] = ({"depth": 1}, {"depth": 3, "heads": 4}, {"depth": 2, "readout": "mean"})
    for changes in several:
        values = {learning_bound(Setting.of(seq_len=T, n_train=10**6, C=1.5, **changes)).value for T in (2, 64, 10**6)}
        assert len(values) == 1
    assert learning_bound(Setting.of(n_train=10**8, C=1.0)).value < 0.1
    bare, excess = (learning_bound(Setting.of(n_train=10**6), excess=e).value for e in (False, True))
    assert bare < excess < bare + 0.01


def test_x5_uses_low_rank_covers() -> None:
    full = Setting.of(d=64, n_train=10**6, C=1.0)
    budgets = {kind: Budget(op=1.0, rank=2) for kind in ("W_QK", "W_V", "W_1")}
    low = Setting(full.architecture, Norms(1.0, budgets), full.sample)
    assert learning_bound(low).value < 0.6 * learning_bound(full).value


def test_x5_with_a_margin_seen_after_training_is_an_estimate() -> None:
    """It is not corrected for having looked."""
    assert learning_bound(Setting.of(margin=0.7)).kind == "bound"
    assert learning_bound(Setting.of(margin=0.7, measured=("margin",))).kind == "estimate"
    with pytest.raises(Unsupported, match="whose number grows with T"):
        learning_bound(Setting.of(positions="learned"))
