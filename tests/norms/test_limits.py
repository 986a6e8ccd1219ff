"""Which limits are read off weights depends on kinds and sizes alone (P1)."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from boundcalc import Architecture
from boundcalc.lab.train.measure import measured_norms
from boundcalc.lab.train.model import draw_weights
from boundcalc.norms.limits import budget, limits
from boundcalc.norms.matrix import as_stored, measure, vector
from boundcalc.setting import Budget

torch = pytest.importorskip("torch")

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "full scores": {"vocabulary": 5, "positions": "learned"},
    "one column": {"vocabulary": 3, "positions": "learned", "heads": 4, "d_head": 1},
    "pre": {"style": "pre", "residual": True, "bias": True, "normalisation": "layernorm", "heads": 2, "vocabulary": 5},
    "grouped": {"style": "pre", "residual": True, "heads": 4, "kv_heads": 2, "vocabulary": 4},
    "gated": {"style": "post", "residual": True, "gated": True, "d_head": 4, "heads": 2, "classes": 3, "vocabulary": 3},
}
CHANGES = {
    "random": lambda w: torch.randn_like(w),
    "zero": torch.zeros_like,
    "of rank one, and huge": lambda w: 1e20 * torch.ones_like(w),
    "sparse": lambda w: w * (torch.rand_like(w) < 0.02),
}


def read(architecture: Architecture, change: str) -> dict[str, frozenset[str]]:
    """Which limits each place has, for weights of some sort."""
    weights = {name: CHANGES[change](w) for name, w in draw_weights(architecture).items()}
    return {key: set_limits(b) for key, b in measured_norms(architecture, weights).budgets.items()}


def set_limits(b: Budget) -> frozenset[str]:
    return frozenset(f.name for f in fields(Budget) if getattr(b, f.name) is not None)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_what_is_read_does_not_depend_on_values(name: str) -> None:
    architecture = Architecture(depth=2, d=8, seq_len=6, **ARCHITECTURES[name])
    first, *others = (read(architecture, change) for change in CHANGES)
    assert all(first.values())
    for other in others:
        assert other == first


def test_ranks_of_values_would_be_seen() -> None:
    """The negative control: a rank that is measured depends on values, and so does what is read if it is kept at 0."""
    full, none = (measure(as_stored(w), np.random.default_rng(0)) for w in (np.eye(4), np.zeros((4, 4))))
    assert full.rank != none.rank
    for norms in (full, none):
        assert set_limits(budget(norms, limits("W_V", [(4, 4, 4)]))) == {"op", "fro", "two_one"}


def test_no_limit_is_paid_for_that_follows_from_the_others() -> None:
    """Of a column |W|_op = |W|_F = |W|_21, of rank one |W|_op = |W|_F."""
    assert limits("readout", [(64, 1, 1)]) == ("op",)
    assert limits("W_QK", [(64, 64, 1)]) == ("op", "two_one")
    assert limits("W_1", [(64, 1, 1), (64, 8, 8)]) == limits("W_1", [(64, 8, 8)])
    column = measure(as_stored(np.arange(1.0, 9)[:, None]), np.random.default_rng(0))
    assert column.op == pytest.approx(column.fro)
    assert column.op == pytest.approx(column.two_one)
    gain = vector(np.array([1.0, -3.0]))
    assert budget(gain, limits("norm_ffn.gain", [(2, 1, 1)])) == Budget(sup=3.0)
