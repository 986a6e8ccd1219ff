"""A proof taken apart adds up to the checked value."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from boundcalc.base.intervals import upper_log
from boundcalc.proof.breakdown import Breakdown
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.statements.texts import STATEMENTS
from tests.proof.samples import SETTINGS, proved


def break_down(certificate: Certificate) -> Breakdown:
    return check(certificate).breakdown


@pytest.fixture(scope="module")
def certificates() -> list[Certificate]:
    return [certificate for name in SETTINGS for certificate in proved(name)]


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
