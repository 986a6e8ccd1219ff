"""A covering lemma added from outside: a subclass of `CoverLemma` in `LEMMAS`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.search import Search
from boundcalc.layers.facts import MatrixNorms, Points, Target
from boundcalc.proof.checker import check
from boundcalc.setting import Setting
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.testing import Cases, check_lemma
from boundcalc.testing._lemmas import scaled
from boundcalc.theorems import BOUNDS, Policy

SETTING = Setting.of(depth=1, d=4, seq_len=3, n_train=10**6, margin=0.34)


class Rounded(CoverLemma):
    """Uniform: every matrix of norm B is within eps of a grid in the ball of (1 + 3y)^(dk) points."""

    name = "Tgrid"
    text = r"""
### Tgrid. A coarse volumetric cover

As T4, with 3 for 2: $\log N(\varepsilon)\le dk\log(1+3bB/\varepsilon)$. Source: [edelman2022].

*Proof.* T4's count is smaller. ∎
"""
    uniform = True
    kinds = frozenset({"map", "query"})

    def norm(self, target: Target) -> Number:
        return target.norms.op

    def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
        return target.size * ns.log(1 + 3 * y)


TARGET = Target("map", 3, 2, 1.0, MatrixNorms(1.0, 1.2, 1.5, 1.5, 2.0, 1.4, 2), Points(5))
NUMBER = Target("map", 1, 1, 1.0, MatrixNorms(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1), Points(5))


def cases_of(lemma: CoverLemma) -> Cases:
    """Where it holds, what it must refuse, and the negative control: too small a count."""
    return Cases([NUMBER, TARGET], [(replace(TARGET, kind="gain"), "needs a")], {"too small": scaled(lemma, 0.05)})


@pytest.fixture
def lemma() -> Iterator[CoverLemma]:
    added = Rounded()
    yield LEMMAS.register(added)
    LEMMAS.remove(added.name)


def policy(monkeypatch: pytest.MonkeyPatch, *lemmas: str) -> Policy:
    made = Policy("mine", "lemmas of my own", frozenset(lemmas))
    monkeypatch.setitem(BOUNDS, "mine", made)
    return made


def test_it_bounds_alone(lemma: CoverLemma, monkeypatch: pytest.MonkeyPatch) -> None:
    policy(monkeypatch, lemma.name)
    value = evaluate(SETTING, "mine")
    for certificate in (value.certificate, value.risk_certificate):
        again = check(certificate)
        assert again.log_value == certificate.log_value
        assert certificate.levels
        assert lemma.name in again.breakdown.statements


def test_the_laws_hold_and_see_what_is_too_small(lemma: CoverLemma) -> None:
    assert check_lemma(lemma, cases_of(lemma)) == []


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="registered already"):
        LEMMAS.register(LEMMAS["T3"])


def test_a_lemma_taken_out_again_is_refused_by_name(lemma: CoverLemma, monkeypatch: pytest.MonkeyPatch) -> None:
    made = policy(monkeypatch, lemma.name)
    found = next(f.certificate for f in Search(SETTING, made).candidates("gap") if f.certificate.levels)
    check(found)
    LEMMAS.remove(lemma.name)
    with pytest.raises(CertificateError, match=lemma.name):
        check(found)
