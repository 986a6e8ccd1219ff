"""Certified norms: never below the exact ones, and close to LAPACK's."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from boundcalc.base.errors import NotFinite
from boundcalc.norms import _spectral as spectral
from boundcalc.norms.limits import _upper_rank, every, explicit
from boundcalc.norms.matrix import Measured, as_stored, measure, outer, vector
from boundcalc.norms.rounding import gamma, up

Floats = NDArray[np.float64]
RNG = np.random.default_rng

MATRICES: dict[str, Floats] = {
    "gauss": RNG(0).standard_normal((300, 200)),
    "wide": RNG(1).standard_normal((64, 700)),
    "orthogonal": np.linalg.qr(RNG(3).standard_normal((200, 200)))[0],
    "one row": RNG(4).standard_normal((1, 50)),
    "rank one": np.outer(RNG(5).standard_normal(90), RNG(6).standard_normal(120)),
    "graded": RNG(7).standard_normal((120, 100)) * 10.0 ** -np.arange(100),
    "spiked": RNG(8).standard_normal((150, 150)) + 40 * np.outer(np.eye(150)[0], np.eye(150)[1]),
    "near tie": np.diag(np.r_[1.0, 1 - 1e-13, 0.5 * np.ones(30)]),
    "tiny": 1e-300 * RNG(9).standard_normal((40, 30)),
    "huge": 1e290 * RNG(10).standard_normal((40, 30)),
    "sparse": (RNG(11).random((200, 100)) < 0.02) * RNG(12).standard_normal((200, 100)),
}


def reference(w: Floats) -> dict[str, float]:
    scale = float(np.abs(w).max()) or 1.0
    v = w / scale
    return {
        "op": float(np.linalg.svd(v, compute_uv=False)[0]) * scale,
        "fro": float(np.linalg.norm(v)) * scale,
        "two_one": math.fsum(np.linalg.norm(v, axis=0)) * scale,
        "two_one_t": math.fsum(np.linalg.norm(v, axis=1)) * scale,
        "one_one": math.fsum(np.abs(v).ravel()) * scale,
        "row": float(np.linalg.norm(v, axis=1).max()) * scale,
        "column": float(np.linalg.norm(v, axis=0).max()) * scale,
        "sup": float(np.abs(v).max()) * scale,
    }


def violations(found: Measured, w: Floats, close: float = 1e-10) -> list[str]:
    """Norms that are below the reference, or further above it than `close`: the checker of this file."""
    wrong: list[str] = []
    for name, want in reference(w).items():
        got = getattr(found, name)
        slack = 1e-15 if name == "sup" else 0.0  # the entry itself, scaled and back
        if not want * (1 - slack) <= got <= want * (1 + close):
            wrong.append(f"{name}: {got!r} for {want!r}")
    return wrong


@pytest.mark.parametrize("name", MATRICES)
def test_norms_agree_with_lapack_and_are_never_below(name: str) -> None:
    w = MATRICES[name]
    found = measure(as_stored(w), RNG(0))
    assert violations(found, w) == []
    assert violations(measure(as_stored(w.T), RNG(0)).transpose, w) == []


def test_the_checker_rejects_lower_bounds() -> None:
    """Power iteration stops below the norm; a norm without its rounding margin may do so too."""
    w = MATRICES["gauss"]
    x = RNG(1).standard_normal(200)
    for _ in range(30):
        x = w.T @ (w @ x)
        x /= np.linalg.norm(x)
    good = measure(as_stored(w), RNG(0))
    power = float(np.linalg.norm(w @ x))
    assert violations(replace(good, op=power), w)
    assert violations(replace(good, fro=good.fro and good.fro * (1 - 1e-12)), w)
    assert violations(replace(good, two_one=good.two_one_t), w)


def test_norms_at_the_end_of_the_floats() -> None:
    """No warning, and inf where the norm is larger than every float."""
    found = measure(as_stored(np.full((40, 30), 1.5e308)), RNG(0))
    assert (found.sup, found.fro, found.one_one) == (1.5e308, math.inf, math.inf)


def test_zero_and_empty_matrices() -> None:
    found = measure(as_stored(np.zeros((7, 5))), RNG(0))
    assert (found.op, found.fro, found.two_one, found.one_one, found.rank) == (0, 0, 0, 0, 0)
    assert measure(as_stored(np.zeros((0, 5))), RNG(0)).op == 0
    assert vector(np.zeros(3)).op == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_norms_of_what_is_not_finite(bad: float) -> None:
    w = np.ones((4, 4))
    w[2, 1] = bad
    with pytest.raises(NotFinite, match="matrix has 1 entries"):
        measure(as_stored(w), RNG(0))
    with pytest.raises(NotFinite, match="vector has"):
        vector(w[2])


def test_vectors() -> None:
    for values in (RNG(0).standard_normal(500), 1e-310 * np.ones(4), np.array([1e300, 1e300])):
        found = vector(values)
        scale = float(np.abs(values).max())
        exact = math.sqrt(math.fsum(((values / scale) ** 2).tolist())) * scale
        assert exact * (1 - 1e-15) <= (found.op or 0) <= exact * (1 + 1e-12)
        assert found.sup == scale
    assert vector(np.array([3.0, -4.0])).op == pytest.approx(5, rel=1e-14)


# -- wide matrices, by random probes


def known_norm(n: int, m: int, seed: int, spectrum: Floats) -> Floats:
    """Reflections around a diagonal: an exact spectrum, but for a few roundings."""
    core = np.zeros((n, m))
    core[: len(spectrum), : len(spectrum)] = np.diag(spectrum)
    u, v = RNG(seed).standard_normal(n), RNG(seed + 1).standard_normal(m)
    core -= np.outer(u, (u @ core)) * (2 / (u @ u))
    return core - np.outer(core @ v, v) * (2 / (v @ v))


CROWDED: dict[str, Floats] = {
    "1 to 0.99": np.linspace(1, 0.99, 1100),
    "1 to 0.9": np.linspace(1, 0.9, 1100),
    "1 to 0.5": np.linspace(1, 0.5, 1100),
    "1 and noise of 1%": 1 + 0.01 * RNG(0).standard_normal(1100),
    "orthogonal": np.ones(1100),
    "uniform on [0.7, 1.2]": RNG(1).uniform(0.7, 1.2, 1100),
    "1/sqrt(i)": 1 / np.sqrt(np.arange(1.0, 1101)),
    "spike": np.r_[1.0, 0.1 * np.ones(1000)],
    "pair": np.r_[1.0, 1 - 1e-6, 0.3 * np.ones(1000)],
}
"""Singular values, most so close together that Lanczos, orthogonalised once, loses its basis: it guessed 19 times the
truth."""


@pytest.mark.parametrize(("name", "dtype"), [*((name, np.float64) for name in CROWDED), ("Gaussian", np.float32)])
def test_probed_norms_of_crowded_spectra(name: str, dtype: type) -> None:
    """At the size where probes begin."""
    w = RNG(2).standard_normal((1100, 1300)) if name == "Gaussian" else known_norm(1100, 1300, 3, CROWDED[name])
    top = float(np.linalg.eigvalsh(w @ w.T)[-1]) ** 0.5 if name == "Gaussian" else float(CROWDED[name].max())
    blur = 1e-13 if dtype is np.float64 else 1e-6  # w is known to this
    found = measure(as_stored(w.astype(dtype)), RNG(4))
    assert found.failure == spectral.FAILURE
    assert top * (1 - blur) <= (found.op or 0) <= 1.025 * top


def test_probes_see_a_top_value_that_the_guess_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when Lanczos is blind (its guess is half the eigenvalue), the test with fresh probes does not pass below."""
    monkeypatch.setattr(spectral, "EXACT_SIDE", 100)
    w = known_norm(300, 260, 5, np.r_[1.0, 0.5 * np.ones(200)])
    honest = spectral._guess
    monkeypatch.setattr(spectral, "_guess", lambda *args: 0.25 * honest(*args))
    for seed in range(5):
        assert (measure(as_stored(w), RNG(seed)).op or 0) >= 1 - 1e-14


