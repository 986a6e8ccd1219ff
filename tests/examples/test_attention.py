"""Where attention lies: measured on weights that are known, and by training on tasks of which few or all positions
matter."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
from tests.examples.scripts import load

module = load("edelman2022", "attention")


def test_shares_and_effective_positions_of_known_weights() -> None:
    sparse = np.zeros((2, 2, 8))
    sparse[:, 0, 3] = 1.0  # one head puts all on position 3, the other the same everywhere
    sparse[:, 1] = 1 / 8
    seen = module.Looked(sparse, np.array([0.75, 0.25]), (3,))
    assert seen.share == pytest.approx(0.75 + 0.25 / 8)
    assert seen.looks_at == pytest.approx(0.75 * 1 + 0.25 * 8)
    other = module.Looked(sparse, seen.sizes, (4,))
    assert other.share == pytest.approx(0.25 / 8)  # the negative control: another position holds hardly anything


def test_trained_attention_is_sparse_where_few_matter_and_even_where_all_do() -> None:
    few, every = (case for case in module.CASES if case.name.startswith("majority"))
    sparse = [module.looked(outcome) for outcome in module.train(module.trials(few, 2))]
    assert min(one.share for one in sparse) > 0.6 > 3 * 5 / 33
    even = [module.looked(outcome, True) for outcome in module.train(module.trials(every, 2))]
    assert min(one.looks_at for one in even) > 0.9 * 16
    start = [module.looked(outcome) for outcome in module.train(module.trials(few, 2, 1))]
    assert max(one.share for one in start) < 2 * 5 / 33  # training does it
