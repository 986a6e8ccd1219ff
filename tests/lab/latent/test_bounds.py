"""X3, X3k, X4, X5: attempts to exceed the bounds, on laws made to be bad for them.

Each coverage test has a negative control: with the bound's constant lowered it must be found out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import bdtrc

from boundcalc import Setting
from boundcalc.base.errors import Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.lab.latent.bounds import learning_bound, self_normalised_error, softmax_bound, sphere_shrinkage
from boundcalc.proof.second._numbers import MP, num
from boundcalc.setting import Budget, Norms
from boundcalc.theorems import X3, X4
from tests.examples.scripts import load

Array = NDArray[np.float64]
unit = load("zhang2022", "common").unit
REPETITIONS = 2000
DELTA = 0.05


def exceeded(errors: Array, bound: Array | float, delta: float = DELTA) -> bool:
    """Whether the bound fails more often than it may (beyond chance: a test at level 1e-3)."""
    return significantly_above(int((errors > bound).sum()), len(errors), delta)


def significantly_above(failures: int, n: int, delta: float, level: float = 1e-3) -> bool:
    """Whether so many failures would be this unlikely if each had probability at most delta."""
    return bool((bdtrc(failures - 1, n, delta) if failures else 1.0) < level)


def test_what_is_significant() -> None:
    assert significantly_above(90, 1000, 0.05)
    assert not significantly_above(60, 1000, 0.05)


# ------------------------------------------------------------------------ X0


def bernstein(variance: float, radius: float, log: float, n: int) -> float:
    """X0, as the part A of theorem X3 has it."""
    b = radius * log / (3 * n)
    return b + math.sqrt(b**2 + 2 * variance * log / n)


def hard_means(rng: np.random.Generator, n: int, dimension: int) -> Array:
    """Norms of means of n signs along an axis (dimension 1), or of uniform directions."""
    if dimension == 1:
        return np.abs(rng.binomial(n, 0.5, REPETITIONS) * 2 - n) / n
    out = np.zeros((REPETITIONS, dimension))
    for _ in range(n):
        out += unit(rng, REPETITIONS, dimension)
    return np.linalg.norm(out / n, axis=-1)


@pytest.mark.parametrize("dimension", [1, 2, 20])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_x0_covers(dimension: int, delta: float) -> None:
    log = math.log(2 / delta)
    for n in (20, 200):
        errors = hard_means(np.random.default_rng(n), n, dimension)
        assert not exceeded(errors, math.sqrt(2 * log / n), delta)
        assert not exceeded(errors, bernstein(1.0, 1.0, log, n), delta)
        assert exceeded(errors, 0.35 * math.sqrt(2 * log / n), delta)


def test_x0_with_rare_large_terms() -> None:
    """Variance far below the squared radius: Bernstein's form holds, half of it does not; Hoeffding's is far off."""
    rng, n, rate = np.random.default_rng(0), 400, 0.01
    counts = rng.binomial(n, rate, (2, REPETITIONS))
    errors = np.abs(counts[0] - counts[1]) / n  # terms are +1, -1 with probability ~ rate each
    variance = 2 * rate
    log = math.log(2 / DELTA)
    bound = bernstein(variance, 1.0, log, n)
    assert not exceeded(errors, bound)
    assert bound < 0.4 * math.sqrt(2 * log / n)
    assert exceeded(errors, 0.5 * bound)


# ------------------------------------------------------------------------ X3


def ridge_errors(kind: str, n: int, reg: float, seed: int) -> Array:
    """|f_hat - f*| for f* = 0 and signs as values: keys all alike, or spread over many directions."""
    rng = np.random.default_rng(seed)
    if kind == "one key":
        mean = (rng.binomial(n, 0.5, REPETITIONS) * 2 - n) / n
        return np.abs(mean) / (1 + reg)
    width = 40
    errors = np.empty(REPETITIONS)
    for i in range(REPETITIONS):
        keys = rng.integers(width, size=n)
        values = rng.choice([-1.0, 1.0], n)
        counts, sums = np.bincount(keys, minlength=width), np.bincount(keys, values, minlength=width)
        errors[i] = np.linalg.norm(sums / n / (counts / n + reg))
    return errors


def x3(**changes: float) -> float:
    """X3 at kappa = M = g = r = 1, but for what changes."""
    point = {"kappa": 1.0, "M": 1.0, "g": 1.0, "smoothness": 1.0, "delta": DELTA, **changes}
    return X3.formula("error" if "rho" in point else "best_error").value(**point)


@pytest.mark.parametrize(("kind", "reg"), [("one key", 20.0), ("one key", 0.1), ("many keys", 1.0)])
def test_x3_covers_hard_laws(kind: str, reg: float) -> None:
    n = 200
    errors = ridge_errors(kind, n, reg, 1)
    bound = x3(L=n, rho=reg, g=1e-12)
    assert not exceeded(errors, bound)
    if reg > 10:
        assert exceeded(errors, 0.6 * bound)


@pytest.mark.parametrize("smoothness", [0.51, 0.75, 1.0, 1.25, 1.5])
@pytest.mark.parametrize("reg", [1e-4, 0.01, 0.3])
def test_x3_with_all_pairs_is_the_worst_regularisation_bias(smoothness: float, reg: float) -> None:
    """One eigenvalue s of L_K leaves reg s^a/(s + reg) of |g|, a = r - 1/2: the bound is the worst s, no less, no
    more."""
    a = smoothness - 0.5
    worst = max(reg * s**a / (s + reg) for s in np.exp(np.linspace(-30, 30, 60_001)) * reg)
    assert x3(L=10**40, rho=reg, smoothness=smoothness, g=2.0) == pytest.approx(2.0 * worst, rel=1e-6)


def test_x3_is_its_formula_written_out() -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        point = dict(zip(("rho", "kappa", "M", "g"), np.exp(rng.uniform(-1.6, 1.4, 4)).tolist(), strict=True))
        point |= {"smoothness": float(rng.choice((0.75, 1.0, 1.25, 1.5))), "L": int(rng.integers(5, 4000))}
        rho, k, m, g, r, n = map(num, point.values())
        ell, a = MP.log(2 / num(DELTA)), r - MP.mpf(1) / 2
        f = min(m / MP.sqrt(rho), MP.power(k, 2 * r - 1) * g)
        b = (k * m + k**2 * f + min(rho * f, k * m)) * ell / (3 * n)
        top = MP.mpf(1) if a == 1 else MP.power(a, a) * MP.power(1 - a, 1 - a)
        mean = b + MP.sqrt(b**2 + 2 * k**2 * m**2 * ell / n)
        truth = min(mean / rho, m / MP.sqrt(rho) + f) + top * MP.power(rho, a) * g
        assert x3(**point) == pytest.approx(float(truth), rel=1e-12)


def test_x3_is_never_above_the_published_form() -> None:
    rng, names = np.random.default_rng(3), ("kappa", "M", "g", "rho")
    for _ in range(40):
        point = dict(zip(names, np.exp(rng.uniform(-3, 3, 4)).tolist(), strict=True))
        point |= {"L": int(np.exp(rng.uniform(0, 12))), "delta": float(rng.uniform(0.001, 0.5))}
        point["smoothness"] = float(rng.uniform(0.51, 1))
        assert X3.formula("error").value(**point) <= X3.published.value(**point)


# ------------------------------------------------------------------------ X4


def two_level_errors(n: int, ratio: float, heavy: float, seed: int) -> Array:
    """Softmax attention with two weights, `ratio` apart; heavy keys have a share `heavy` of the mass and value -1."""
    rng = np.random.default_rng(seed)
    p = heavy / (heavy + (1 - heavy) * ratio)
    counts = rng.binomial(n, p, REPETITIONS)
    attended = (n - counts - ratio * counts) / (n - counts + ratio * counts)
    return np.abs(attended - (1 - 2 * heavy))


def x4(n: int, tau: float, most: float = 1.0) -> float:
    return X4.formula("error").value(L=n, temperature=tau, M=most, delta=DELTA)


@pytest.mark.parametrize("tau", [2.0, 1.0, 0.5])
@pytest.mark.parametrize("heavy", [0.1, 0.25, 0.5])
def test_x4_covers_hard_laws(tau: float, heavy: float) -> None:
    for n in (300, 3000):
        errors = two_level_errors(n, math.exp(2 / tau), heavy, n)
        assert not exceeded(errors, x4(n, tau))


def test_x4_with_half_its_constant_is_found_out() -> None:
    """A quarter of the mass on the heavy keys is nearly the worst law; at large n the bound is close to its tail."""
    n, tau = 40_000, 1.0
    errors = two_level_errors(n, math.exp(2 / tau), 0.25, 7)
    bound = x4(n, tau)
    assert not exceeded(errors, bound)
    assert exceeded(errors, 0.55 * bound)


def test_the_moments_of_x4_are_not_exceeded_and_nearly_reached() -> None:
    """Search over laws of (w, v): E w^2 <= second W^2 and E w^2 |v - mu|^2 <= spread W^2."""
    rng = np.random.default_rng(4)
    for ratio in (1.5, 4.0, 20.0, 400.0):
        second, spread = (1 + ratio) ** 2 / (4 * ratio), ratio**2 / (2 * ratio - 1)
        best_second = best_spread = 0.0
        for trial in range(4000):
            atoms = int(rng.integers(2, 5))
            w = np.where(rng.random(atoms) < 0.7, rng.choice([1.0, ratio], atoms), rng.uniform(1, ratio, atoms))
            v = unit(rng, atoms, int(rng.integers(1, 4)))
            if trial % 2:
                w, v = np.array([1.0, ratio]), np.array([[1.0], [-1.0]])
                atoms = 2
            p = rng.dirichlet(np.full(atoms, 0.5))
            mass = float(p @ w)
            mu = (p * w) @ v / mass
            best_second = max(best_second, float(p @ w**2) / mass**2 / second)
            best_spread = max(best_spread, float((p * w**2) @ np.square(v - mu).sum(-1)) / mass**2 / spread)
        assert best_second <= 1 + 1e-12
        assert best_spread <= 1 + 1e-12
        assert best_second > 0.97
        assert best_spread > 0.8


def test_x4_on_the_sphere_covers_and_is_smaller() -> None:
    rng = np.random.default_rng(5)
    n, p, tau = 400, 3, 0.3
    low, high = sphere_shrinkage(tau, p)
    z = np.array([1.0, 0.0, 0.0])
    keys = unit(rng, REPETITIONS, n, p)
    weights = np.exp((keys @ z) / tau)
    values = keys @ z
    errors = np.abs((weights * values).sum(-1) / weights.sum(-1) - (low + high) / 2)
    bound = softmax_bound(n, p, tau=tau, delta=DELTA)
    assert not exceeded(errors, bound)
    assert bound < 0.5 * x4(n, tau)
    noisy = np.abs((weights * np.sign(rng.standard_normal(values.shape))).sum(-1) / weights.sum(-1))
    assert not exceeded(noisy, bound)
    assert exceeded(noisy, 0.3 * bound)


def test_the_shrinkage_on_the_sphere_is_langevins_function() -> None:
    assert sphere_shrinkage(0.5, 3) == pytest.approx([1 / math.tanh(2) - 0.5] * 2, rel=1e-12)


# ------------------------------------------------------------------------ values


def test_x4_is_the_lesser_root_of_its_quadratic() -> None:
    rng = np.random.default_rng(4)
    for _ in range(12):
        ratio, log, n = float(rng.uniform(1, 8)), float(rng.uniform(0.2, 4)), int(rng.integers(3000, 20000))
        r, ell = num(ratio), num(log)
        spread, second = r**2 / (2 * r - 1), (1 + r) ** 2 / (4 * r)
        tilt = MP.sqrt(2 * ell / (n * spread))
        b = 2 * tilt * r
        psi = 2 * (MP.exp(b) - 1 - b) / b**2
        last = tilt**2 * spread * psi / 2 + ell / n
        middle = tilt**2 * MP.sqrt(spread * second) - tilt
        root = min(MP.re(x) for x in MP.polyroots([tilt**2 * second / 2, middle, last], maxsteps=500, extraprec=300))
        value = self_normalised_error(FLOAT, n, float(second), float(spread), ratio, log, float(tilt))
        assert value == pytest.approx(float(root), rel=1e-9)  # e^b - 1 - b cancels in floats at small b


def test_rates_of_the_bounds() -> None:
    rates = [x3(L=n, smoothness=r) for r in (1.0, 1.5) for n in (10**8, 10**10)]
    assert math.log(rates[1] / rates[0], 100) == pytest.approx(-1 / 6, abs=0.005)
    assert math.log(rates[3] / rates[2], 100) == pytest.approx(-1 / 4, abs=0.005)
    falling = [softmax_bound(2**i, 4, tau=0.5) for i in range(3, 24)]
    assert falling == sorted(falling, reverse=True)
    tail = [x4(n, 0.5) for n in (10**8, 10**10)]
    assert math.log(tail[1] / tail[0], 100) == pytest.approx(-0.5, abs=0.001)
    lead = math.exp(4) / math.sqrt(2 * math.exp(4) - 1) * math.sqrt(2 * math.log(40) / 10**10)
    assert tail[1] == pytest.approx(lead, rel=1e-3)


def test_what_holds_always_is_not_exceeded() -> None:
    assert x4(1, 0.01) == 2.0
    assert x4(10**6, 1e-4, 3.0) == 6.0
    assert softmax_bound(10**6, 5, tau=1e-4, most=3.0) == 6.0


# ------------------------------------------------------------------------ X5


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