def test_probes_that_are_not_random_would_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: with probes orthogonal to the top direction and a blind guess, the method is fooled."""
    monkeypatch.setattr(spectral, "EXACT_SIDE", 10)

    class Blind:
        def standard_normal(self, shape: tuple[int, ...] | int) -> Floats:
            values = RNG(0).standard_normal(shape)
            values[0] = 0.0
            return values

    w = np.diag(np.r_[1.0, 0.5 * np.ones(60)])
    found = measure(as_stored(w), Blind())  # type: ignore[arg-type]
    assert (found.op or 0) < 0.6


def test_failure_is_what_is_promised() -> None:
    """The excess is such that the chance of the bad event is at most FAILURE, by the formula it was solved from."""
    for side in (1025, 4096, 16384):
        for rounding in (1e-9, 1e-7):
            excess = spectral._excess(side, rounding, spectral.FAILURE)
            t = math.acosh(1 + 2 * excess)
            tau = spectral._GROWTH / math.cosh(spectral.DEGREE * t)
            tau += 2 * rounding * spectral._GROWTH / (math.sinh(t) * (1 - math.exp(-t)))
            chance = (tau * math.sqrt(2 * side / math.pi)) ** spectral.PROBES
            assert chance <= spectral.FAILURE
            assert excess < 0.05  # the norm itself is then within two and a half per cent


def test_rounding_bounds() -> None:
    assert gamma(1) > 2.0**-53
    assert up(0.0, 100) == 0.0
    values = RNG(0).random(10_000)
    exact = math.fsum(values.tolist())
    running = 0.0
    for value in values.tolist():
        running += value
    assert up(running, len(values)) >= exact
    assert np.nextafter(1, 2) <= up(1.0, 0) < 1 + 1e-14


# -- budgets of arrays at hand, with exact ranks, and of outer products


@pytest.mark.parametrize("scale", [1e-320, 1e-160, 1e155, 1e300])
def test_norms_near_the_ends_of_the_floats(scale: float) -> None:
    """Squares leave the range there; the norms do not."""
    matrix = scale * np.array([[3.0, 4.0], [0.0, 1.0]])
    exact = [Fraction(float(x)) for x in matrix.ravel()]
    least = max(sum(x * x for x in exact[:2]), sum(x * x for x in exact[1::2]))  # squared row or column norm
    found = explicit(matrix)
    assert Fraction(found.fro or 0) ** 2 >= sum(x * x for x in exact)
    assert Fraction(found.op or 0) ** 2 >= least
    assert sum(exact) <= Fraction(found.one_one or 0) <= 9 * scale


def test_rank_is_exact() -> None:
    row = np.array([1.0, -2.0, 0.5])
    assert _upper_rank(np.stack([row, -row, row, np.zeros(3)])) == 1
    assert _upper_rank(np.zeros((3, 4))) == 0
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, k, r = (int(x) for x in rng.integers(1, 9, 3))
        left = rng.integers(-9, 10, (n, r)) * 2.0 ** rng.integers(-40, 40, (n, 1))
        matrix = left @ rng.integers(-9, 10, (r, k))
        assert _upper_rank(matrix) == np.linalg.matrix_rank(matrix / np.maximum(np.abs(matrix).max(1), 1e-300)[:, None])
    nearly = np.outer([1.0, 3.0], row)
    nearly[1, 2] *= 1 + 2.0**-52  # no numerical rank sees this, and T5 is not entitled to ignore it
    assert _upper_rank(nearly) == 2


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_outer_products_have_the_norms_of_the_formed_matrix(scale: float) -> None:
    rng = np.random.default_rng(0)
    for shape in ((5, 7), (1, 4), (30, 2)):
        u, v = scale * rng.normal(size=shape[0]), rng.normal(size=shape[1])
        found, formed = every(outer(vector(u), vector(v))), explicit(np.outer(u, v))
        for name in ("op", "fro", "two_one", "two_one_t", "one_one"):
            assert getattr(found, name) == pytest.approx(getattr(formed, name), rel=1e-12), name
        assert found.rank == 1
    exact = every(outer(vector(np.array([3.0, 4.0])), vector(np.array([1.0, -2.0, 2.0]))))
    known = {"op": 15, "fro": 15, "two_one": 25, "two_one_t": 21, "one_one": 35}
    for name, value in known.items():
        assert value <= getattr(exact, name) <= value * (1 + 1e-14)
