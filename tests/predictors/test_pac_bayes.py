"""G6': lattice laws with exact probabilities, draws anyone can make again, forgeries, and coverage."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import issue
from boundcalc.predictors.pac_bayes import Group, LatticeLaw, Prior, certify_draws, log_ratio
from boundcalc.predictors.reference import Law, Reference
from tests.predictors.test_occam import BITS, DATA, Linear

REFERENCE = Reference({"votes": Law((BITS, 1), "normal", 0.01), "bias": Law((1,), "uniform", 0.01)})
PRIOR = Prior(REFERENCE, 0, (Group("votes", None, 1.0), Group("bias", None, 0.5)), -3)


@pytest.mark.parametrize("law", [LatticeLaw(0.3, 1.7), LatticeLaw(-5.0, 0.02), LatticeLaw(100.25, 9.0)])
def test_a_lattice_law_sums_to_one_and_is_drawn_as_it_says(law: LatticeLaw) -> None:
    low, high = law.ends
    masses = {k: law.log_mass(k).exp() for k in range(low, high + 1)}
    assert sum(masses.values(), arb(0)).contains(1)
    size = 4000
    counts = Counter(law.draw(int((i + Fraction(1, 2)) * 2**96 / size)) for i in range(size))
    for k, mass in masses.items():
        assert abs(counts[k] - size * float(mass)) <= 1 + 1e-6
    with pytest.raises(CertificateError, match="never gives"):
        law.log_mass(high + 1)


def test_the_ratio_is_that_of_gaussians_on_a_fine_lattice() -> None:
    q, p = LatticeLaw(40.0, 30.0), LatticeLaw(0.0, 60.0)
    for k in (10, 40, 90):
        exact = math.log(60 / 30) + (k / 60) ** 2 / 2 - ((k - 40) / 30) ** 2 / 2
        assert float(log_ratio([q], [p], [k])) == pytest.approx(exact, abs=1e-6)


def test_no_draw_can_be_left_out() -> None:
    """A draw chosen out of several, and listed without them, is a choice that delta does not cover."""
    wide = [LatticeLaw(12.0 if place == 3 else 0.0, 6.0) for place in range(17)]
    three = certify_draws(Linear(), PRIOR, wide, DATA, 0.05, 3).certificate
    first, second, third = three.alternatives
    for listed in ([second], [first, third], [second, first]):
        with pytest.raises(CertificateError, match=r"seeds 0, 1, 2, \.\.: none can be left out"):
            issue("pac-bayes", three.errors, delta=0.05, alternatives=listed, evidence=three.evidence)
