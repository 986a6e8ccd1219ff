"""Theorem K (K1, K2): each of its constants attacked by search, its value held against members, the second checker and
laws."""

from __future__ import annotations

import math
import operator
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import binom, norm

from boundcalc import Budget, Norms, Setting
from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.numbers import FLOAT
from boundcalc.engine._comparison import tune
from boundcalc.engine.search import Search
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check, verify
from boundcalc.statements.comparison.closed import _LOWEST_QUARTER, closed, expected_gap, kappa, mean_of_signs
from boundcalc.statements.comparison.network import Budgets, Network, network_of, refusal, sizes_of
from boundcalc.statements.comparison.sharp import (
    Kernel,
    Strata,
    Tuning,
    _inverse_of_mean,
    _stretch_holds,
    problem,
    series,
    sharp,
)
from boundcalc.testing._drawing import Array
from boundcalc.theorems import POLICIES
from tests.laws.settings import edelman
from tests.proof import alone
from tests.proof.both import refusals


def setting(**changes: Any) -> Setting:
    return Setting.of(
        "edelman", **{"depth": 1, "C": 1.0, "d": 6, "seq_len": 4, "n_train": 10**6, "margin": 0.5, **changes}
    )


def certificates(about: Setting) -> list[Certificate]:
    search = Search(about, POLICIES["comparison"])
    return [found.certificate for found in (*search.candidates("gap"), *search.candidates("risk"))]


# -- the value


ONE = (1.0,) * 6
THREE = ((0.5, 0.9, 0.4, 0.6, 0.8, 1.0), (1.2, 1.5, 0.7, 0.9, 1.3, 0.9), (0.3, 1.4, 0.5, 0.8, 1.1, 1.0))
SMALL = ((0.5, 0.9, 0.4, 0.6, 0.61, 1.0), (0.2, 1.5, 0.7, 0.9, 1.3, 0.9))


def network(*blocks: tuple[float, ...], readout: float = 1.0) -> Network:
    return Network(tuple(Budgets(*block, hidden_fro=block[-1]) for block in blocks), 1.0, readout, 1)


@pytest.mark.parametrize(
    ("about", "m", "value"),
    [
        (network(ONE), 1e6, 0.0149727449408854801178317379658),
        (network(ONE, ONE), 1e6, 0.0490065574067229159575667123688),
        (network((2.0,) * 6, readout=2.0), 1e6, 0.466600816535204995263719844072),
        (network(*THREE, readout=0.8), 1e4, 0.0647988184420522122903785548939),
        (network(*SMALL, readout=0.8), 1e4, 0.039738354094420839776551530995),
    ],
)
def test_values_from_the_text_of_the_theorem(about: Network, m: float, value: float) -> None:
    """Each form of K1 where it is the least, as a reader of the proof evaluated it without this code (30 digits)."""
    assert expected_gap(FLOAT, closed(FLOAT, about), 2.0, m) == pytest.approx(value, rel=1e-13)


def test_a_dominant_column_from_the_text_of_the_theorem() -> None:
    """K2 at numbers chosen by hand, where the strata give the least; evaluated likewise."""
    strata = Strata((0.75, 0.9, 1.0), (1.45, 1.5))
    tuning = Tuning(0.6, 0.2, Kernel(2.6, ()), (strata,))
    value = 0.0291651191209192158296834563637
    assert expected_gap(FLOAT, sharp(FLOAT, network(ONE, ONE), tuning), 2.0, 1e6) == pytest.approx(value, rel=1e-13)


def test_what_it_is_not_about_is_refused_by_both() -> None:
    """|W_V| may be 100 at rows of length 0.3, where the projection acts; at depth 2 it must not."""
    honest = next(each for each in certificates(setting(depth=2)) if each.strategy == "comparison-closed")
    wide = {
        kind: Norms(C=1.0, budgets={kind: Budget(nuclear=100.0), other: Budget(op=0.5, two_one=0.5)})
        for kind, other in (("W_V", "W_1"), ("W_1", "W_V"))
    }
    for changes, why in (
        ({"C": 1.0001}, "no projection acts"),
        ({"activation": "gelu"}, "relu"),
        ({"causal": True}, "every row"),
        ({"classes": 3}, "one output"),
        ({"heads": 2}, "no projection acts"),
        ({"input_radius": 1.0000001}, "no projection acts"),
        *(({"input_radius": 0.3, "norms": norms}, "no projection acts") for norms in wide.values()),
        ({"C": 101.0, "depth": 1}, "within 200"),
        ({"C": 1e300, "depth": 1}, "within 200"),
        ({"style": "post", "normalisation": "layernorm"}, "style edelman"),
    ):
        about = setting(**{"depth": 2, **changes})
        assert why in (refusal(about) or ""), changes
        refusals(replace(honest, setting=about))
    assert refusal(setting()) is None
    assert refusal(setting(heads=2, normalisation="none", C=3.0)) is None


