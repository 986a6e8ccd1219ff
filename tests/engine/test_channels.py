"""What channels instead of covers gain (G14), levels that must be pooled (G12), and what does not pay (docs/theory.md)."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError, Refusal
from boundcalc.base.numbers import FLOAT
from boundcalc.engine import heard
from boundcalc.engine.chain import pooled
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.ground import Found
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems.policies import POLICIES
from boundcalc.proof.certificate import Certificate, Cover, Level
from boundcalc.proof.checker import check
from boundcalc.setting import Architecture, Attention, Budget, Normaliser, Setting
from boundcalc.statements import gap
from boundcalc.statements.larger import joined
from boundcalc.statements.noises import NOISES
from boundcalc.statements.strategies import STRATEGIES, Known
from tests.proof import alone
from tests.recorded.before import comparable

BEST = POLICIES["best"]
COVERED = replace(BEST, channels=False)


def least(setting: Setting, policy: Any = BEST) -> Found:
    """The least gap that a policy finds, not checked."""
    return min(Search(setting, policy).gaps(), key=lambda found: found.log_value)


@pytest.mark.parametrize(("depth", "gain"), [(1, 0.0430), (2, 0.0303), (4, 0.0061)])
def test_channels_gain_what_the_page_says(depth: int, gain: float) -> None:
    setting = Setting.of(depth=depth, seq_len=512, n_train=10**6, margin=1.0)
    found, before = least(setting), least(setting, COVERED)
    assert found.strategy == "channel-chain"
    assert 1 - math.exp(found.log_value - before.log_value) == pytest.approx(gain, abs=0.001)
    assert found.log_value == pytest.approx(check(found.certificate).log_value, abs=1e-9)


def test_the_search_never_loses_by_channels() -> None:
    kinds: set[str] = set()
    for data in list(comparable(400))[::25]:
        setting = Setting.from_json(data)
        if setting.norms.measured:
            continue
        found, before = least(setting), least(setting, COVERED)
        kinds.add(found.strategy)
        assert found.log_value <= before.log_value + 1e-9
        if found.strategy == "channel-chain":
            assert found.log_value == pytest.approx(check(found.certificate).log_value, abs=1e-9)
    assert "channel-chain" in kinds


# ------------------------------------------------------------------------------------------------ levels pooled


def dual(scales: list[float], counts: list[float], weights: list[float], m: int) -> float:
    return sum(gap.dual_links(FLOAT, scales, counts, weights, m))


def chains(number: int) -> Any:
    """(falling scales, counts that need not rise with the links, m)."""
    rng = np.random.default_rng(4)
    for _ in range(number):
        levels = int(rng.integers(1, 7))
        scales = sorted(rng.random(levels + 1).tolist(), reverse=True)
        counts = np.exp(rng.uniform(-2, 8, levels)).tolist()
        yield [float(e) / 2 for e in scales], counts, 10 ** int(rng.integers(3, 8))


def test_pooled_weights_do_not_rise_and_no_others_give_less() -> None:
    rng = np.random.default_rng(1)
    pools = 0
    for scales, counts, m in chains(300):
        weights = pooled(scales, counts, m)
        assert all(a >= b > 0 for a, b in pairwise([math.inf, *weights]))
        value = dual(scales, counts, weights, m)
        links = sum(gap.refined_links(FLOAT, scales, counts, m))
        pools += len(set(weights)) < len(weights)
        if len(set(weights)) == len(weights):
            assert value == pytest.approx(links, rel=1e-12)
        else:
            assert value >= links * (1 - 1e-12)
        for _ in range(20):
            factors = np.sort(np.exp(rng.normal(0, 0.3, len(weights))))[::-1]
            other = [w * float(f) for w, f in zip(weights, factors, strict=True)]
            assert dual(scales, counts, other, m) >= value * (1 - 1e-12)
    assert pools > 100


def test_the_dual_form_bounds_links_whatever_part_each_level_takes() -> None:
    """sum e sqrt(2 b/m) over all b with b_1 + ... + b_j <= c_1 + ... + c_j: no such b exceeds it, and some b meets it."""
    rng = np.random.default_rng(2)
    for scales, counts, m in chains(100):
        value = dual(scales, counts, pooled(scales, counts, m), m)
        met = 0.0
        for _ in range(200):
            moved = rng.random(len(counts))
            left, taken = 0.0, []
            for count, part in zip(counts, moved, strict=True):
                left += count
                taken.append(part * left)
                left -= taken[-1]
            met = max(met, sum(gap.refined_links(FLOAT, scales, taken, m)))
        assert met <= value * (1 + 1e-12)


def test_links_taken_one_by_one_would_be_too_little() -> None:
    """Where counts fall, what the first level need not use the second may: the plain links are no bound."""
    scales, counts, m = [0.5, 0.4, 0.1], [100.0, 1.0], 1000
    moved = [100 * 0.25 / 0.41, 101 - 100 * 0.25 / 0.41]
    assert sum(gap.refined_links(FLOAT, scales, moved, m)) > sum(gap.refined_links(FLOAT, scales, counts, m))
    assert sum(gap.refined_links(FLOAT, scales, moved, m)) <= dual(scales, counts, pooled(scales, counts, m), m)


def coarse() -> Certificate:
    """A chain of two levels: the second refines the read-out alone and keeps all else, so that it adds little."""
    certificate = least(Setting.of(depth=1, d=16, n_train=10**6, margin=1.0), COVERED).certificate
    assert certificate.strategy == "refined-chain"
    fine = certificate.levels[0]
    cover = fine.covers["readout"]
    wide = Level(fine.log_scale + 0.3, {**fine.covers, "readout": Cover(cover.log_eps + 0.6, cover.choices)})
    kept = {
        key: Cover(each.log_eps, tuple(replace(x, lemma="T4r", params={"t": 0.01}, refines=True) for x in each.choices))
        for key, each in fine.covers.items()
    }
    return replace(certificate, levels=(wide, Level(fine.log_scale, kept)), log_value=1e6, nats=1e6)


def pooled_for(certificate: Certificate) -> tuple[float, ...]:
    """The weights that the search would give it."""
    found = check(replace(certificate, weights=(1.0,) * len(certificate.levels)))
    scales = [0.5, *(math.exp(level.log_scale) for level in certificate.levels)]
    return tuple(pooled(scales, [math.exp(count) for count in found.log_counts], 10**6))


def test_a_chain_that_adds_less_and_less_needs_its_weights() -> None:
    certificate = coarse()
    with pytest.raises(CertificateError, match="must grow as links shrink"):
        check(certificate)
    with pytest.raises(CertificateError):
        alone.log_value(certificate)
    weights = pooled_for(certificate)
    assert len(set(weights)) == 1
    found = check(replace(certificate, weights=weights))
    assert abs(float(alone.log_value(found.certificate)) - found.log_value) < 1e-12
    for other in ((weights[0], weights[1] / 2), (weights[0] * 2, weights[1])):
        assert check(replace(certificate, weights=other)).log_value > found.log_value


def test_what_are_no_weights_is_refused() -> None:
    certificate = coarse()
    weight = pooled_for(certificate)[0]
    for weights in ((weight, 1.1 * weight), (weight,), (weight, 0.0), (weight, -1.0), (weight, math.inf), ()):
        for checker in (check, alone.log_value):
            with pytest.raises(CertificateError):
                checker(replace(certificate, weights=weights))
    plain = replace(certificate, strategy="uniform-chain", weights=(weight, weight))
    with pytest.raises(CertificateError, match="takes no weights"):
        check(plain)


def test_weights_survive_a_file_and_are_part_of_the_claim() -> None:
    certificate = coarse()
    claimed = check(replace(certificate, weights=pooled_for(certificate))).claimed
    data = claimed.to_json()
    assert Certificate.from_json(data).weights == claimed.weights
    for wrong in ("0.1", [True, 0.1], [None, 0.1], {"0": 0.1}):
        data["strategy"]["weights"] = wrong
        with pytest.raises(CertificateError):
            Certificate.from_json(data)


def test_pooling_never_gains_on_leaving_levels_out() -> None:
    """The last level of a block alone, told all that the block says, costs less: why searches pool nothing."""
    for scales, counts, m in chains(300):
        weights = pooled(scales, counts, m)
        whole = 2 * scales[-1] + dual(scales, counts, weights, m)
        kept = [j for j in range(len(counts)) if j + 1 == len(counts) or weights[j + 1] < weights[j]]
        starts = [0, *(j + 1 for j in kept[:-1])]
        links = (scales[i] * math.sqrt(2 * sum(counts[i : j + 1]) / m) for i, j in zip(starts, kept, strict=True))
        assert 2 * scales[-1] + sum(links) <= whole * (1 + 1e-12)


def test_a_search_that_meets_falling_counts_pools_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were refinements to cost a thousandth, the chain of least cost would add less and less: its certificate has weights."""
    from boundcalc.engine import refine

    cheap = refine._Residual.cost
    monkeypatch.setattr(refine._Residual, "cost", lambda self, log_ratio: cheap(self, log_ratio) / 1e5)
    found = least(Setting.of(depth=1, d=16, n_train=10**6, margin=1.0), COVERED)
    assert found.strategy == "refined-chain"
    assert found.certificate.weights is not None
    assert all(a >= b for a, b in pairwise(found.certificate.weights))
    assert check(found.certificate).log_value > found.log_value  # the checker is told no such cost


