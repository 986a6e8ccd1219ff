"""What is met at a prompt says what it is in a few lines, however large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from boundcalc import Architecture, Budget, Data, Norms, Sample, Setting, compare, evaluate, solve
from boundcalc.setting import PRESETS

SETTING = Setting.of("edelman", depth=2, seq_len=512, n_train=10**8, C=1.0)
MANY = Norms(C=1.0, budgets={f"W_V[{block}]": Budget(op=2.0, two_one=3.0) for block in range(12)})

SHOWN: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "setting": (lambda: SETTING, ("depth 2", "T 512", "C 1.0", "m 100000000", "delta 0.05", "gamma 0.12")),
    "many budgets": (lambda: Setting.of("gpt2", norms=MANY), ("12 budgets", "causal", "style pre")),
    "layers": (
        lambda: Architecture(layers=SETTING.architecture.stages, seq_len=64),
        ("12 layers", "T 64"),
    ),
    "sample": (lambda: Sample(measured=("margin",)), ("m 1000000", "measured ('margin',)")),
    "norms": (lambda: MANY, ("C 1.0", "12 budgets")),
    "bound": (lambda: evaluate(SETTING), ("bound", "gap <= 0.011", "comparison")),
    "certificate": (
        lambda: evaluate(SETTING).certificate,
        ("gap <= 0.011", "kind bound", "found by 'best'", "T 512"),
    ),
    "breakdown": (lambda: evaluate(SETTING).breakdown, ("K1",)),
    "solution": (lambda: solve(SETTING, "m", 0.1), ("'m'", "12")),
    "comparison": (lambda: compare(SETTING), ("best", "published")),
    "data": (lambda: Data(np.zeros((500, 9), dtype=int), np.zeros(500, dtype=int)), ("500 examples", "[9]")),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_few_lines_say_what_it_is(name: str) -> None:
    make, says = SHOWN[name]
    text = repr(make())
    assert all(word in text for word in says), text
    assert text.count("\n") <= 12
    assert len(text) < 1200


@pytest.mark.parametrize("preset", PRESETS)
def test_a_setting_says_all_that_is_not_as_by_default(preset: str) -> None:
    """Two presets that differ are told apart, and so are two values of any field."""
    setting = Setting.of(preset)
    others = [Setting.of(other) for other in PRESETS if PRESETS[other] != PRESETS[preset]]
    assert all(repr(other) != repr(setting) for other in others)
    changed = {
        "seq_len": 77,
        "classes": 5,
        "n_train": 123,
        "delta": 0.01,
        "margin": 0.25,
        "C": 3.0,
    }
    for name, value in changed.items():
        assert repr(setting.but(**{name: value})) != repr(setting), name
