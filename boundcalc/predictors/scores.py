"""Scores of fixed predictors with a guarantee: an error, a difference on the same examples, a mean loss.

Each is a certificate that holds its facts, and is computed again from them in ball arithmetic (docs/certificates.md, S1
to S4).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from boundcalc.base.errors import CertificateError
from boundcalc.base.output import write_json
from boundcalc.base.rounding import confidence, down, up
from boundcalc.base.schema import write
from boundcalc.predictors.certificate import json_object, object_of, sealed, unsealed
from boundcalc.predictors.data import fixed_order
from boundcalc.predictors.statements import count, positive_count, real
from boundcalc.predictors.tails import binomial_tail, limit, rounded_up, turn

FORMAT = "boundcalc-score/1"

_WEIGHTED = ("losses", "weights", "largest")
_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "error": ("S1", ("errors", "n")),
    "difference": ("S2", ("first", "second", "n")),
    "loss": ("S3", ("losses",)),
    "graded difference": ("S3", ("losses",)),
    "weighted loss": ("S4", _WEIGHTED),
    "weighted difference": ("S4", _WEIGHTED),
}
STATEMENTS = {kind: statement for kind, (statement, _) in _KINDS.items()}
"""What a score of each kind follows from."""
DIFFERENCES = ("difference", "graded difference", "weighted difference")
"""Kinds that compare two predictors."""
_FRACTION = 0.8
"""Of delta, what S2 spends on which of the two errs where one does; the rest goes to how often."""
_BOLDEST = 0.9
"""The largest share of its capital that S3 puts on one example."""


@dataclass(frozen=True)
class Score:
    """An interval of the true value, with probability at least 1 - delta, and an upper limit that holds as often.

    Attributes:
        kind: "error" (of one predictor), "difference" (error of the first less that of the second), "loss" (a mean of
            losses in [0, 1]), "graded difference" (of two such losses), or "weighted loss" and "weighted difference",
            where examples have weights.
        facts: "errors" of "n"; "first", "second" and "n": how often the first alone errs, the second alone, of how
            many; or "losses", one an example (of a difference (1 + difference) / 2), with "weights" and the "largest"
            possible one.
        delta: failure probability of each claim by itself.
        looks: how many scores share delta: models, data sets or looks fixed beforehand.
        evidence: names of predictors and data, with their digests.
    """

    kind: str
    facts: Mapping[str, Any]
    delta: float = 0.05
    looks: int = 1
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise CertificateError(f"a score is of the kind {', '.join(_KINDS)}, got {self.kind!r}")
        facts = object_of(f"facts of the kind {self.kind!r}", self.facts, _KINDS[self.kind][1])
        if not 0 < real("delta", self.delta) < 1:
            raise CertificateError(f"delta must lie between 0 and 1, got {self.delta!r}")
        positive_count("looks", self.looks)
        json_object("evidence", self.evidence)
        if "losses" in facts:
            losses = facts["losses"]
            if not isinstance(losses, list | tuple) or not losses:
                raise CertificateError("losses must be a list of numbers, one an example")
            if any(not 0 <= real("a loss", loss) <= 1 for loss in losses):
                raise CertificateError("a loss lies between 0 and 1")
            if "weights" in facts:
                self._check_weights(facts["weights"], real("the largest weight", facts["largest"]))
            return
        wrong = sum(count(name, value) for name, value in facts.items() if name != "n")
        if wrong > positive_count("n", facts["n"]):
            raise CertificateError(f"{wrong} errors among {facts['n']} examples")

    def _check_weights(self, weights: Any, largest: float) -> None:
        if not isinstance(weights, list | tuple) or len(weights) != self.n:
            raise CertificateError("weights must be a list of numbers, one an example")
        if not 0 < largest < math.inf or any(not 0 <= real("a weight", weight) <= largest for weight in weights):
            raise CertificateError(f"a weight lies between 0 and the largest, {largest:g}")
        if not any(weights):
            raise CertificateError("every example has weight 0")

    @property
    def n(self) -> int:
        """Examples (or groups)."""
        return len(self.facts["losses"]) if "losses" in self.facts else int(self.facts["n"])

    @property
    def value(self) -> float:
        """The observation: the share of errors, the difference of shares, or the mean."""
        facts = self.facts
        if self.kind == "error":
            return facts["errors"] / self.n
        if self.kind == "difference":
            return (facts["first"] - facts["second"]) / self.n
        weights = facts.get("weights", [1] * self.n)
        mean = math.fsum(w * x for w, x in zip(weights, facts["losses"], strict=True)) / math.fsum(weights)
        return 2 * mean - 1 if self.kind in DIFFERENCES else mean

    @cached_property
    def upper(self) -> float:
        """The true value is at most this (rounded up)."""
        if self.kind == "error":
            return limit(self.facts["errors"], self.n, self._log(1))
        if self.kind == "difference":
            return _difference(self.facts, self._log, 1)[1]
        return _mapped(self.kind, upper_mean(self.facts["losses"], self._log(1), self._shares), math.inf)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The true value lies within (rounded outwards)."""
        log = self._log(2)
        if self.kind == "error":
            errors = self.facts["errors"]
            return _lower(errors, self.n, log), limit(errors, self.n, log)
        if self.kind == "difference":
            return _difference(self.facts, self._log, 2)
        losses = self.facts["losses"]
        low = math.nextafter(1 - upper_mean([_complement(loss) for loss in losses], log, self._shares), -math.inf)
        high = upper_mean(losses, log, self._shares)
        return _mapped(self.kind, max(0.0, low), -math.inf), _mapped(self.kind, high, math.inf)

    @property
    def _shares(self) -> tuple[Sequence[float], float] | None:
        """Weights and the largest possible one, where examples have any."""
        return (self.facts["weights"], self.facts["largest"]) if "weights" in self.facts else None

    @property
    def p_value(self) -> float | None:
        """Of a difference: the chance of errors so uneven where both err equally often (exact sign test)."""
        if self.kind != "difference":
            return None
        first, second = self.facts["first"], self.facts["second"]
        tail = 2 * binomial_tail(min(first, second), first + second, arb(0.5)) * self.looks
        return min(1.0, float(tail.upper()) * (1 + 1e-15))

    @property
    def names(self) -> list[str]:
        """Of the predictors, as the evidence has them."""
        both = (self.evidence.get(which) for which in ("first", "second"))
        return [str(record.get("name")) for record in both if isinstance(record, Mapping)]

    @property
    def claim(self) -> str:
        """What is proved, in one sentence."""
        low, high = self.interval
        sure = f"with probability {confidence(self.delta)}"
        if self.kind in DIFFERENCES:
            return f"error of the first less that of the second between {down(low)} and {up(high)}, {sure}"
        what = "error" if self.kind == "error" else "mean loss" if self.kind == "loss" else "weighted mean loss"
        return f"{what} at most {up(self.upper)}, {sure} (between {down(low)} and {up(high)} likewise)"

    def _log(self, sides: int, share: float = 1.0) -> arb:
        """The logarithm of the failure probability of one side."""
        return (arb(self.delta) * arb(share) / (sides * self.looks)).log()

    def to_json(self) -> dict[str, Any]:
        """The certificate, with a digest of all of it: against damage, not against forgery."""
        low, high = self.interval
        body = {
            "format": FORMAT,
            "kind": self.kind,
            "statement": STATEMENTS[self.kind],
            "facts": write(self.facts),
            "delta": self.delta,
            "looks": self.looks,
            "claims": {"upper": self.upper, "interval": [low, high], "p_value": self.p_value},
            "evidence": write(self.evidence),
        }
        return sealed(body)

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file."""
        write_json(path, self.to_json(), force=force)

    @classmethod
    def from_json(cls, data: object) -> Score:
        """A certificate whose claims follow from its facts; all others raise `CertificateError`."""
        names = ("kind", "statement", "facts", "delta", "looks", "claims", "evidence")
        raw = unsealed("a score", data, FORMAT, names)
        score = cls(raw["kind"], raw["facts"], raw["delta"], raw["looks"], raw["evidence"])
        if raw["statement"] != STATEMENTS[score.kind]:
            raise CertificateError(f"a score of the kind {score.kind!r} follows from {STATEMENTS[score.kind]}")
        score.check(raw["claims"])
        return score

    def check(self, claims: object) -> None:
        """Refuse claims that are not what follows from the facts (to a relative 1e-6, outwards)."""
        raw = object_of("claims", claims, ("upper", "interval", "p_value"))
        if not isinstance(raw["interval"], list | tuple) or len(raw["interval"]) != 2:
            raise CertificateError("the claimed interval is a pair of numbers")
        (low, high), p = self.interval, self.p_value
        pairs = [("upper", raw["upper"], self.upper), ("interval", raw["interval"][1], high)]
        pairs.append(("interval", -real("interval", raw["interval"][0]), -low))
        if (p is None) != (raw["p_value"] is None):
            raise CertificateError("a p-value is claimed of a difference, and of nothing else")
        pairs += [] if p is None else [("p_value", raw["p_value"], p)]
        for name, claimed, value in pairs:
            if not value <= real(name, claimed) <= value + 1e-6 * max(abs(value), 1e-9):
                raise CertificateError(f"the claim does not follow: {name} {raw[name]!r}, these facts give {value!r}")


def _lower(errors: int, n: int, log_delta: arb) -> float:
    """Clopper and Pearson's lower limit, rounded down."""
    return 0.0 if errors == 0 else max(0.0, math.nextafter(1 - limit(n - errors, n, log_delta), -math.inf))


