"""G13: weights of so many bits. What is counted, where the premise is used, and what is refused without it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from boundcalc import Setting, evaluate
from boundcalc.base.numbers import FLOAT
from boundcalc.layers.base import Weight
from boundcalc.layers.linear import Linear
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.proof.checker import check
from boundcalc.proof.second._value import numbers
from boundcalc.setting import Architecture, Norms
from boundcalc.statements.strategies import stored_count, stored_weights
from tests.laws.settings import settings
from tests.proof import alone
from tests.proof.both import refusals

SMALL = Setting.of(depth=1, d=3, seq_len=4, n_train=10**5, margin=0.2, C=30.0, bits=4)
"""Few weights of few bits, and norms so large that covers cost more."""


def certificates(setting: Setting = SMALL) -> Iterator[Certificate]:
    value = evaluate(setting)
    yield value.certificate
    yield value.risk_certificate


PUBLISHED = {
    "gpt2": 124_439_808 + 769,  # the published count, and a read-out with an offset
    "llama": 6_607_343_616 + 4096,
    "bert": 109_482_240 - 2 * 768 + 769,  # without the two token types, which the preset has not
}


def counts(given: Iterable[Setting]) -> tuple[list[int], list[int]]:
    """As the two checkers count."""
    read = list(given)
    return [sum(stored_weights(each).values()) for each in read], [numbers(alone.seen(each)) for each in read]


def test_both_checkers_count_alike_and_as_the_authors_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    assert counts(map(Setting.of, PUBLISHED)) == (list(PUBLISHED.values()),) * 2
    first, second = counts(settings(0, 100))
    assert first == second
    monkeypatch.setattr(Weight, "parameters", property(lambda weight: math.prod(weight.shape)))  # without copies
    first, second = counts(settings(0, 100))
    assert first != second


def test_networks_of_few_bits_are_few() -> None:
    """All 2-bit weights of a small network: different functions are at most as many as G13 counts."""
    layers = (Linear("W_1", 2, 1), Linear("readout", 1, 1))
    setting = Setting(Architecture(layers=layers, seq_len=1, bits=2), Norms(C=1.0))
    values, inputs = (-1.0, -0.3, 0.5, 0.9), np.random.default_rng(0).normal(size=(5, 2))
    functions = {
        tuple(np.round(inputs @ np.array(weights[:2]) * weights[2], 12))
        for weights in itertools.product(values, repeat=3)
    }
    log_count = stored_count(FLOAT, setting)
    assert math.log(len(functions)) <= log_count
    assert math.log(len(functions)) > log_count / 2  # one bit less for each weight would be too few


def test_forgeries_are_refused_by_both() -> None:
    for certificate in certificates():
        assert check(certificate).log_value == pytest.approx(float(alone.log_value(certificate)), abs=1e-12)
        refusals(replace(certificate, setting=certificate.setting.but(bits=None)))
        refusals(replace(certificate, levels=(Level(-1.0, {}),)))
        refusals(replace(certificate, meeting=True))
    _, risk = certificates()
    refusals(replace(risk, setting=risk.setting.but(lipschitz=1.0)))


def test_a_looked_at_training_error_pays_for_one_way_more() -> None:
    value = evaluate(SMALL.but(measured=("train_error",), train_error=0.01))
    assert value.of("risk").form == "stored-margin"
    data = value.risk_certificate.to_json()
    assert data["looked_at"]["sample"]["candidates"] == 4
    data["looked_at"]["sample"]["candidates"] = 3
    assert all("candidates" in why for why in refusals(Certificate.from_json(data)))
