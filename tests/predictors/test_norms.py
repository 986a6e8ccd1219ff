"""A layer made for its bound: its class is fixed before the data, and nothing in its certificate can be changed unnoticed."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import BoundcalcError, CertificateError, InvalidSetting
from boundcalc.laws.brought.predictors import BITS
from boundcalc.laws.brought.predictors import three_bits as draw
from boundcalc.laws.predictors import sealed
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.data import Array, Data, digest_of_arrays
from boundcalc.predictors.norms import Fitted, certify_class, classes
from boundcalc.predictors.pooling import PoolingClass, PoolingNetwork, margin_errors, positions
from boundcalc.predictors.pooling_search import exposing
from boundcalc.predictors.verify import verify_predictor
from tests.predictors.test_certificate import leaves, others, put

DATA = draw(1, 400)
MADE: Fitted = certify_class(DATA, 0.05)


@pytest.mark.parametrize("rule", ["and", "or", "majority"])
def test_three_hidden_bits_are_found_and_certified(rule: str) -> None:
    for seed in range(4):
        both = draw(seed, 4400, rule)
        data, fresh = both.take(range(400)), both.take(range(400, 4400))
        made = certify_class(data, 0.05)
        tested = float((made.network.scores(made.state, fresh) <= 0).mean())
        assert made.certificate.facts["errors"] == 0
        assert tested <= made.certificate.risk < 0.4
        said = verify_predictor(made.certificate, data).established
        assert said is not None
        assert "the query lies in its class" in said


def test_noise_costs_but_does_not_stop_it() -> None:
    both = draw(3, 5000, noise=0.05)
    data, fresh = both.take(range(1000)), both.take(range(1000, 5000))
    made = certify_class(data, 0.05)
    assert made.certificate.facts["errors"] > 20
    assert made.certificate.alternatives[made.certificate.chosen]["seen"]
    assert float((made.network.scores(made.state, fresh) <= 0).mean()) <= made.certificate.risk < 0.5


def test_the_points_are_the_same_on_every_machine() -> None:
    digest = digest_of_arrays({"p": np.array(positions(20, 6))})
    assert digest == "48459b8e6c22291df423119e1c9e3cb60f1a158c0a68fb5c591c93c1b0800ab0"
    assert np.abs((positions(20, 6) ** 2).sum(1) - 1).max() < 1e-15


def test_a_direction_exposes_what_it_can() -> None:
    p = positions(40, 12)
    support = np.array([3, 17, 30])
    direction = exposing(p, support)
    assert direction is not None
    along = p @ direction
    best = along[support].min() - np.delete(along, support).max()
    rng = np.random.default_rng(0)
    for _ in range(300):
        other = direction + rng.standard_normal(12) * 0.05
        lead = p @ (other / np.linalg.norm(other))
        assert lead[support].min() - np.delete(lead, support).max() <= best + 1e-9
    assert exposing(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), np.array([0, 1])) is None


def test_what_shares_delta_was_fixed_by_the_length_alone() -> None:
    shares = [entry["delta"] for entry in MADE.certificate.alternatives]
    assert sum(shares) <= 0.05
    assert sum(shares) == pytest.approx(0.05)
    listed = [
        PoolingClass.from_json({k: v for k, v in e.items() if k != "delta"}) for e in MADE.certificate.alternatives
    ]
    assert listed == [cls for cls, _ in classes(BITS)]


def checked(raw: Any, data: Data | None) -> None:
    verify_predictor(PredictorCertificate.from_json(raw), data)


def test_every_forged_field_is_refused_on_the_examples() -> None:
    raw = MADE.certificate.to_json()
    checked(sealed(raw), DATA)
    looked = 0
    for path, value in leaves(raw):
        if path[0] == "sha256" or "environment" in path or (path[0] == "alternatives" and path[1] != raw["chosen"]):
            continue
        if "levels" in path or "found_by" in path:
            continue  # another proof of the same claim; the checker's own tests forge these
        for other in others(value):
            if (other == value and type(other) is type(value)) or (path == ("delta",) and other > value):
                continue
            if path[:2] == ("evidence", "query") and isinstance(other, float):
                continue  # another query of the class with the same margins is another true certificate
            if path[-1] == "log_value" and other > value:
                continue
            looked += 1
            with pytest.raises((BoundcalcError, TypeError)):
                checked(sealed(put(raw, path, other)), DATA)
    assert looked > 150


def test_a_query_beside_its_class_other_margins_and_other_examples_are_refused() -> None:
    raw = MADE.certificate.to_json()
    long = copy.deepcopy(raw)
    long["evidence"]["query"] = [2 * value for value in raw["evidence"]["query"]]
    with pytest.raises(CertificateError, match="longer than"):
        checked(sealed(long), DATA)
    idle = copy.deepcopy(raw)
    idle["evidence"]["query"] = [0.0 for _ in raw["evidence"]["query"]]
    with pytest.raises(CertificateError, match="margins are at most gamma"):
        checked(sealed(idle), DATA)
    with pytest.raises(CertificateError, match="not the examples"):
        checked(raw, draw(2, 400))
    proof = copy.deepcopy(raw)
    proof["facts"]["proof"]["setting"]["norms"]["budgets"]["q"]["op"] = 1.0
    with pytest.raises(CertificateError):
        checked(sealed(proof), None)


def test_a_class_that_was_looked_up_is_refused() -> None:
    """A proof that says it saw the training error does not fit a class that was fixed for none, and the other way round."""
    raw = MADE.certificate.to_json()
    other = copy.deepcopy(raw)
    other["alternatives"] = [other["alternatives"][raw["chosen"]] | {"seen": True}]
    other["chosen"] = 0
    with pytest.raises(CertificateError, match="looked at"):
        checked(sealed(other), DATA)


def test_margins_are_counted_with_room() -> None:
    network = PoolingNetwork(BITS, MADE.network.width)
    least = float(network.scores(MADE.state, DATA).min())
    assert margin_errors(network, MADE.state, DATA, least * (1 - 1e-8)) == 0
    assert margin_errors(network, MADE.state, DATA, least) >= 1


def test_rows_that_are_no_bits_are_refused() -> None:
    for x, y in ((DATA.x * 2.0, DATA.y), (DATA.x, DATA.y + 1), (DATA.x[:, :, None], DATA.y)):
        with pytest.raises(InvalidSetting, match="rows of bits"):
            certify_class(Data(x, y), 0.05)
    with pytest.raises(InvalidSetting, match="at least one class"):
        certify_class(DATA, 0.05, plan=())
    strict = replace(classes(BITS)[0][0], margin=2.0)
    with pytest.raises(InvalidSetting, match="says nothing here"):
        certify_class(DATA, 0.05, plan=((strict, 1),))


def test_answers_are_those_of_the_formula() -> None:
    network = PoolingNetwork(BITS, 8)
    q: Array = np.random.default_rng(2).standard_normal(9)
    x = 2.0 * DATA.x[:5] - 1
    p = positions(BITS, 8)
    for row, said in zip(x, network.outputs(q, x)[0], strict=True):
        weights = np.exp(p @ q[:-1] + q[-1] * row)
        assert said == pytest.approx(1.1 * float((weights * row).sum() / weights.sum()), rel=1e-12)