def _difference(facts: Mapping[str, Any], log: Callable[[int, float], arb], sides: int) -> tuple[float, float]:
    """Limits of p (2 q - 1) (S2): p is the share of examples on which one alone errs, q of these where it is the first.

    Each limit of each has its part of delta.
    """
    first, second, n = facts["first"], facts["second"], facts["n"]
    one = first + second
    q, p = log(sides, _FRACTION), log(2, 1 - _FRACTION)  # which limit of p counts depends on the sign of 2 q - 1
    often = _lower(one, n, p), limit(one, n, p)
    which = (_lower(first, one, q), limit(first, one, q)) if one else (0.0, 1.0)
    low, high = (math.nextafter(2 * share - 1, way) for share, way in zip(which, (-math.inf, math.inf), strict=True))
    bottom = low * often[low < 0]
    top = high * often[high > 0]
    return max(-1.0, math.nextafter(bottom, -math.inf)), min(1.0, math.nextafter(top, math.inf))


def _complement(loss: float) -> float:
    """At least 1 - loss."""
    return min(1.0, math.nextafter(1 - loss, math.inf)) if loss else 1.0


def _mapped(kind: str, mean: float, way: float) -> float:
    return math.nextafter(2 * mean - 1, way) if kind in DIFFERENCES else mean