def test_counts_that_may_fall_have_conditions_of_their_own() -> None:
    known = Known(0.5, [0.4, 0.3], [1e4, 10.0], 1.0, 10**6, 0.0, weights=[0.2, 0.3])
    conditions = STRATEGIES["refined-chain"].conditions(FLOAT, known)
    assert [why for less, more, why in conditions if less > more] == ["the weights of levels must not rise (G12)"]


# ------------------------------------------------------------------------------------------------ what does not pay


def test_separate_maps_for_products_of_scores_cost_more() -> None:
    """A6: a query map A W_QK and a key map A, in place of A W_QK A'."""
    setting = Setting.of(depth=2, seq_len=512, n_train=10**6, margin=0.5)
    whole = joined(setting)
    assert not isinstance(whole, Refusal)
    budgets = {key: budget for key, budget in whole.norms.budgets.items() if key != "W_QK[1]"}
    apart = {"W_Q[1]": Budget(op=1.0, two_one=1.0), "W_K[1]": Budget(op=1.0, two_one=1.0)}
    layers = tuple(
        replace(layer, qk="split", d_head=64, normaliser=Normaliser("softmax", 1.0))
        if isinstance(layer, Attention) and layer.block == 1
        else layer
        for layer in whole.architecture.stages
    )
    architecture = Architecture(seq_len=512, layers=layers)
    other = evaluate(Setting(architecture, replace(whole.norms, budgets={**budgets, **apart}), setting.sample))
    assert other.gap / evaluate(setting).gap == pytest.approx(1.15, abs=0.01)


@pytest.mark.parametrize("law", NOISES)
@pytest.mark.parametrize(("d", "k"), [(1, 1), (1, 5), (5, 1), (2, 3), (17, 17), (768, 768)])
def test_what_noise_tells_is_known_at_both_ends_of_floats(law: str, d: int, k: int) -> None:
    """A class of zero matrices, or one of enormous ones: a number, which rises with the budget."""
    told = [
        heard._told(law, d, k).nearly(log_z) for log_z in (-3000.0, -700.0, -300.0, -1.0, 1.0, 300.0, 700.0, 3000.0)
    ]
    assert all(map(math.isfinite, told))
    assert all(less <= more * (1 + 1e-9) for less, more in pairwise(told))