def test_both_checkers_find_the_same() -> None:
    rng = random.Random(3)
    for about in [about for _ in range(10) if refusal(about := edelman(rng)) is None]:
        for certificate in certificates(about):
            claimed = check(certificate).certificate
            verify(claimed)
            assert float(alone.log_value(claimed)) == pytest.approx(claimed.log_value, abs=1e-12)


# -- forged numbers


def test_forged_tunings_are_refused_by_both() -> None:
    certificate = next(each for each in certificates(setting(depth=2)) if each.strategy == "comparison")
    check(certificate)
    tuning = certificate.tuning
    assert tuning is not None
    (strata,), kernel = tuning.strata, tuning.kernel
    assert strata is not None
    for changes in (
        {"kernel": replace(kernel, bound=kernel.bound * 0.93)},
        {"kernel": replace(kernel, weights=kernel.weights[:-3])},
        {"strata": (replace(strata, stretch=tuple(0.99 * each for each in strata.stretch)),)},
        {"strata": (replace(strata, edges=(0.6, *strata.edges[1:])),)},
        {"strata": (replace(strata, edges=(*strata.edges[:-1], 0.99)),)},
        {"strata": (strata, strata)},
        {"curvature": 1.5},
    ):
        forged: Tuning = replace(tuning, **changes)  # type: ignore[arg-type]
        refusals(replace(certificate, tuning=forged))


# -- the inequalities, attacked


def largest(hull: float, bend: float, whole: float, seed: int) -> float:
    """The largest |tau (whole + bend (phi - mean))| that ascent finds, for phi in [0, 1], scores in an interval of
    length hull, and tau = e^score over its mean."""
    rng, best = np.random.default_rng(seed), 0.0

    def value(x: Array) -> float:
        mass = softmax(x[:4])
        phi, s = (1 + np.tanh(2 * x[4:8])) / 2, hull / 2 * np.tanh(3 * x[8:12])
        tau = np.exp(s) / (mass @ np.exp(s))
        return -math.sqrt(mass @ (tau * (whole + bend * (phi - mass @ (tau * phi)))) ** 2)

    for _ in range(12):
        lowest = minimize(value, rng.standard_normal(12), method="Nelder-Mead", options={"maxiter": 600})
        best = max(best, -float(lowest.fun))
    return best


@pytest.mark.parametrize("r", [0.2, 0.7, 1.5])
def test_kappa_is_attained_and_not_exceeded(r: float) -> None:
    assert kappa(FLOAT, r) * 0.99 <= largest(2 * r, 1.0, 0.0, 1) <= kappa(FLOAT, r) * (1 + 1e-9)


@pytest.mark.parametrize(("hull", "bend"), [(1.0, 1.0), (1.0, 0.0), (2.0, 1.3), (0.4, 0.3), (2.0, 2.0)])
def test_the_stretch_is_attained_and_not_exceeded(hull: float, bend: float) -> None:
    """Just above the largest value it is proved, just below it is not."""
    best = largest(hull, bend, 1.0, 2)
    assert not _stretch_holds(FLOAT, hull, bend, best * 0.999, operator.le)
    assert _stretch_holds(FLOAT, hull, bend, best * 1.01, operator.le)
    assert _stretch_holds(INTERVAL, INTERVAL.number(hull), INTERVAL.number(bend), best * 1.01, certainly_le)


