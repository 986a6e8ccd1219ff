"""Cases of the kinds of predictor certificates: small learners, worlds whose risks are known, forgeries, numbers too
small."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import beta

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import CertificateError
from boundcalc.predictors.certificate import METHODS, Look, PredictorCertificate, issue
from boundcalc.predictors.data import Array, Data, Evidence, Named, digest_of_arrays
from boundcalc.predictors.occam import Code, Message, Update, certify_message
from boundcalc.predictors.pac_bayes import Group, LatticeLaw, Prior, certify_draws
from boundcalc.predictors.picking import pick_to_learn
from boundcalc.predictors.plans import Member, stops
from boundcalc.predictors.reference import Law, Reference
from boundcalc.predictors.rules.certify import StoredNetwork, certificate_of
from boundcalc.predictors.rules.code import Rule
from boundcalc.predictors.rules.search import explain
from boundcalc.predictors.rules.tables import tables_of
from boundcalc.testing._judge import Cases
from tests.laws.kinds.predictors import PredictorExample, World
from tests.predictors.rules.networks import looking_at

BITS = 16


@dataclass
class Threshold:
    """Says 1 above the middle of the closest pair it has seen; x is uniform, the truth is x > 1/2, labels may be noisy.

    With `robust`, the middle of the means of both classes instead.
    """

    robust: bool = False

    @property
    def recipe(self) -> Mapping[str, Any]:
        return {"kind": "threshold", "robust": self.robust}

    @property
    def environment(self) -> Mapping[str, Any]:
        return {"numpy": np.__version__}

    def start(self, seed: int) -> float:
        return 0.1 + 0.01 * seed

    def fit(self, state: float, examples: Data, prefix: int) -> float:
        del prefix
        x, y = examples.x[:, 0], examples.y
        low = x[y == 0].mean() if self.robust and (y == 0).any() else x[y == 0].max(initial=0.0)
        high = x[y == 1].mean() if self.robust and (y == 1).any() else x[y == 1].min(initial=1.0)
        trace = (0.01 if self.robust else 0.02) * (state - 0.5)  # of seed and history, as training leaves one
        return float(low + high) / 2 + trace

    def scores(self, state: float, examples: Data) -> Array:
        return (examples.x[:, 0] - state) * np.where(examples.y == 1, 1.0, -1.0)

    def weights(self, state: float) -> Mapping[str, Array]:
        return {"threshold": np.array([state])}


def thresholds(seed: int, n: int, noise: float = 0.0) -> Data:
    """Examples of the threshold 1/2."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, 1))
    y = (x[:, 0] > 0.5).astype(np.int64)
    flipped = rng.random(n) < noise
    return Data(x, np.where(flipped, 1 - y, y))


@dataclass(frozen=True)
class Votes:
    """Votes of bits +-1: right where the answer's side has more."""

    checkpoint: Mapping[str, Array] | None = None
    recipe: Mapping[str, Any] = field(default_factory=lambda: {"kind": "linear"})
    environment: Mapping[str, Any] = field(default_factory=lambda: {"numpy": np.__version__})

    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        return (examples.x @ weights["votes"][:, 0] + weights["bias"][0]) * np.where(examples.y == 1, 1.0, -1.0)

    @classmethod
    def of(cls, recipe: Mapping[str, Any]) -> Votes:
        """The network of a recipe."""
        if recipe != {"kind": "linear"}:
            raise CertificateError("no such network")
        return cls()


def votes(seed: int, n: int, noise: float) -> Data:
    """The answer is bit 3, flipped with probability `noise`."""
    rng = np.random.default_rng(seed)
    x = rng.choice([-1.0, 1.0], (n, BITS))
    return Data(x, np.where(rng.random(n) < noise, x[:, 3] < 0, x[:, 3] > 0).astype(np.int64))


@dataclass(frozen=True)
class _Given:
    """A predictor that was there before the examples."""

    at: float = 0.45

    @property
    def weights(self) -> str:
        return digest_of_arrays({"threshold": np.array([self.at])})

    def scores(self, examples: Data) -> Array:
        return Threshold().scores(self.at, examples)


