"""Positions: exact coherence, norms at most 1, and duals that select."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.represent.positions import SAFETY, Positions, compact, dual_bch, orthonormal
from boundcalc.lab.represent.selection import AnySelection, Selected, Selection, short


@pytest.mark.parametrize(("T", "n", "r"), [(64, 6, 1), (100, 5, 2), (512, 7, 2), (300, 8, 2), (500, 6, 3), (777, 7, 2)])
def test_coherence_is_that_of_the_gram_matrix(T: int, n: int, r: int) -> None:
    positions = dual_bch(T, n, r)
    assert positions.signs is not None
    signs = positions.signs.astype(np.int64)
    gram = np.abs(signs @ signs.T)
    np.fill_diagonal(gram, 0)
    # T that is no power of two keeps only part of a linear code, whose coherence may be less
    assert gram.max() / positions.width <= positions.coherence
    if T & (T - 1) == 0:
        assert gram.max() / positions.width == positions.coherence
    assert positions.coherence <= (2 * r - 2) / np.sqrt(positions.width) + 1e-12  # Weil
    assert positions.coherence < 1
    assert Fraction(positions.scale) ** 2 * positions.width <= 1


def test_compact_positions_are_much_narrower_than_long_sequences() -> None:
    widths = {T: compact(T, 3).width for T in (512, 4096, 65536)}
    assert widths == {512: 128, 4096: 128, 65536: 256}
    for T, s in ((512, 3), (4096, 4), (4096, 2)):
        positions = compact(T, s)
        assert (2 * s - 1) * positions.coherence < SAFETY


def test_compact_positions_that_would_not_be_narrower_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="orthonormal"):
        compact(64, 3)
    with pytest.raises(InvalidSetting, match="cannot hide"):
        compact(4, 5)


def test_products_agree() -> None:
    rng = np.random.default_rng(0)
    for positions in (orthonormal(50), dual_bch(50, 4, 2)):
        vector = rng.normal(size=positions.width)
        rows = positions.rows(np.arange(50))
        assert np.allclose(positions.products(vector), rows @ vector)
        enclosed = positions.enclosed_products(vector)
        assert all(abs(float(e.mid()) - x) < 1e-12 for e, x in zip(enclosed, rows @ vector, strict=True))
        masses = [type(enclosed[0])(float(m)) for m in rng.random(50)]
        mixture = positions.enclosed_mixture(masses)
        expected = np.array([float(m.mid()) for m in masses]) @ rows
        assert all(abs(float(e.mid()) - x) < 1e-12 for e, x in zip(mixture, expected, strict=True))


def test_any_selection_holds_for_every_selection() -> None:
    """What coherence alone allows is never better than what a particular selection has."""
    rng = np.random.default_rng(1)
    for positions in (compact(512, 3), compact(256, 2), orthonormal(40)):
        s = 3 if positions.count != 256 else 2
        for shared, by_mean in ((True, True), (False, True), (False, False)):
            any_of = AnySelection(s, positions.count, positions.coherence, shared=shared, by_mean=by_mean)
            for _ in range(10):
                chosen = tuple(int(v) for v in np.sort(rng.choice(positions.count, s, replace=False)))
                signs = rng.choice([-1.0, 1.0], s) if by_mean and not shared else np.ones(s)
                one = Selected(Selection(positions, chosen), shared=shared, signs=signs if by_mean else None)
                assert one.total <= any_of.total * (1 + 1e-9)
                assert np.linalg.norm(one.reading, 2) <= np.linalg.norm(any_of.reading, 2) * (1 + 1e-9)
                for beta in (0.5, 4.0, 12.0):
                    assert one.slack(beta) <= any_of.slack(beta) * (1 + 1e-9)
                    for low, value in zip(any_of.gathered(beta), one.gathered(beta), strict=True):
                        assert low <= value * (1 + 1e-9)


def test_short_numbers_multiply_exactly() -> None:
    rng = np.random.default_rng(2)
    a, b = short(rng.normal(size=100) * 10.0 ** rng.integers(-8, 8, 100)), short(rng.normal(size=100))
    for x, y in zip(a, b, strict=True):
        assert Fraction(float(x)) * Fraction(float(y)) == Fraction(float(x * y))


def test_only_rows_of_signs_are_positions() -> None:
    """Certificates read compact positions as whole numbers: anything else would be read wrongly."""
    good = dual_bch(8, 3, 1).signs
    assert good is not None
    bent = good.astype(float)
    bent[3, 2] *= 0.999
    for signs in (bent, good[:5], good[0], np.zeros_like(good)):
        with pytest.raises(InvalidSetting, match="rows of signs"):
            Positions(8, signs)
