"""The ends of the range: finite logarithms in bounded time, confirmed by the checker."""

from __future__ import annotations

import math
from typing import Any

import pytest

from boundcalc.engine.evaluate import Evaluator, compare
from boundcalc.engine.search import Search
from boundcalc.proof.checker import check
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements.premise import no_member
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings

EXTREMES: dict[str, dict[str, Any]] = {
    "everything large": {"depth": 30, "C": 50.0, "d": 12288, "seq_len": 10**9, "n_train": 10**15},
    "one of everything": {"depth": 1, "d": 1, "seq_len": 1, "n_train": 1},
    "norms beyond floats squared": {"depth": 3, "C": 1e300},
    "norms of nothing": {"depth": 3, "C": 1e-300},
    "no margin": {"margin": 1e-300},
    "all margin": {"margin": 1e300},
    "sure": {"delta": 1e-300},
    "unsure": {"delta": 1 - 1e-15},
    "wide": {"d": 10**15, "n_train": 10**18},
    "many heads": {"d": 3 * 10**4, "heads": 3 * 10**4},
    "every error": {"train_error": 1.0},
    "small weights": {"C": 0.01, "n_train": 100},
}
SPEAK_OF_NONE = ("norms of nothing", "all margin", "small weights")
"""Where no network has a margin above gamma."""
LARGEST: dict[str, Any] = EXTREMES["everything large"] | {"depth": 1000}
LARGEST_DIFFERENCE = 1e-6
NOISE_DIFFERENCE = 2e-3


@pytest.mark.parametrize("name", EXTREMES)
def test_every_policy_has_a_finite_checked_value(name: str) -> None:
    setting = Setting.of(**EXTREMES[name])
    for value in map(Evaluator(setting, no_member).value, POLICIES):
        if value.name == "comparison" and value.refusal is not None:
            continue  # where projections may act
        assert value.refusal is None
        assert math.isfinite(value.log10)
        assert 0 <= value.gap <= 1
        if value.risk_refusal is None:
            assert math.isfinite(value.log_risk)
            assert 0 <= value.risk <= 1
        else:
            assert name in SPEAK_OF_NONE


def misjudged(setting: Setting) -> list[str]:
    """Strategies of candidates of which the checker finds another value than the search, or none.

    Relative to the logarithm where that is large: beyond 10^300 a log carries its own rounding.
    """
    wrong: list[str] = []
    for policy in (each for each in POLICIES.values() if each.refuses(setting) is None):
        search = Search(setting, policy)
        for found in (*search.candidates("gap"), *search.candidates("risk")):
            if not math.isfinite(found.log_value):
                continue  # a risk too large for floats is only known to be vacuous
            checked = check(found.certificate).log_value
            noisy = found.certificate.strategy == "noise-margin" and min(setting.architecture.d, 10**8) > 10**4
            room = (NOISE_DIFFERENCE if noisy else LARGEST_DIFFERENCE) * max(1.0, abs(checked))
            if abs(checked - found.log_value) > room:  # lgammas of 10^8 parameters cancel in floats
                wrong.append(found.certificate.strategy)
    return wrong


@pytest.mark.parametrize("name", EXTREMES)
def test_the_search_knows_what_the_checker_finds(name: str) -> None:
    assert misjudged(Setting.of(**EXTREMES[name])) == []


def test_the_search_knows_so_of_random_settings_and_of_many_samples() -> None:
    """Noise of large models lies far beyond where curves are tabulated."""
    large = [Setting.of(name, n_train=m) for name in ("bert", "llama") for m in (10**12, 10**15)]
    assert [text for setting in (*settings(10, 35), *large) for text in misjudged(setting)] == []


@pytest.mark.parametrize("depth", [300, pytest.param(1000, marks=pytest.mark.slow)])
def test_hundreds_of_blocks(depth: int) -> None:
    given: dict[str, Any] = {**LARGEST, "depth": depth}
    for value in compare(Setting.of(**given), ["closed", "parameters", "published"]):
        assert math.isfinite(value.log10)
        if value.name != "parameters":  # which may do without any cover, and stay at the radius of the loss
            assert value.log10 > 1000


def test_rows_of_many_normalised_blocks_stay_balls_of_some_width() -> None:
    """Behind 70 blocks of LayerNorm a ball that doubled with every layer would be everything."""
    value = compare(Setting.of("bert", C=1.0, n_train=10**12, depth=100), ["T-free"])[0]
    assert not value.trivial
    assert math.isfinite(value.log10)


@pytest.mark.parametrize(
    "budget",
    [
        Budget(op=0.0),
        Budget(op=1.0, rank=0),
        Budget(op=1.0, nuclear=0.0),
        Budget(op=1.0, distance=Budget(op=0.0)),
        Budget(nuclear=2.0),
        Budget(op=0.5, nuclear=30.0),
    ],
)
def test_budgets_of_nothing_and_of_spectra(budget: Budget) -> None:
    for kind in ("W_QK", "W_V", "W_1", "readout"):
        plain = Setting.of(n_train=10**8, norms=Norms(C=1.0, budgets={kind: Budget(op=1.0)}))
        found = compare(plain.but(norms=Norms(C=1.0, budgets={kind: budget})))
        for value, other in zip(found, compare(plain), strict=True):
            if value.refusal is not None:
                continue  # theorem K asks for a spectral norm
            assert math.isfinite(value.log10)
            if budget.nuclear is None:
                assert value.log10 <= other.log10 + 0.05