# -- worlds


def _binomial(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def _just_below(n: int, errors: int, delta: float) -> float:
    """A rate at which so few errors are a little likelier than delta."""
    return 0.99 * float(beta.isf(delta, errors + 1, n - errors))


def _fixed(n: int = 30, delta: float = 0.05) -> Iterator[World]:
    """One predictor, fixed beforehand: its errors are binomial."""
    for errors in (0, 3):
        p = _just_below(n, errors, delta)
        yield World([(chance, {"errors": e, "n": n}, p) for e, chance in enumerate(_binomial(n, p))], delta)


def _luckiest(facts: Mapping[str, Any], networks: int = 8, n: int = 30, delta: float = 0.05) -> Iterator[World]:
    """The best of eight predictors whose errors are independent: what names it costs 3 bits, or log 8 nats."""
    for errors in (0, 2):
        p = _just_below(n, errors, delta / networks)
        law = _binomial(n, p)
        more = [math.fsum(law[e:]) ** networks for e in range(n + 2)]
        yield World([(more[e] - more[e + 1], {"errors": e, "n": n, **facts}, p) for e in range(n + 1)], delta)


def _picked(n: int = 30, picks: int = 4, delta: float = 0.05) -> Iterator[World]:
    """The least points are picked, and what lies above them up to r is wrong: n points fall below r by a binomial
    law."""
    for errors in (0, 2):
        r = _just_below(n, picks + errors, delta)
        more = {"n": n, "picks": picks, "references": [[errors, 1.0]]}
        yield World(
            [(chance, {"errors": max(0, c - picks), **more}, r) for c, chance in enumerate(_binomial(n, r))], delta
        )


def _many(facts: Callable[[int, int], Mapping[str, Any]], n: int = 10**6, delta: float = 0.05) -> World:
    """So many examples that a sharp number is near the rate.

    With probability 1/2 or more no more are wrong than the mean, an integer, which is a median of a binomial law. What
    else may happen is left out.
    """
    wrong = 2 * n // 5
    return World([(0.5, facts(wrong, n), 0.4), (0.5, None, 0.4)], delta)


# -- certificates


def _run(data: Data, other: Data, members: Sequence[Member], worlds: Iterator[World]) -> PredictorExample:
    def make() -> PredictorCertificate:
        return pick_to_learn(Threshold(robust=True), data, members, 0.05).certificate

    return PredictorExample(make, data, other, lambda recipe: Threshold(recipe["robust"]), tuple(worlds))


def _noisy() -> tuple[Data, Data]:
    return thresholds(21, 120, 0.1), thresholds(20, 120, 0.1)


def _holdout() -> Iterator[PredictorExample]:
    yield _run(*_noisy(), [Member(30), Member(60)], _fixed())


def _p2l() -> Iterator[PredictorExample]:
    yield _run(*_noisy(), [Member(40), *stops(80, [30], [30], prefix=40)], _fixed())
    yield _run(*_noisy(), stops(120, [2] * 5, [4, 10]), _picked())


def _held_out() -> Iterator[PredictorExample]:
    data, other = _noisy()

    def make() -> PredictorCertificate:
        evidence = Evidence(Named(data.sha256, len(data)), {"at": _Given().at}, _Given().weights, {})
        errors = count_wrong(_Given().scores(data), len(data))
        return issue("held-out", errors, delta=0.05, alternatives=[Look()], evidence=evidence)

    yield PredictorExample(make, data, other, lambda recipe: _Given(recipe["at"]), tuple(_fixed()))


def _of_votes(make: Callable[[Data], Any], worlds: Iterable[World]) -> PredictorExample:
    data, other = votes(5, 80, 0.1), votes(6, 80, 0.1)
    return PredictorExample(lambda: make(data).certificate, data, other, Votes.of, tuple(worlds))


_START = Reference({"votes": Law((BITS, 1), "constant", 0.0), "bias": Law((1,), "constant", 0.0)})
_PRIOR = Prior(_START, 0, (Group("votes", None, 1.0), Group("bias", None, 0.5)), -3)
_POSTERIOR = [LatticeLaw(12.0 if place == 3 else 0.0, 2.0 if place == 3 else 4.0) for place in range(BITS + 1)]


def _occam() -> Iterator[PredictorExample]:
    third = Message(0, {"votes": Update(0, {3: 1})})
    worlds = [*_luckiest({"bits": 3.0}), _many(lambda wrong, n: {"errors": wrong, "n": n, "bits": 3.0})]
    yield _of_votes(lambda data: certify_message(Votes(), Code(_START), third, data, 0.05), worlds)


def _pac_bayes() -> Iterator[PredictorExample]:
    nats = {"nats": math.log(8)}
    worlds = [*_luckiest(nats), _many(lambda wrong, n: {"errors": wrong, "n": n, **nats})]
    yield _of_votes(lambda data: certify_draws(Votes(), _PRIOR, _POSTERIOR, data, 0.05, 3), worlds)


RULE_BITS = 8
_FIRST_OR_FIFTH = Rule(RULE_BITS, (1, (5, 0, 1), 1))


def _network_of(recipe: Mapping[str, Any]) -> StoredNetwork:
    """A network whose bit 1 or bit 5, by its first head, decides."""
    architecture, weights = looking_at(RULE_BITS, (1, 5))
    if recipe["trial"] is not None:
        raise CertificateError("no such network")
    return StoredNetwork(architecture, weights)


def _bits(seed: int) -> Data:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2, (80, RULE_BITS))
    return Data(x, (x[:, 1] | x[:, 5]) ^ (rng.random(80) < 0.1))