def upper_mean(losses: Sequence[float], log_delta: arb, weights: tuple[Sequence[float], float] | None = None) -> float:
    """S3, S4: the least m at which betting against a mean of m or more multiplied its capital by 1 / delta.

    The capital is prod_i (1 + t_i u_i (m - x_i) / (1 - m)), where u_i is a weight divided by the largest possible one
    (1 without weights), and t_i in [0, 0.9] depends on the examples before x_i alone.
    """
    order, needed, n = fixed_order(len(losses)), -log_delta, len(losses)
    x = np.asarray(losses, np.float64)[order]
    weighting, largest = weights or (np.ones(n), 1.0)
    w = np.asarray(weighting, np.float64)[order]
    u = w / largest
    before = np.arange(1, n + 1)
    mean = (0.5 + _sums(u * x)) / (1 + _sums(u))
    spread = (0.25 + _sums((u * (x - mean)) ** 2)) / before
    bets = np.minimum(_BOLDEST, np.sqrt(2 * float(needed) / (n * spread)) * (1 - mean))

    def rich(m: float) -> bool:
        return float(np.log1p(bets * u * (m - x) / (1 - m)).sum()) >= float(needed)

    def certainly(m: float) -> bool:
        capital = arb(1)
        wealth, whole = arb(0), (1 - arb(m)) * arb(largest)
        for t, weight, loss in zip(bets.tolist(), w.tolist(), x.tolist(), strict=True):
            capital *= 1 + arb(t) * arb(weight) * (arb(m) - arb(loss)) / whole
            if not bool(capital < 1e100) or not bool(capital > 1e-100):
                wealth, capital = wealth + capital.log(), arb(1)
        return bool(wealth + capital.log() >= needed)

    top = 1 - 2.0**-40
    if not rich(top):
        return 1.0
    return rounded_up(turn(lambda m: not rich(m), 0.0, top), certainly, step=1e-12)


def _sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of all values before each."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]])
