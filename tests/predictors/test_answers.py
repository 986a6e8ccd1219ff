"""An answer is right where its score is above 0: NaN, -inf and both zeros are wrong in every method."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from boundcalc.base.answers import count_wrong, wrong
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.checkpoints.margins import Margins
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.occam import Code, certify_message, float_risk
from boundcalc.predictors.pac_bayes import certify_draws
from boundcalc.predictors.picking import pick_to_learn
from boundcalc.predictors.plans import shared, splits, stops
from boundcalc.predictors.updates import Message, Update
from boundcalc.predictors.verify import verify_predictor
from tests.cases.predictors import Threshold, Votes
from tests.laws.kinds.predictors import sealed
from tests.predictors.test_occam import DATA, REFERENCE
from tests.predictors.test_pac_bayes import POSTERIOR, PRIOR

NOT_RIGHT = [math.nan, -math.inf, 0.0, -0.0, -1.0]


@dataclass(frozen=True)
class Always(Votes):
    """Answers every example with the same number."""

    answer: float = 0.0

    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        return np.full(len(examples), self.answer)


@dataclass
class Deaf(Threshold):
    """Learns nothing and answers every example with the same number."""

    answer: float = 0.0

    def scores(self, state: float, examples: Data) -> Array:
        return np.full(len(examples), self.answer)


def issued(answer: float) -> list[PredictorCertificate]:
    """One certificate of each method that counts errors."""
    network, learner = Always(answer=answer), Deaf(answer=answer)
    rounds = shared(stops(len(DATA), [2, 2], [2, 4]), 0.05)
    return [
        certify_message(network, Code(REFERENCE), Message(0, {}), DATA, 0.05).certificate,
        certify_draws(network, PRIOR, POSTERIOR, DATA, 0.05, 2).certificate,
        pick_to_learn(learner, DATA, shared(splits([20, 40]), 0.05), 0.05, method="holdout").certificate,
        pick_to_learn(learner, DATA, rounds, 0.05).certificate,
    ]


@pytest.mark.parametrize("answer", NOT_RIGHT)
def test_a_predictor_that_never_answers_has_risk_one(answer: float) -> None:
    for certificate in issued(answer):
        assert certificate.facts["errors"] > 0
        assert certificate.risk == 1.0


def test_infinity_is_above_zero() -> None:
    for certificate in issued(math.inf):
        assert certificate.facts["errors"] == 0


@dataclass(frozen=True)
class Overflowing(Votes):
    """A network that ends in 0/0."""

    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        with np.errstate(invalid="ignore"):
            return 0 * super().scores(weights, examples) / 0


def test_coin_labels_and_weights_that_overflow_certify_nothing() -> None:
    """Once 500 answers of NaN had no error and few bits: risk <= 0.0087, confirmed on the examples."""
    rng = np.random.default_rng(0)
    data = Data(rng.choice([-1.0, 1.0], (500, 16)), rng.integers(0, 2, 500))
    code, message = Code(REFERENCE), Message(0, {"votes": Update(0, {3: 1})})
    true = certify_message(Overflowing(), code, message, data, 0.05).certificate
    assert (true.facts["errors"], true.risk) == (500, 1.0)
    raw = true.to_json()
    raw["facts"]["errors"], raw["risk"] = 0, float_risk(0, 500, raw["facts"]["bits"], 0.05) * (1 + 1e-9)
    forged = PredictorCertificate.from_json(sealed(raw))
    assert verify_predictor(forged).risk < 0.1
    with pytest.raises(CertificateError, match="500 errors are counted, 0 are claimed"):
        verify_predictor(forged, data, lambda _: Overflowing())


def test_scores_that_are_not_one_number_per_example_are_refused() -> None:
    assert count_wrong(np.array([1.0, math.nan, 0.5]), 3, 0.5) == 2
    for scores in (np.zeros((3, 1)), np.zeros(2), np.array(1.0)):
        with pytest.raises(InvalidSetting, match="one number per example"):
            count_wrong(scores, 3)


def test_a_margin_that_is_nan_is_none() -> None:
    margins = Margins(np.array([math.nan, 2.0, 1.0, -1.0]))
    assert margins.error(1.0) == pytest.approx(0.75)
    assert sorted(margins.grid()) == [-1, 0]
    torch = pytest.importorskip("torch")
    from boundcalc.lab.train.measure import margin_summary
    from boundcalc.lab.train.stack import wrongs
    from boundcalc.lab.train.tasks import Shape

    assert margin_summary(torch.tensor([1.0, math.nan, 2.0]))["0"] == -1e30
    outputs = torch.tensor([[[math.nan], [math.inf], [-0.0], [1.0]]])
    answers: Any = wrongs(Shape("rows", 1, "binary", width=1), outputs, torch.ones(1, 4, dtype=torch.long))
    assert answers.tolist() == [[1.0, 0.0, 1.0, 0.0]]
    assert wrong(torch.tensor([math.nan, 1.0])).tolist() == [True, False]
