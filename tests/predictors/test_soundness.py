"""Many certificates of learners whose risk is known: far fewer than delta lie below it."""

from __future__ import annotations

import pytest

from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.picking import pick_to_learn
from boundcalc.predictors.plans import default_picks, default_splits
from boundcalc.predictors.verify import verify_predictor
from tests.predictors.toys import Threshold, draw, risk


def certificates(seed: int) -> list[tuple[PredictorCertificate, float]]:
    """Certificates of one draw by two plans, each with the exact risk of its threshold."""
    m = 60 + seed % 80
    data = draw(90_000 + seed, m)
    plans = {
        "holdout": default_splits(m, 0.05),
        "p2l": default_picks(m, 0.05),
    }
    found: list[tuple[PredictorCertificate, float]] = []
    for name, plan in plans.items():
        made = pick_to_learn(Threshold(robust=seed % 2 == 0), data, plan, 0.05, method=name)
        found.append((made.certificate, risk(made.state)))
    return found


@pytest.mark.parametrize("draws", [40, pytest.param(800, marks=pytest.mark.slow)])
def test_hardly_a_certificate_lies_below_the_risk(draws: int) -> None:
    made = [pair for seed in range(draws) for pair in certificates(seed)]
    assert len(made) == 2 * draws
    below = [(certificate.method, certificate.risk, truth) for certificate, truth in made if truth > certificate.risk]
    assert len(below) <= 0.005 * len(made), below  # 0.05 might
    for certificate, _ in made[:: max(1, len(made) // 20)]:
        assert verify_predictor(certificate).risk == certificate.risk
    # Control: the same claims a fifth as large do not all hold.
    assert any(truth > certificate.risk / 5 for certificate, truth in made)
