"""G6': lattice laws with exact probabilities, draws anyone can make again, forgeries, and coverage."""

from __future__ import annotations

import copy
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate, issue
from boundcalc.predictors.pac_bayes import (
    Drawn,
    Group,
    LatticeLaw,
    Prior,
    certify_draws,
    draw_weights,
    log_ratio,
)
from boundcalc.predictors.reference import Law, Reference
from boundcalc.predictors.statements import STATEMENTS
from boundcalc.predictors.verify import verify_predictor
from tests.laws.kinds.predictors import sealed
from tests.predictors.test_occam import BITS, DATA, Linear, draw

REFERENCE = Reference({"votes": Law((BITS, 1), "normal", 0.01), "bias": Law((1,), "uniform", 0.01)})
PRIOR = Prior(REFERENCE, 0, (Group("votes", None, 1.0), Group("bias", None, 0.5)), -3)
POSTERIOR = [LatticeLaw(12.0 if place == 3 else 0.0, 2.0 if place == 3 else 4.0) for place in range(17)]


def made() -> Drawn:
    return certify_draws(Linear(), PRIOR, POSTERIOR, DATA, 0.05, 3)


def check(raw: Any, data: Any) -> Any:
    return verify_predictor(PredictorCertificate.from_json(raw), data, Linear.of)


@pytest.mark.parametrize("law", [LatticeLaw(0.3, 1.7), LatticeLaw(-5.0, 0.02), LatticeLaw(100.25, 9.0)])
def test_a_lattice_law_sums_to_one_and_is_drawn_as_it_says(law: LatticeLaw) -> None:
    low, high = law.ends
    masses = {k: law.log_mass(k).exp() for k in range(low, high + 1)}
    total = arb(0)
    for mass in masses.values():
        total = total + mass
    assert total.contains(1)
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


def test_a_draw_is_certified_and_checked() -> None:
    found = made()
    certificate = found.certificate
    assert len(certificate.alternatives) == 3
    assert 0 < certificate.risk < 1
    said = check(certificate.to_json(), DATA).established
    assert said is not None
    assert "same log ratio" in said


def test_a_draw_beside_the_seed_a_smaller_ratio_and_other_examples_are_refused() -> None:
    raw = made().certificate.to_json()
    for change in (-1.0, 1.0):
        forged = copy.deepcopy(raw)
        forged["facts"]["nats"] += change
        forged["risk"] = STATEMENTS["G6'"].risk(forged["facts"], forged["alternatives"][forged["chosen"]]["delta"])
        check(sealed(forged), None)
        with pytest.raises(CertificateError, match="log ratio"):
            check(sealed(forged), DATA)
    forged = copy.deepcopy(raw)
    forged["chosen"] = (raw["chosen"] + 1) % 3
    with pytest.raises(CertificateError):
        check(sealed(forged), DATA)
    with pytest.raises(CertificateError, match="not the examples"):
        check(raw, draw(6, 80, 0.1))
    forged = copy.deepcopy(raw)
    forged["evidence"]["posterior"].pop()
    with pytest.raises(CertificateError, match="laws in the posterior"):
        check(sealed(forged), DATA)


def test_no_draw_can_be_left_out() -> None:
    """The best of 60 draws as the only alternative, or with more than its share, is a choice that delta does not cover."""
    wide = [LatticeLaw(12.0 if place == 3 else 0.0, 6.0) for place in range(17)]
    best = certify_draws(Linear(), PRIOR, wide, DATA, 0.05, 60).certificate
    assert best.chosen > 0
    entry = best.alternatives[best.chosen]
    before = best.alternatives[: best.chosen]
    lists = {
        "alone": [{**entry, "delta": 0.05}],
        "others missing": [{**entry, "delta": 0.025}, {**before[0], "delta": 0.025}],
        "more than its share": [*({**each, "delta": 1e-6} for each in before), {**entry, "delta": 0.04}],
    }
    for alternatives in lists.values():
        chosen = next(place for place, each in enumerate(alternatives) if each["draw"] == entry["draw"])
        facts, listed = {"delta": 0.05, "chosen": chosen, "evidence": best.evidence}, tuple(alternatives)
        with pytest.raises(CertificateError, match=r"seeds 0, 1, 2, \.\. and equal shares"):
            issue("pac-bayes", "G6'", best.facts, alternatives=listed, **facts)


@pytest.mark.parametrize("delta", [0.5, 0.05])
def test_a_posterior_around_the_luckiest_fails_rarely_enough(delta: float) -> None:
    """One coordinate says which of 33 coin flips answers; all have risk 1/2, the posterior sits on the luckiest."""
    rng = np.random.default_rng(3)
    n, runs = 40, 1500
    prior = LatticeLaw(0.0, 8.0)
    failed = cheated = 0
    table = {
        c: (law := LatticeLaw(float(c), 0.3), {k: float(log_ratio([law], [prior], [k])) for k in range(*law.ends)})
        for c in range(-16, 17)
    }
    risk: dict[tuple[int, float], float] = {}
    for run in range(runs):
        wrong = rng.binomial(n, 0.5, 400)
        law, ratios = table[int(wrong[:33].argmin()) - 16]
        k = draw_weights([law], run)[0]
        errors = int(wrong[k + 100]) if not -16 <= k <= 16 else int(wrong[k + 16])
        for nats in (ratios.get(k, 0.0), 0.0):
            if (errors, nats) not in risk:
                risk[errors, nats] = STATEMENTS["G6'"].risk({"errors": errors, "n": n, "nats": nats}, delta)
        failed += risk[errors, ratios.get(k, 0.0)] < 0.5
        cheated += risk[errors, 0.0] < 0.5
    assert failed <= delta * runs + 3 * (delta * runs) ** 0.5
    assert cheated > failed
