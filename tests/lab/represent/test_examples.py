"""The examples about explicit weights keep their promises, and what they rest on can fail."""

from __future__ import annotations

import math

import pytest

from tests.examples.scripts import load, quick


@pytest.mark.parametrize("name", ["sparse", "deep"])
def test_what_is_computed_lies_below_what_is_measured(name: str) -> None:
    computed, measured = quick("edelman2022", name)
    assert computed
    assert computed.keys() == measured.keys()
    assert all(computed[place] <= measured[place] for place in computed)


def test_norms_grow_exponentially_for_any_function_and_polynomially_for_symmetric_ones() -> None:
    module = load("edelman2022", "sparse")
    found = module.growth(seq_len=64)
    assert 2.0 < module.fitted(found["any function"], exponential=True) < 3.0
    assert 2.2 < module.fitted(found["symmetric"], exponential=False) < 3.0
    assert 1.3 < module.fitted(found["threshold"], exponential=False) < 2.0
    assert found["symmetric"][28.0] < math.prod(module.norms(module.by_corners(10, 64)))
    keys = [module.norms(module.by_corners(3, T))[0] for T in (64, 512, 4096)]
    assert 0.5 < (keys[2] - keys[1]) / (keys[1] - keys[0]) < 1.1  # log T, not a power: each factor of 8 adds as much


def test_blocks_whose_attention_leaks_compute_other_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    module = load("edelman2022", "deep")
    assert module.least(module.TREES[4.0], 8) > 0.9
    monkeypatch.setattr(module, "LEAK", 2.0)
    assert module.least(module.TREES[4.0], 8) < 0