def test_moments_of_the_series() -> None:
    """Terms of the series are above what data give: tensors of one coordinate and of three, and both remainders."""
    rng = np.random.default_rng(4)
    worst = 0.0
    for trial in range(4000):
        d = int(rng.integers(1, 4))
        x = rng.standard_normal((5, d))
        x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
        x *= 1 if trial % 2 else rng.random((5, 1)) ** 0.3
        mass = rng.dirichlet(np.full(5, 0.6))
        mean = mass @ x
        centred = x - mean
        covariance = np.einsum("t,ti,tj->ij", mass, centred, centred)
        at = min(1.0, float(np.linalg.norm(mean))), float(np.linalg.norm(covariance))
        terms = series(FLOAT, 1.0, 1.0, 14, 0.6, 0.2)(at, at)
        al, *_ = _inverse_of_mean(FLOAT, 1.0, 0.6)
        third = np.einsum("t,ti,tj,tk->ijk", mass, centred, centred, centred)
        fourth = np.einsum("t,ti,tj,tk,tl->ijkl", mass, centred, centred, centred, centred)
        pairs = np.einsum("ij,kl->ijkl", covariance, covariance)
        pairs = pairs + pairs.transpose(0, 2, 1, 3) + pairs.transpose(0, 3, 2, 1)
        found = (at[0], al * at[1], al / 2 * np.linalg.norm(third), np.linalg.norm(al * fourth - 0.6 * pairs) / 6)
        for size, bound in zip(found, terms, strict=False):
            assert size <= bound * (1 + 1e-9) + 1e-12
            worst = max(worst, size / bound if bound > 1e-9 else 0.0)
    assert worst > 0.95


@pytest.mark.parametrize("most", [0.3, 1.0, 1.8])
def test_the_remainder_of_the_series(most: float) -> None:
    """N e(Z) moves by at most em |dN| + de |dZ|, whatever two members are."""
    rng = np.random.default_rng(6)
    al, small, slope = _inverse_of_mean(FLOAT, most, 0.6)
    worst = 0.0
    for _ in range(20_000):
        mass = rng.dirichlet(np.full(4, 0.5))
        parts: list[tuple[float, float, float]] = []
        base = rng.standard_normal(4), rng.standard_normal(4)
        for _ in range(2):
            near = 10 ** rng.uniform(-4, 1)
            y = np.tanh(2 * (base[0] + near * rng.standard_normal(4)))
            score = most * np.tanh(2 * (base[1] + near * rng.standard_normal(4)))
            y, score = y - mass @ y, score - mass @ score
            n, z = float(mass @ (y * np.exp(score))), float(mass @ np.exp(score))
            parts.append((n, z, n / z - n * (al - 0.6 * (z - 1))))
        (n0, z0, e0), (n1, z1, e1) = parts
        room = small * abs(n0 - n1) + slope * abs(z0 - z1)
        assert abs(e0 - e1) <= room * (1 + 1e-9) + 1e-13
        worst = max(worst, abs(e0 - e1) / room if room > 1e-9 else 0.0)
    assert worst > 0.5


@pytest.mark.parametrize("n", [1, 3, 7])
def test_what_a_sign_costs(n: int) -> None:
    """Gaussians on random classes: beta/2 for a neuron, beta for numbers in [0, 1], which one h = 1 has all of."""
    rng = np.random.default_rng(n)
    draws = rng.standard_normal((20_000, n))
    draws = np.concatenate([draws, -draws])
    most = 0.0
    for trial in range(60):
        p = np.clip(rng.uniform(0.5, 3) * rng.standard_normal((1 + trial % 3, n)), -1, 1)
        p = np.concatenate([p, -p]) if trial else np.ones((2, n)) * [[1], [-1]]
        neurons, whole = draws @ np.maximum(p, 0).T, draws @ np.abs(p).T
        inside = np.abs(neurons).max(axis=1).mean() - (draws @ p.T).max(axis=1).mean()
        outside = np.abs(whole).max(axis=1).mean() - whole.max(axis=1).mean()
        assert inside <= (mean_of_signs(FLOAT) / 2 + 0.02) * math.sqrt(n)
        assert outside <= (mean_of_signs(FLOAT) + 0.02) * math.sqrt(n)
        most = max(most, outside / math.sqrt(n))
    assert most >= 0.97 * mean_of_signs(FLOAT)


@pytest.mark.parametrize("m", [1, 2, 3, 10, 100])
def test_the_lowest_quarter_of_gaussians(m: int) -> None:
    """Minus the mean of the m lowest of 4m, by its integral, is above what theorem K divides by, and soon close to
    it."""

    def below(x: float) -> float:
        return float(-x * norm.pdf(x) * binom.cdf(m - 1, 4 * m - 1, norm.cdf(x)))

    exact = 4 * quad(below, -9, 9, limit=400, points=[-1, 0])[0]
    used = _LOWEST_QUARTER * (1 - 0.51 / m)
    assert used <= exact <= _LOWEST_QUARTER * 1.00001
    assert used >= exact * (1 - 0.6 / m)


