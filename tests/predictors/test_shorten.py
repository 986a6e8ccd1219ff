"""Rounded weights: certificates of what their files decode to, by a search that is paid for by the code alone."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import PredictorCertificate
from boundcalc.predictors.coding import Reader, Writer, subset
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.occam import Code
from boundcalc.predictors.reference import Law, Reference
from boundcalc.predictors.shorten import RoundingRule, TooLarge, shorten
from boundcalc.predictors.verify import verify_predictor
from tests.predictors.test_occam import BITS, CODE, DATA, Linear, draw

FAR = {"votes": np.arange(BITS, dtype=np.float64).reshape(BITS, 1), "bias": np.array([0.25])}


def trained(seed: int = 0) -> dict[str, Array]:
    """A vote for bit 3, and noise that training left."""
    rng = np.random.default_rng(seed)
    votes = 0.02 * rng.standard_normal((BITS, 1))
    votes[3] += 1.3
    return {"votes": votes, "bias": 0.01 * rng.standard_normal(1)}


def test_a_walk_and_a_search_number_subsets_alike() -> None:
    """The two ways to a rank give the same code, as many or few places as there are."""
    for size, count in ((n, k) for n in range(1, 9) for k in range(1, n + 1)):
        ranks = []
        for chosen in itertools.combinations(range(size), count):
            writer = Writer()
            assert subset(writer, size, count, chosen) == chosen
            assert subset(Reader(writer.file()), size, count) == chosen
            ranks.append(sum(math.comb(place, i + 1) for i, place in enumerate(chosen)))
            assert writer.low == ranks[-1]
        assert sorted(ranks) == list(range(math.comb(size, count)))
    rng = random.Random(1)
    for size, count in ((1000, 40), (1000, 20), (3000, 2500)):
        chosen = tuple(sorted(rng.sample(range(size), count)))
        writer = Writer()
        subset(writer, size, count, chosen)
        assert writer.low == sum(math.comb(place, i + 1) for i, place in enumerate(chosen))
        assert subset(Reader(writer.file()), size, count) == chosen


def test_rounded_weights_are_certified_and_decode_to_the_bit() -> None:
    data = draw(1, 400, 0.05)
    made = shorten(Linear(), [CODE], trained(), data, 0.05)
    certificate = made.certificate
    assert certificate.facts["bits"] < 40
    assert certificate.facts["errors"] == int((Linear().scores(made.state, data) <= 0).sum())
    assert certificate.risk < 0.2
    again = verify_predictor(PredictorCertificate.from_json(certificate.to_json()), data, lambda _: Linear())
    assert again.established is not None
    assert "equal to the bit" in again.established
    with pytest.raises(CertificateError, match="sha256"):
        verify_predictor(certificate, draw(2, 400, 0.05), lambda _: Linear())


def test_codes_share_delta_and_the_better_reference_is_taken() -> None:
    data, weights = draw(1, 400, 0.05), trained()
    start = {name: value + (0.5 if name == "votes" else 0.0) * (np.arange(value.size) == 3).reshape(value.shape)
             for name, value in trained(0).items()}  # fmt: skip
    near = Code(Reference.of_checkpoint(start))
    made = shorten(Linear(start), [CODE, near], weights, data, 0.05)
    listed = made.certificate.alternatives
    assert len(listed) == 2
    assert sum(entry["delta"] for entry in listed) <= 0.05
    assert listed[made.certificate.chosen]["checkpoint"] == near.reference.checkpoint
    assert made.certificate.risk <= shorten(Linear(), [CODE], weights, data, 0.025).certificate.risk
    with pytest.raises(CertificateError, match="reference is a checkpoint"):
        verify_predictor(made.certificate, data, lambda _: Linear())
    assert verify_predictor(made.certificate, data, lambda _: Linear(start)).established


def test_what_says_nothing_says_so() -> None:
    """Many numbers, few examples: the bound is 1 or nearly so, and a true certificate all the same."""
    rng = np.random.default_rng(0)
    laws = {
        "votes": Law((BITS, 1), "constant", 0.0),
        "bias": Law((1,), "constant", 0.0),
        "more": Law((400, 5), "constant", 0.0),
    }
    weights = {"votes": rng.standard_normal((BITS, 1)), "bias": np.zeros(1), "more": rng.standard_normal((400, 5))}
    data = DATA.take(range(10))
    made = shorten(Linear(), [Code(Reference(laws))], weights, data, 0.05)
    assert made.certificate.risk > 0.5
    with pytest.raises(TooLarge, match="numbers are more than"):
        shorten(Linear(), [CODE], {"votes": np.zeros((2 * 10**6, 1)), "bias": np.zeros(2)}, data, 0.05)


class Alone(Linear):
    """Counts how often it is asked."""

    asked = 0

    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        Alone.asked += 1
        return super().scores(weights, examples)


def test_the_search_asks_no_more_than_it_may() -> None:
    shorten(Alone(), [CODE], FAR, DATA, 0.05, rule=RoundingRule(tries=3, moves=2))
    assert Alone.asked <= 3 + 2 + 1


@pytest.mark.parametrize("n", [60, 400])
def test_bounds_hold_for_the_true_risk(n: int) -> None:
    """The risk of sign(votes x) under 5% noise is known by enumeration of a fresh large sample; it seldom exceeds the bound."""
    fresh = draw(99, 20_000, 0.05)
    above = 0
    for seed in range(20):
        made: Any = shorten(
            Linear(), [CODE], trained(seed), draw(seed, n, 0.05), 0.2, rule=RoundingRule(tries=8, moves=4)
        )
        above += float((Linear().scores(made.state, fresh) <= 0).mean()) > made.certificate.risk
    assert above <= 4