def _rule() -> Iterator[PredictorExample]:
    data, other = _bits(7), _bits(8)
    network = _network_of({"trial": None})

    def make(prefix: int) -> PredictorCertificate:
        explanation = explain(tables_of(network.architecture, network.weights), rule=_FIRST_OR_FIFTH)
        return certificate_of(network, explanation, data, 0.05, prefix=prefix)

    worlds = [*_luckiest({"bits": 3.0}), *_luckiest({"bits": 3.0}, delta=0.5)]
    worlds.append(_many(lambda wrong, n: {"errors": wrong, "n": n, "bits": 3.0}))
    yield PredictorExample(lambda: make(0), data, other, _network_of, tuple(worlds))
    yield PredictorExample(lambda: make(30), data, other, _network_of, (*_fixed(), *_fixed(delta=0.5)))


_BROUGHT: Mapping[str, Callable[[], Iterator[PredictorExample]]] = {
    "holdout": _holdout,
    "p2l": _p2l,
    "held-out": _held_out,
    "occam": _occam,
    "pac-bayes": _pac_bayes,
    "rule": _rule,
}

_NOTICED = 0.98
"""The part of a statement's number that its worlds show to be too small: every statement is nearly sharp."""


@cache
def _examples(name: str) -> tuple[PredictorExample, ...]:
    return tuple(_BROUGHT[name]())


def _refusals(first: PredictorExample) -> list[tuple[PredictorExample, str]]:
    """Less than what follows, an alternative beside the list, and other examples."""
    issued = first.certificate
    return [
        (replace(first, make=lambda: replace(issued, risk=0.9 * issued.risk)), "does not follow"),
        (replace(first, make=lambda: replace(issued, chosen=len(issued.alternatives))), "a place in the list"),
        (replace(first, data=first.other), "not the examples"),
    ]


def cases(name: str) -> Cases:
    """What the library's method of that name brings."""
    method, examples = METHODS[name], _examples(name)
    wrong = {"examples that nobody looks at": replace(method, establish=lambda *_: "believed")}
    for statement in method.statements:
        smaller = replace(statement, value=lambda facts, delta, own=statement: _NOTICED * own.value(facts, delta))
        statements = tuple(smaller if other is statement else other for other in method.statements)
        wrong[f"{_NOTICED:g} of the number of {statement.name}"] = replace(method, statements=statements)
    return Cases(examples, _refusals(examples[0]), wrong)
