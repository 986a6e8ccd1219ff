"""E: general attention, against L7 and T on the bilinear head, and against real networks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import Unsupported
from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.numbers import FLOAT, LOG, Number, NumberSystem
from boundcalc.setting import Architecture, Attention, Budget, Normaliser, Norms, Pool, Sample, Setting
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.general import (
    Cost,
    GeneralAttention,
    applies,
    choose_scales,
    choose_share,
    fixed,
    gap_bound,
    lemma_cost,
    log_count,
)
from boundcalc.statements.network import Network
from boundcalc.statements.targets import MatrixNorms, Points, Target

SYSTEMS: tuple[NumberSystem, ...] = (FLOAT, LOG, INTERVAL)
B, C_V, FRO, K_V, D, T, M = 1.3, 0.8, 1.7, 1.1, 6, 40, 10**5


def norms_of(ns: NumberSystem, op: float, fro: float, two_one: float) -> MatrixNorms:
    f, k = ns.number(fro), ns.number(two_one)
    return MatrixNorms(ns.number(op), f, k, k, k, k, D)


def score_target(ns: NumberSystem) -> Target:
    return Target("score", D, D, ns.number(B) ** 2, norms_of(ns, FRO, FRO, FRO), Points(T))


def value_target(ns: NumberSystem) -> Target:
    """Linear phi_in may be covered on the pooled rows, one per sample here."""
    return Target("map", D, D, ns.number(B), norms_of(ns, C_V, C_V, K_V), Points(1))


def bilinear_head() -> GeneralAttention:
    return GeneralAttention.of(
        Normaliser("softmax", 1.0),
        score=lemma_cost(LEMMAS["T1"], score_target, M),
        feature=lemma_cost(LEMMAS["T2"], value_target, M),
        lipschitz_out=1.0,
        bound_in=B * C_V,
    )


def power(coefficient: float, reach: float) -> Cost:
    """A class whose log-count is coefficient * (reach/eps)^2, and 0 from its reach on."""

    def cost(ns: NumberSystem, eps: Number) -> Number:
        y = ns.number(reach) / eps
        return ns.number(0) if y <= 1 else ns.number(coefficient) * y**2

    return cost


def powers(**changes: Any) -> GeneralAttention:
    values: dict[str, Any] = {
        "score": power(3.0, 2.0),
        "feature": power(5.0, 1.5),
        "lipschitz_out": 1.7,
        "bound_in": 1.5,
        "c": 0.5,
        "mu": 1.2,
    }
    return GeneralAttention(**(values | changes))


# ---------------------------------------------------------------- agreement


def test_the_bilinear_head_is_l7_with_t1_and_t2() -> None:
    """The same network by lowering: same errors per eps, and the same log-count at the same split."""
    layers = (Attention(D, normaliser=Normaliser("softmax", 1.0)), Pool("cls"))
    budgets = {"W_QK": Budget(op=FRO, fro=FRO, two_one=10.0, two_one_t=10.0), "W_V": Budget(op=C_V, two_one=K_V)}
    network = Setting(
        Architecture(layers=layers, seq_len=T, input_radius=B, classes=D),
        Norms(budgets=budgets),
        Sample(M, lipschitz=1.0),
    )
    head = bilinear_head()
    for eps in (0.05, 0.3, 0.9):
        share = choose_share(head, eps)
        for ns in SYSTEMS:
            pieces = {piece.key: piece for piece in Network(network, ns).pieces}
            total: Number = ns.number(0)
            for key, lemma, kind, part in (
                ("W_QK", LEMMAS["T1"], "score", share),
                ("W_V", LEMMAS["T2"], "map", 1 - share),
            ):
                target = next(t for t in pieces[key].members[0].targets if t.kind == kind)
                tolerance = ns.number(part) * ns.number(eps) / pieces[key].gain
                y = lemma.reach(target) / tolerance
                total = total + lemma.closed(ns, y, target, ns.number(target.points.count(M)))
            found = log_count(ns, head, ns.number(eps), share)
            assert abs(float(found) / float(total) - 1) < 1e-13


def test_the_share_is_that_of_a1() -> None:
    """Two power costs: A1 gives the best split in closed form."""
    wide = powers(score=power(3.0, 2e6), feature=power(5.0, 1.5e6))
    score, feature = 3.0 * (2e6 * 0.5 * 1.7 * 1.5) ** 2, 5.0 * (1.5e6 * 1.2 * 1.7) ** 2
    best = (score ** (1 / 3) + feature ** (1 / 3)) ** 3
    assert log_count(FLOAT, wide, 1.0, choose_share(wide, 1.0)) == pytest.approx(best, rel=1e-12)
    assert log_count(FLOAT, wide, 1.0, 0.5) > best * 1.001


def test_the_share_finds_costs_that_vanish() -> None:
    """Where one class is within its reach, nearly all of the error goes to the other."""
    eps = 0.3
    attention = powers(score=power(3.0, 2.0), feature=power(5.0, 1e-3))
    share = choose_share(attention, eps)
    only_score = 3.0 * (2.0 * 0.5 * 1.7 * 1.5 / eps) ** 2
    assert only_score < log_count(FLOAT, attention, eps, share) < only_score * 1.03


def test_the_range_of_floats_is_no_limit() -> None:
    attention = powers(score=power(3.0, 1e200), feature=power(5.0, 1e-200))
    found = log_count(LOG, attention, LOG.number(1e-100), choose_share(attention, 1e-100))
    assert found.log == pytest.approx(math.log(3.0) + 2 * (math.log(1e300) + math.log(0.5 * 1.7 * 1.5)), rel=1e-9)


def test_classes_of_one_element_cost_nothing() -> None:
    gains = lemma_cost(
        LEMMAS["T9"], lambda ns: Target("gain", 1, D, ns.number(B), norms_of(ns, 1, 1, 1), Points(0, 1)), M
    )
    for attention, share in ((powers(score=fixed, feature=gains), 0.0), (powers(feature=fixed), 1.0)):
        assert choose_share(attention, 0.1) == share
        assert log_count(FLOAT, attention, 0.1, share) > 0
        with pytest.raises(ValueError, match="0 < share < 1"):
            log_count(FLOAT, attention, 0.1, 1 - share)
    assert log_count(FLOAT, powers(score=fixed, feature=fixed), 0.1, 0.5) == 0


# ---------------------------------------------------------------- hypotheses


def test_missing_hypotheses_are_named() -> None:
    assert applies(powers()) is None
    for name in ("score", "feature", "lipschitz_out", "bound_in", "c", "mu"):
        for value in (None,) if name in ("score", "feature") else (None, math.inf, 0.0, -1.0, math.nan):
            lacking = powers(**{name: value})
            answer = applies(lacking)
            assert answer is not None
            assert name in answer.got
            with pytest.raises(Unsupported, match=name):
                log_count(FLOAT, lacking, 0.1, 0.5)
    with pytest.raises(Unsupported, match="support"):
        GeneralAttention.of(Normaliser("sparsemax"), score=fixed, feature=fixed)
    with pytest.raises(Unsupported, match="score_radius"):
        GeneralAttention.of(Normaliser("linear"), score=fixed, feature=fixed)
    with pytest.raises(Unsupported, match="T4"):
        lemma_cost(LEMMAS["T4"], score_target, M)
    with pytest.raises(ValueError, match="share"):
        log_count(FLOAT, powers(), 0.1, 1.5)
    with pytest.raises(ValueError, match="scales"):
        gap_bound(FLOAT, powers(), [0.1, 0.2], 1.0, 3.0, M)


@pytest.mark.parametrize(
    ("normaliser", "c", "mu"),
    [
        (Normaliser("softmax", 0.5), 2.0, 1.0),
        (Normaliser("softmax1"), 1.0, 1.0),
        (Normaliser("sigmoid"), 0.25, 1.0),
        (Normaliser("linear", 2.0), 0.5, 3.5),
        (Normaliser("custom", None, 3.0, 4.0), 3.0, 4.0),
    ],
)
def test_normalisers_bring_their_constants(normaliser: Normaliser, c: float, mu: float) -> None:
    attention = GeneralAttention.of(normaliser, score=fixed, feature=fixed, score_radius=7.0)
    assert (attention.c, attention.mu) == (c, mu)


# ---------------------------------------------------------------- truth


def head_output(a: np.ndarray, phi: np.ndarray, scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max())
    return a * ((weights / weights.sum()) @ phi)


def worst_ratio(c_claimed: float, mu_claimed: float) -> float:
    """Largest (output error)/(claimed error) over random scores and features, half of them adversarial."""
    rng = np.random.default_rng(11)
    worst = 0.0
    for trial in range(400):
        eta_s, eta_in, bound, out = 0.02, 0.03, 1.5, 2.0
        positions = int(rng.integers(2, 7))
        phi = rng.standard_normal((positions, 3))
        phi *= bound / np.linalg.norm(phi, axis=1, keepdims=True)
        scores = rng.normal(0, 0.5, positions)
        if trial % 2:  # two groups of keys with opposite features, pushed apart
            phi[:] = np.where(np.arange(positions)[:, None] % 2, 1.0, -1.0) * bound * np.array([1.0, 0.0, 0.0])
            scores[:] = 0.0 if positions % 2 == 0 else scores
            push = np.where(np.arange(positions) % 2, 1.0, -1.0) * eta_s
            shift = np.tile([eta_in, 0.0, 0.0], (positions, 1))
        else:
            push = rng.uniform(-eta_s, eta_s, positions)
            shift = rng.standard_normal((positions, 3))
            shift *= eta_in / np.linalg.norm(shift, axis=1, keepdims=True)
        moved = head_output(np.array(out), phi + shift, scores + push) - head_output(np.array(out), phi, scores)
        claimed = out * (c_claimed * bound * eta_s + mu_claimed * eta_in)
        worst = max(worst, float(np.linalg.norm(moved)) / claimed)
    return worst


def test_no_network_errs_by_more_than_claimed() -> None:
    worst = worst_ratio(1.0, 1.0)
    assert 0.95 < worst <= 1 + 1e-3  # finite steps: the constant c is a slope


def test_lowered_constants_are_found_out() -> None:
    assert worst_ratio(0.7, 1.0) > 1.01
    assert worst_ratio(1.0, 0.7) > 1.01


# ---------------------------------------------------------------- a gap


def test_a_gap_from_users_classes() -> None:
    """RBF-like scores known only by a log-count, one fixed feature map, sigmoid weights: a gap, as an interval."""
    attention = GeneralAttention.of(
        Normaliser("sigmoid"),
        score=lambda ns, eps: ns.number(40) * ns.log1p(2 / eps),
        feature=fixed,
        lipschitz_out=1.0,
        bound_in=1.0,
        uniform=True,
    )
    m = 10**5
    scales = choose_scales(attention, 1.0, m)
    assert scales == sorted(scales, reverse=True)
    confidence = math.log(20)
    found = gap_bound(FLOAT, attention, scales, 1.0, confidence, m)
    proved = upper_float(gap_bound(INTERVAL, attention, scales, 1.0, INTERVAL.number(confidence), m))
    assert found == pytest.approx(proved, rel=1e-12)
    links = [
        coarse * math.sqrt(80 * math.log1p(0.5 / fine) / m)
        for coarse, fine in zip([0.5, *scales], scales, strict=False)
    ]
    truth = 2 * scales[-1] + sum(links) + math.sqrt(confidence / (2 * m))
    assert truth == pytest.approx(found, rel=1e-12)
    assert proved < 0.06
    shorter = gap_bound(FLOAT, attention, scales[:-2], 1.0, confidence, m)
    assert found < shorter
    empirical = GeneralAttention.of(
        Normaliser("sigmoid"), score=attention.score or fixed, feature=fixed, lipschitz_out=1.0, bound_in=1.0
    )
    assert gap_bound(FLOAT, empirical, scales, 1.0, confidence, m) > found
