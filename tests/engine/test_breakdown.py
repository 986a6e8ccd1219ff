"""A proof taken apart adds up to the checked value."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from boundcalc import Budget, Norms, Setting, compare
from boundcalc.base.intervals import upper_log
from boundcalc.proof.breakdown import Breakdown
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.statements.texts import STATEMENTS


def break_down(certificate: Certificate) -> Breakdown:
    return check(certificate).breakdown


SETTINGS = [
    Setting.of(depth=1, margin=0.3),
    Setting.of(depth=2, margin=0.3, train_error=0.01),
    Setting.of(depth=2, heads=4, d=32, train_error=0.02, classes=3),
    Setting.of(depth=1, norms=Norms(C=1.0, measured=True)),
    Setting.of("bert", depth=1, d=48, heads=4, vocabulary=50, seq_len=8, n_train=10**11),
    Setting.of(depth=40, C=3.0),
    Setting.of(depth=2, d=8, C=9.0, bits=4),
    Setting.of(depth=1, n_train=10**8, margin=0.3, norms=Norms(C=1.0, budgets={"W_QK": Budget(op=9.0, fro=9.0)})),
]


def _certificates(setting: Setting) -> list[Certificate]:
    values = [value for value in compare(setting) if value.refusal is None]
    return [proof.certificate for value in values for proof in value.proofs]


@pytest.fixture(scope="module")
def certificates() -> list[Certificate]:
    return [certificate for setting in SETTINGS for certificate in _certificates(setting)]


def test_the_parts_make_the_value(certificates: list[Certificate]) -> None:
    for certificate in certificates:
        parts = break_down(certificate)
        assert upper_log(parts.value) == pytest.approx(certificate.log_value, rel=1e-9, abs=1e-9)
        for level in parts.levels:
            assert float(sum((part.error for part in level.parts), start=0 * level.scale) / level.scale) <= 1 + 1e-9
            if level.count > 0:
                assert math.fsum(part.share for part in level.parts) == pytest.approx(1)
        if certificate.strategy == "chain":
            total = sum((term.value for term in parts.terms if term.statement != "P1"), start=0 * parts.value)
            assert upper_log(total) == pytest.approx(upper_log(parts.value), abs=1e-9)
    assert {certificate.strategy for certificate in certificates} >= STRATEGIES.keys()


def test_every_statement_used_is_named_and_exists(certificates: list[Certificate]) -> None:
    """Of maps that meet, of every lemma and law of noise, and of what the strategy rests on."""
    for certificate in certificates:
        parts = break_down(certificate)
        lemmas = {lemma for level in parts.levels for part in level.parts for lemma in part.lemmas} - {"zero"}
        needed = {*STRATEGIES[certificate.strategy].uses, *lemmas, *(["A6"] if certificate.meeting else [])}
        assert needed <= set(parts.statements) <= STATEMENTS.keys()
    assert any(certificate.meeting for certificate in certificates)


def test_the_comparison_sees_a_changed_cover(certificates: list[Certificate]) -> None:
    """Negative control: with one eps moved, the parts no longer make the claimed value."""
    certificate = next(c for c in certificates if c.strategy == "chain")
    level = certificate.levels[0]
    key, cover = next(iter(level.covers.items()))
    moved = replace(level, covers={**level.covers, key: replace(cover, log_eps=cover.log_eps - 0.1)})
    changed = replace(certificate, levels=(moved, *certificate.levels[1:]))
    assert upper_log(break_down(changed).value) > certificate.log_value + 1e-6
