"""G6: divergences of lattice laws, Maurer's sum, draws that are paid, coverage, forgeries."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.gibbs import Estimate, Mixed, certify_mixture
from boundcalc.predictors.pac_bayes import LatticeLaw, law_divergence
from boundcalc.predictors.statements import STATEMENTS
from boundcalc.predictors.statements.draws import log_mean_ratio
from boundcalc.predictors.tails import divergence, divergence_limit
from boundcalc.predictors.verify import verify_predictor
from tests.predictors.test_occam import DATA, Linear, draw
from tests.predictors.test_pac_bayes import POSTERIOR, PRIOR

FEW = Estimate(draws=40, tested=30)
MADE: Mixed = certify_mixture(Linear(), PRIOR, POSTERIOR, DATA, 0.05, FEW)


def check(raw: Any, data: Any) -> Any:
    return verify_predictor(PredictorCertificate.from_json(raw), data, Linear.of)


def test_a_divergence_is_the_mean_log_ratio_and_that_of_gaussians_on_a_fine_lattice() -> None:
    q, p = LatticeLaw(3.3, 1.2), LatticeLaw(0.0, 4.0)
    low, high = q.ends
    mean = sum(float(q.log_mass(k).exp()) * float(q.log_mass(k) - p.log_mass(k)) for k in range(low, high + 1))
    assert float(law_divergence(q, p)) == pytest.approx(mean, rel=1e-12)
    q, p = LatticeLaw(40.0, 30.0), LatticeLaw(0.0, 60.0)
    exact = math.log(60 / 30) + (30**2 + 40**2) / (2 * 60**2) - 0.5
    assert float(law_divergence(q, p)) == pytest.approx(exact, abs=1e-6)
    assert abs(float(law_divergence(p, p))) < 1e-12
    with pytest.raises(CertificateError, match="beyond the prior"):
        law_divergence(LatticeLaw(40.0, 3.0), LatticeLaw(0.0, 2.0))


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 20, 61])
def test_maurers_sum_is_exact_and_at_most_twice_the_root(n: int) -> None:
    exact = sum(
        math.comb(n, k) * Fraction(k, n) ** k * Fraction(n - k, n) ** (n - k) if 0 < k < n else 1 for k in range(n + 1)
    )
    assert float(log_mean_ratio(n)) == pytest.approx(math.log(exact), rel=1e-12)
    assert exact**2 <= 4 * n
    assert float(log_mean_ratio(10_001)) == pytest.approx(math.log(2 * math.sqrt(10_001)))


@pytest.mark.parametrize(("q", "nats"), [(0.0, 0.1), (0.2, 0.03), (0.9, 1.0), (1.0, 0.1), (0.3, 1e-9)])
def test_the_inverse_of_the_divergence_is_the_least_that_is_proved(q: float, nats: float) -> None:
    p = divergence_limit(q, nats)
    if p < 1:
        assert float(divergence(q, p)) >= nats
        assert float(divergence(q, q + (p - q) * (1 - 1e-6))) < nats
    else:
        assert q == 1.0 or float(divergence(q, 1 - 1e-12)) < nats


def test_a_posterior_is_certified_and_checked() -> None:
    certificate = MADE.certificate
    assert 0 < certificate.risk < 1
    assert MADE.error(Linear(), draw(9, 500, 0.1)) <= certificate.risk
    said = check(certificate.to_json(), DATA).established
    assert said == f"the same divergence; 40 draws answered again: {certificate.facts['errors']} errors"
    more = certify_mixture(Linear(), PRIOR, POSTERIOR, DATA, 0.05, Estimate(400, 30)).certificate
    assert more.risk < certificate.risk  # draws that are paid are worth their time


def test_unpaid_draws_are_caught() -> None:
    """The control of the estimate: the mean of few draws taken for the posterior's error fails far too often."""
    stats = pytest.importorskip("scipy.stats")
    n, draws, delta, nats = 2000, 3, 0.05, 0.01
    rng = np.random.default_rng(1)
    honest = free = 0
    for _ in range(400):
        errors = int((rng.random(draws) < 0.5).sum()) * n  # half of the networks err always: the risk is 1/2
        facts = {"errors": errors, "n": n, "draws": draws, "tested": n, "sampling": 0.2, "nats": nats}
        honest += STATEMENTS["G6"].risk(facts, delta) < 0.5
        level = (nats + float(log_mean_ratio(n)) - math.log(delta)) / n
        free += divergence_limit(errors / (draws * n), level) < 0.5
    assert honest <= stats.binom.ppf(1 - 1e-6, 400, delta) < free
