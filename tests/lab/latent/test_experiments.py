"""The experiments: plans, rates, and whether gaps rise with the input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boundcalc import Setting
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.lab.latent.experiments.infer import InferPlan, best_temperatures, infer
from boundcalc.lab.latent.experiments.learn import LearnPlan, flatness, gap_points, gap_rows, with_bounds
from boundcalc.lab.latent.experiments.statistics import (
    fit_rate,
    fit_slope,
    mean_interval,
    quantile_interval,
    share_interval,
)
from boundcalc.lab.latent.learning import learning_bound
from boundcalc.setting import Architecture, Budget, Norms


def test_intervals_cover() -> None:
    rng = np.random.default_rng(0)
    x = rng.exponential(size=(1000, 40))
    assert np.mean([mean_interval(row).low <= 1 <= mean_interval(row).high for row in x]) > 0.9
    median = math.log(2)
    covered = [quantile_interval(row, 0.5) for row in x]
    assert np.mean([found.low <= median <= found.high for found in covered]) >= 0.94
    assert quantile_interval(x[0], 0.99).high == math.inf
    assert share_interval(0, 100).low == 0
    assert share_interval(100, 100).high == 1
    shares = [share_interval(int(k), 50) for k in rng.binomial(50, 0.1, 1000)]
    assert np.mean([found.low <= 0.1 <= found.high for found in shares]) >= 0.94


def test_slopes() -> None:
    rng = np.random.default_rng(1)
    x = np.linspace(0, 5, 12)
    found = [fit_slope(x, 2 * x + rng.standard_normal(12)) for _ in range(500)]
    assert 0.92 <= np.mean([slope.low <= 2 <= slope.high for slope in found]) <= 0.98
    lengths = [2.0**i for i in range(4, 10)]
    means = [mean_interval(n**-0.5 * (1 + 0.1 * rng.standard_normal(300))) for n in lengths]
    rate = fit_rate(lengths, means)
    assert rate.low <= -0.5 <= rate.high
    assert rate.high - rate.low < 0.1
    with pytest.raises(InvalidSetting, match="at least three points"):
        fit_slope([1.0, 2.0], [1.0, 2.0])


def test_inference_improves_with_the_input_at_the_reported_rates() -> None:
    plan = InferPlan(lengths=tuple(2**i for i in range(6, 14)), repetitions=300, taus=(1.0, 0.2, 0.05), seed=3)
    result = infer(plan)
    for name in ("CME, posterior mean", "softmax tau=1, own limit", "softmax tau=0.2, own limit"):
        assert result.rates[name].low <= -0.5 <= result.rates[name].high
        assert result.rates[name].high < -0.4
    assert result.bound_rates["CME, posterior mean"] == pytest.approx(-0.5, abs=0.05)
    assert -0.35 < result.bound_rates["CME, ridge of the bound"] < -0.2
    assert result.rates["CME, ridge of the bound"].high < -0.1
    for point in result.points:
        if point.failures is not None:
            assert point.failures.low <= plan.delta
    last = {point.name: point for point in result.points if point.length == plan.lengths[-1]}
    for tau in (1.0, 0.2):  # softmax attention is left with the bias that the theory gives it
        found = last[f"softmax tau={tau:g}, conditional mean"]
        assert found.mean.value == pytest.approx(found.limit, rel=0.1)
    biases = [last[f"softmax tau={tau:g}, conditional mean"].limit for tau in plan.taus]
    assert biases[0] > biases[1] > biases[2] > 0.01
    best = best_temperatures(result)
    assert best[plan.lengths[-1]] == 0.05
    assert result.to_json()["points"][0]["mean"][0] > 0
    assert "softmax tau=1, conditional mean" not in result.rates


def test_the_best_temperature_falls_as_the_input_grows() -> None:
    plan = InferPlan(lengths=(8, 4096), repetitions=400, taus=(1.0, 0.3, 0.02), seed=4)
    best = best_temperatures(infer(plan))
    assert best[8] > best[4096]


# ------------------------------------------------------------------------ X5


def test_x5_is_exactly_constant_in_the_input_size() -> None:
    several: tuple[dict[str, Any], ...] = ({"depth": 1}, {"depth": 3, "heads": 4}, {"depth": 2, "readout": "mean"})
    for changes in several:
        values = {learning_bound(Setting.of(seq_len=T, n_train=10**6, C=1.5, **changes)).value for T in (2, 64, 10**6)}
        assert len(values) == 1
    assert learning_bound(Setting.of(n_train=10**8, C=1.0)).value < 0.1
    bare, excess = (learning_bound(Setting.of(n_train=10**6), excess=e).value for e in (False, True))
    assert bare < excess < bare + 0.01


def test_x5_uses_low_rank_covers_and_refuses_learned_positions() -> None:
    full = Setting.of(d=64, n_train=10**6, C=1.0)
    budgets = {kind: Budget(op=1.0, rank=2) for kind in ("W_QK", "W_V", "W_1")}
    low = Setting(full.architecture, Norms(1.0, budgets), full.sample)
    assert learning_bound(low).value < 0.6 * learning_bound(full).value


def test_x5_with_a_margin_seen_after_training_is_an_estimate() -> None:
    """Nothing is paid for having looked."""
    assert learning_bound(Setting.of(margin=0.7)).kind == "bound"
    assert learning_bound(Setting.of(margin=0.7, measured=("margin",))).kind == "estimate"
    with pytest.raises(Unsupported, match="whose number grows with T"):
        learning_bound(Setting.of(positions="learned"))


def record(kind: str, length: int, m: int, gap: float, status: str = "done") -> dict[str, Any]:
    result = {"status": status, "gap": gap, "train": {"error": 0.1}, "test": {"error": 0.1 + gap}}
    return {"config": {"task": {"task": kind, "L": length}, "m": m}, "result": result}


def test_flat_gaps_are_told_from_rising_ones() -> None:
    rng = np.random.default_rng(5)
    verdicts: dict[float, list[bool]] = {0.0: [], 0.05: []}
    for slope in verdicts:
        for _ in range(100):
            records = [
                record("masked-token", n, m, 10 / m + slope * math.log(n) + 0.05 * float(rng.standard_normal()))
                for n in (8, 32, 128, 512)
                for m in (64, 256)
                for _ in range(8)
            ]
            found = flatness(gap_points(records))
            assert [one.m for one in found] == [64, 256, None]
            verdicts[slope].append(found[-1].rises)
    assert sum(verdicts[0.0]) <= 8
    assert sum(verdicts[0.05]) >= 99


def test_rows_leave_out_what_did_not_finish() -> None:
    records = [record("gaussian-linear", 8, 64, g) for g in (0.1, 0.2, 0.3)]
    records += [record("gaussian-linear", 8, 64, 9.0, "diverged"), record("conjunction", 8, 64, 9.0)]
    (row,) = gap_rows(gap_points(records))
    assert (row.kind, row.length, row.m, row.trials) == ("supervised", 8, 64, 3)
    assert row.gap.value == pytest.approx(0.2)


def test_bounds_beside_measured_gaps_hold_for_the_class_trained_in() -> None:
    plan = LearnPlan(lengths=(8, 512), C=2.0)
    found = []
    for length in plan.lengths:
        model = plan.sweep("masked")["model"]
        architecture = Architecture(vocabulary=17, seq_len=length + 1, classes=16, **model)
        (row,) = gap_rows(gap_points([record("masked-token", length, 64, g) for g in (0.1, 0.2)]))
        found.append(with_bounds(row, plan, architecture))
    assert found[0].x5 == found[1].x5
    assert found[0].log_t is not None
    assert found[1].log_t is not None
    assert found[0].log_t < found[1].log_t
    assert found[0].x5 is not None
    assert found[0].x5 > 0.2


@pytest.mark.parametrize("kind", ["supervised", "masked"])
def test_the_sweep_is_one_that_training_takes(kind: str) -> None:
    pytest.importorskip("torch")
    from boundcalc.lab.train.sweep import sweep_from_json

    plan = LearnPlan(seeds=3)
    found = sweep_from_json(plan.sweep(kind))
    assert len(found.trials) == 4 * 2 * 3
    assert {trial.architecture.seq_len for trial in found.trials} == {9, 33, 129, 513}
    assert all(trial.architecture.positions == "none" for trial in found.trials)


def test_bad_plans_are_refused() -> None:
    for make, message in (
        (lambda: InferPlan(repetitions=1), "repetitions must lie between 10"),
        (lambda: InferPlan(taus=(0.0,)), "temperature tau"),
        (lambda: LearnPlan(kinds=("both",)), "kind must be one of"),
        (lambda: LearnPlan(seeds=1), "seeds must lie between 2"),
    ):
        with pytest.raises(InvalidSetting, match=message):
            make()
