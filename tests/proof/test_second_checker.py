"""Whole certificates against a checker written a second time, in 50 digits, from the statements alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.engine.search import Search
from boundcalc.layers import heads as attention
from boundcalc.layers.facts import Points
from boundcalc.proof import _levels as levels
from boundcalc.proof import checker
from boundcalc.proof.certificate import Certificate
from boundcalc.proof.checker import check
from boundcalc.setting import Budget, Norms, Setting
from boundcalc.statements import network
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.noises import NOISES
from boundcalc.statements.premise import no_member
from boundcalc.statements.strategies import STRATEGIES
from boundcalc.theorems import POLICIES, Policy
from tests.laws.settings import settings
from tests.proof import alone
from tests.proof.samples import SETTINGS, proved

ROUNDED = 1e-9
"""How far above the exact value (relative) the checker may end: it rounds once, outward."""


def certificates(seed: int, number: int) -> Iterator[Certificate]:
    """What every policy's search finds for so many settings."""
    for setting in settings(f"two checkers {seed}", number):
        for policy in (each for each in POLICIES.values() if each.refuses(setting) is None):
            yield from found_by(setting, policy)
    near = Setting.of(d=6, n_train=10**6, margin=0.01)  # some network reaches it, so that the risk bounds speak
    for setting in (near, near.but(train_error=0.03), near.but(train_error=0.03, bits=5), Setting.of(n_train=10**6)):
        yield from found_by(setting, POLICIES["best"])
    spectral = Budget(op=1.0, two_one=1.5, nuclear=1.2)
    for lemma in ("T5", "T13", "T14"):  # each on its own, as the best policy seldom prefers them
        narrow = Policy(lemma, "one lemma", frozenset({lemma, "T3"}) if lemma == "T5" else frozenset({lemma}))
        norms = Norms(budgets=dict.fromkeys(("W_QK", "W_V", "W_1", "readout"), spectral))
        yield from found_by(Setting.of(d=6, norms=norms, n_train=10**6), narrow)


def found_by(setting: Setting, policy: Policy) -> Iterator[Certificate]:
    search = Search(setting, policy)
    yield from (found.certificate for found in search.candidates("gap"))
    if no_member(setting) is None:  # else a risk bound speaks of no network (G0e), and the first checker refuses it
        yield from (found.certificate for found in search.candidates("risk"))


def excess(checked: float, certificate: Certificate) -> float:
    """Log of the checker's value over the exact value."""
    return float(checked - alone.log_value(certificate))


def close(value: float, certificate: Certificate) -> bool:
    """Whether a checked value is the exact one, or above it by what is rounded."""
    return -1e-15 <= excess(value, certificate) <= ROUNDED * max(1.0, abs(value))


def test_the_two_checkers_agree_and_the_first_is_above() -> None:
    """On random settings, with every strategy, lemma and law of noise."""
    strategies, lemmas = set[str](), set[str]()
    for seed in range(2):
        for certificate in certificates(seed, 6):
            assert close(check(certificate).log_value, certificate), (certificate.policy, certificate.strategy)
            strategies.add(certificate.strategy)
            covers = (cover for level in certificate.levels for cover in level.covers.values())
            lemmas |= {choice.lemma for cover in covers for choice in cover.choices}
    assert strategies == set(STRATEGIES)
    assert lemmas >= {"zero", *LEMMAS, *NOISES} - {"T9"}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_two_agree_on_every_kind_of_network(name: str) -> None:
    """Residuals, normalisations, biases, gates, tables, grouped and rotated heads, budgets per head, P1."""
    for certificate in proved(name):
        assert close(certificate.log_value, certificate), certificate.strategy


def test_a_small_difference_is_noticed() -> None:
    """Another confidence or sample moves one checker and not the other."""
    chains = (c for c in certificates(1, 6) if c.strategy == "chain" and c.levels)
    certificate = next(c for c in chains if c.levels[0].log_scale > -50)  # of which more than the deviation is left
    value, setting = check(certificate).log_value, certificate.setting
    assert close(value, certificate)
    n_train, delta = setting.sample.n_train, setting.sample.delta
    for other in (setting.but(n_train=n_train + n_train // 1000), setting.but(delta=delta * 0.999)):
        assert abs(excess(value, replace(certificate, setting=other))) > ROUNDED


def one_row(layers: Any, rows: int, seq_len: int) -> list[int]:
    return [1 for _ in layers]


def lowered_lemma(name: str, factor: float) -> Any:
    """A lemma's sharp and closed costs times a factor."""
    lemma = LEMMAS[name]
    sharp, closed = lemma.sharp, lemma.closed

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lemma, "sharp", lambda *args: sharp(*args) * factor)
        monkeypatch.setattr(lemma, "closed", lambda *args: closed(*args) * factor)

    return patch


def lowered_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = attention._normaliser_constants
    monkeypatch.setattr(attention, "_normaliser_constants", lambda *args: (honest(*args)[0] * 9 / 10, honest(*args)[1]))


def test_a_lower_softmax_constant_lets_too_wide_covers_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sensitivities set no value; they decide which covers a level has room for, and the second checker looks again."""
    lowered_constant(monkeypatch)
    wide = [certificate for certificate in certificates(4, 3) if certificate.levels]
    caught = 0
    for certificate in wide:
        check(certificate)
        try:
            alone.log_value(certificate)
        except CertificateError:
            caught += 1
    assert caught > len(wide) / 4


def fewer_points(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Points.count
    monkeypatch.setattr(Points, "count", lambda self, samples: max(1, honest(self, samples) // 2))


BROKEN: dict[str, Any] = {
    "T1 halved": lowered_lemma("T1", 0.5),
    "T2 halved": lowered_lemma("T2", 0.5),
    "T3 a hundredth less": lowered_lemma("T3", 0.99),
    "T4 a hundredth less": lowered_lemma("T4", 0.99),
    "T13 a hundredth less": lowered_lemma("T13", 0.99),
    "one row everywhere": lambda patch: patch.setattr(network, "rows_used", one_row),
    "half the points": fewer_points,
    "one event of noise": lambda patch: patch.setattr(levels, "events", lambda of: 1),
    "P1 for nothing": lambda patch: patch.setattr(checker, "posthoc_cost", lambda ns, setting, measured: ns.number(-1)),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_first_checker_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Certificates of an honest search, read by a checker with one thing wrong."""
    honest = list(certificates(4, 4))
    BROKEN[what](monkeypatch)
    assert any(abs(excess(check(certificate).log_value, certificate)) > 1e-6 for certificate in honest)