def block(x: Array, scores: Array, values: Array, hidden: Array) -> Array:
    """A block without projections, on one input."""
    return np.maximum(softmax(x @ scores @ x.T, axis=1) @ x @ values, 0) @ hidden


def test_scores_of_a_later_block_oscillate_by_at_most_twice_r() -> None:
    """Random networks, and one that tells two rows apart and has one column: all of S."""
    rng = np.random.default_rng(12)
    one = np.zeros((4, 4))
    one[0, 0] = 1
    most = 0.0
    for trial in range(400):
        w = [rng.standard_normal((4, 4)) * np.exp(rng.uniform(-1, 2) * (rng.random((4, 4)) < 0.5)) for _ in range(4)]
        x = rng.standard_normal((5, 4))
        if not trial:
            w, x = [40 * one, one, one, 0.7 * one], np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]])
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        op, fro = [np.linalg.norm(each, 2) for each in w], [np.linalg.norm(each) for each in w]
        columns = np.linalg.norm(w[1], axis=0).sum()
        first = Budgets(op[0], fro[0], op[1], fro[1], columns, op[2], fro[2])
        about = Network((first, Budgets(op[3], fro[3], 1.0, 1.0, 1.0, 1.0, 1.0)), 1.0, 1.0, 1)
        y = block(x, *w[:3])
        moved = float(np.ptp(y @ w[3] @ y.T, axis=1).max())
        for told_apart in (False, True):
            size = sizes_of(FLOAT, about, columns=told_apart)[1]
            assert moved <= 2 * size.half_range * (1 + 1e-9)
            most = max(most, moved / size.half_range)
    assert most >= 1.99


# -- suprema of small classes


def forward(x: Array, v: Array, w: Array) -> Array:
    """Pre-activations of block 1 at row 0: softmax attention with scores x_0 W x_t and values x_t v."""
    scores = np.einsum("mi,ij,mtj->mt", x[:, 0], w, x)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("mt,mtj,j->m", weights, x, v)


@pytest.mark.parametrize("size", [0.3, 1.0])
def test_the_complexity_of_block_one_is_above_what_ascent_finds(size: float) -> None:
    """E sup over |v| <= 1, |W|_F <= C of sum sigma p, all signs, on data chosen to be bad."""
    rng, means = np.random.default_rng(10), list[float]()
    tuning = tune(network_of(FLOAT, setting(C=size)))
    assert tuning is not None
    opposite = np.stack([np.stack([row, -row]) for row in np.eye(3)])
    for x in (opposite, np.random.default_rng(1).standard_normal((5, 3, 4))):
        (m, _, d), x = x.shape, x / np.linalg.norm(x, axis=2, keepdims=True)
        total = 0.0
        for sign in np.ndindex(*(2,) * (m - 1)):
            sigma = np.array([1, *(2 * np.array(sign) - 1)])

            def value(free: Array, sigma: Array = sigma, x: Array = x, d: int = d) -> float:
                v, w = free[:d], free[d:].reshape(d, d)
                v, w = v / max(1.0, np.linalg.norm(v)), w * min(1.0, size / max(np.linalg.norm(w), 1e-12))
                return -float(sigma @ forward(x, v, w))

            starts = rng.standard_normal((2, d + d * d))
            total -= min(float(minimize(value, start, method="L-BFGS-B").fun) for start in starts)
        means.append(total / 2 ** (m - 1) / math.sqrt(m))
    assert max(means) <= tuning.kernel.bound * math.sqrt(math.pi / 2)
    assert max(means) >= 0.3 * tuning.kernel.bound  # the attack has power


def test_what_the_search_claims_of_block_one_is_proved() -> None:
    """Whatever the norms of the scores are: a claim that fails would leave the setting without any bound."""
    rng, one = random.Random(1), INTERVAL.number(1)
    for _ in range(25):
        fro = 2 * math.sqrt(rng.random())
        op = fro * rng.choice((1.0, rng.uniform(0.05, 1.0)))
        tuning = tune(Network((Budgets(op, fro, 1.0, 1.0, 1.0, 1.0, 1.0),), 1.0, 1.0, 1))
        assert tuning is not None
        scores = INTERVAL.number(op), INTERVAL.number(fro)
        about = Network((Budgets(*scores, one, one, one, one, one),), one, one, 1)
        assert problem(INTERVAL, about, tuning, certainly_le) is None, (op, fro)
