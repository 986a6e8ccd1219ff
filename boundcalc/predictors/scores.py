"""Scores of fixed predictors with a guarantee: an error, a difference on the same examples, a mean loss.

Each is a certificate that holds its facts, and is computed again from them in ball arithmetic (docs/certificates.md, S1
to S4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from flint import arb
from numpy.typing import NDArray

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.intervals import upper_float
from boundcalc.base.output import write_json
from boundcalc.base.rounding import confidence, down, up
from boundcalc.base.schema import ClosedShare, Count, Length, Share, Size, check_fields, write
from boundcalc.predictors._statements import ErrorCount, binomial_tail, limit, read_as, root, rounded_up
from boundcalc.predictors.certificate import of_format
from boundcalc.predictors.data import fixed_order

_FORMAT = "boundcalc-score/3"
_FRACTION = 0.8
"""Of delta, what S2 spends on which of the two errs where one does; the rest goes to how often."""
_BOLDEST = 0.9
"""The largest share of its capital that S3 puts on one example."""


@dataclass(frozen=True)
class _Errors(ErrorCount):
    statement: ClassVar[str] = "S1"

    @property
    def value(self) -> float:
        return self.errors / self.n

    @property
    def complement(self) -> _Errors:
        return _Errors(self.n - self.errors, self.n)

    def high(self, delta: arb, sides: int) -> float:
        """An upper limit, rounded up, that fails with a side's part of delta (Clopper and Pearson)."""
        return limit(self.errors, self.n, (delta / sides).log())


@dataclass(frozen=True)
class _Pairs:
    first: Count
    second: Count
    n: Size
    statement: ClassVar[str] = "S2"

    def __post_init__(self) -> None:
        _Errors(self.first + self.second, self.n)

    @property
    def value(self) -> float:
        return (self.first - self.second) / self.n

    @property
    def complement(self) -> _Pairs:
        return _Pairs(self.second, self.first, self.n)

    def high(self, delta: arb, sides: int) -> float:
        """Of p (2 q - 1): one alone errs with probability p, and then with q it is the first."""
        one = _Errors(self.first + self.second, self.n)
        q = _Errors(self.first, one.errors).high(delta * arb(_FRACTION), sides) if one.errors else 1.0
        top, rest = math.nextafter(2 * q - 1, math.inf), delta * arb(1 - _FRACTION)
        p = one.high(rest, 2) if top > 0 else _one_less(one.complement.high(rest, 2))
        return min(1.0, math.nextafter(top * p, math.inf))


@dataclass(frozen=True)
class _Losses:
    losses: tuple[ClosedShare, ...]
    weights: tuple[Length, ...] = ()
    largest: Length = 0.0

    def __post_init__(self) -> None:
        if not self.losses:
            raise InvalidSetting("losses are one an example, and at least one")
        whole = len(self.weights) == self.n and any(self.weights) and max(self.weights) <= self.largest
        if not whole and (self.weights or self.largest):
            raise InvalidSetting(f"weights are one an example, at most {self.largest:g}, and one at least above 0")

    @property
    def statement(self) -> str:
        return "S4" if self.weights else "S3"

    @property
    def n(self) -> int:
        return len(self.losses)

    @property
    def value(self) -> float:
        return float(np.average(self.losses, weights=self.weights or None))

    @property
    def complement(self) -> _Losses:
        """Losses of 1 less these, rounded up."""
        others = tuple(min(1.0, math.nextafter(1 - loss, math.inf)) if loss else 1.0 for loss in self.losses)
        return replace(self, losses=others)

    def high(self, delta: arb, sides: int) -> float:
        """S3, S4: the least m at which betting against a mean of m or more multiplied its capital by sides / delta.

        The capital is prod_i (1 + t_i u_i (m - x_i) / (1 - m)), where u_i is a weight divided by the largest possible
        one, and t_i in [0, 0.9] depends on the examples before x_i alone.
        """
        order, needed, n, largest = fixed_order(self.n), (sides / delta).log(), self.n, self.largest or 1.0
        x = np.asarray(self.losses, np.float64)[order]
        w = np.asarray(self.weights, np.float64)[order] if self.weights else np.ones(n)
        u = w / largest
        mean = (0.5 + _sums(u * x)) / (1 + _sums(u))
        spread = (0.25 + _sums((u * (x - mean)) ** 2)) / np.arange(1, n + 1)
        bets = np.minimum(_BOLDEST, np.sqrt(2 * float(needed) / (n * spread)) * (1 - mean))

        def lacking(m: float) -> float:
            return float(needed) - float(np.log1p(bets * u * (m - x) / (1 - m)).sum())

        def certainly(m: float) -> bool:
            at, scale, capital = arb(m), 1 / ((1 - arb(m)) * arb(largest)), arb(1)  # its exponent has no end
            for t, v, loss in zip(bets.tolist(), w.tolist(), x.tolist(), strict=True):
                capital *= 1 + (at - loss) * t * v * scale
            return bool(capital.log() >= needed)

        return rounded_up(root(lacking, 0.0), certainly, step=1e-12)


def _sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of all values before each."""
    return np.concatenate([[0.0], np.cumsum(values)[:-1]])


def _one_less(share: float) -> float:
    """1 less a share, rounded down."""
    return max(0.0, math.nextafter(1 - share, -math.inf))


_KINDS: Mapping[str, type] = {"error": _Errors, "difference": _Pairs, "loss": _Losses, "graded difference": _Losses}


@dataclass(frozen=True)
class _Claims:
    statement: str
    upper: float
    interval: tuple[float, float]
    p_value: float | None

    def exceed(self, least: _Claims) -> bool:
        """Whether they are wider than the least that can be claimed, by a relative 1e-6 at most."""
        if (self.statement, self.p_value is None) != (least.statement, least.p_value is None):
            return False
        pairs = [(self.upper, least.upper), (self.interval[1], least.interval[1])]
        pairs += [(-self.interval[0], -least.interval[0]), (self.p_value or 0.0, least.p_value or 0.0)]
        return all(value <= claimed <= value + 1e-6 * max(abs(value), 1e-9) for claimed, value in pairs)


@dataclass(frozen=True)
class Score:
    """An interval of the true value, with probability at least 1 - delta, and an upper limit that holds as often.

    Attributes:
        kind: "error" (of one predictor), "difference" (error of the first less that of the second), "loss" (a mean of
            losses in [0, 1]) or "graded difference" (of two such losses).
        facts: "errors" of "n"; "first", "second" and "n": how often the first alone errs, the second alone, of how
            many; or "losses", one an example (of a difference (1 + difference) / 2), perhaps with "weights" and the
            "largest" possible one.
        delta: failure probability of each claim by itself.
        looks: how many scores share delta: models, data sets or looks fixed beforehand.
        evidence: names of predictors and data, with their digests.
    """

    kind: Literal["error", "difference", "loss", "graded difference"]
    facts: Mapping[str, Any]
    delta: Share = 0.05
    looks: Size = 1
    evidence: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        check_fields(self)
        _ = self._facts

    @cached_property
    def _facts(self) -> Any:
        form = _KINDS[self.kind]
        absent = {"weights": [], "largest": 0.0} if form is _Losses else {}
        return read_as(form, f"facts of the kind {self.kind!r}", absent | dict(self.facts))

    @property
    def statement(self) -> str:
        """What it follows from."""
        return self._facts.statement

    @property
    def compares(self) -> bool:
        """Whether it compares two predictors."""
        return self.kind.endswith("difference")

    @property
    def n(self) -> int:
        """Examples (or groups)."""
        return self._facts.n

    @property
    def value(self) -> float:
        """The observation: the share of errors, the difference of shares, or the mean."""
        return 2 * self._facts.value - 1 if self.kind == "graded difference" else self._facts.value

    @cached_property
    def upper(self) -> float:
        """The true value is at most this (rounded up)."""
        return self._high(self._facts, 1)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """The true value lies within (rounded outwards)."""
        high, other = (self._high(facts, 2) for facts in (self._facts, self._facts.complement))
        return -other if self.compares else _one_less(other), high

    def _high(self, facts: Any, sides: int) -> float:
        mean = facts.high(arb(self.delta) / self.looks, sides)
        return math.nextafter(2 * mean - 1, math.inf) if self.kind == "graded difference" else mean

    @property
    def p_value(self) -> float | None:
        """Of a difference: the chance of errors so uneven where both err equally often (exact sign test)."""
        if self.kind != "difference":
            return None
        first, second = self._facts.first, self._facts.second
        tail = 2 * binomial_tail(min(first, second), first + second, arb(0.5)) * self.looks
        return min(1.0, upper_float(tail))

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
        if self.compares:
            return f"error of the first less that of the second between {down(low)} and {up(high)}, {sure}"
        what = "error" if self.kind == "error" else f"{'weighted ' * ('weights' in self.facts)}mean loss"
        return f"{what} at most {up(self.upper)}, {sure} (between {down(low)} and {up(high)} likewise)"

    @property
    def _claims(self) -> _Claims:
        return _Claims(self.statement, self.upper, self.interval, self.p_value)

    def to_json(self) -> dict[str, Any]:
        """The certificate."""
        return {"format": _FORMAT, "claims": write(self._claims, complete=True), **write(self, complete=True)}

    def save(self, path: Path | str, *, force: bool = False) -> None:
        """Write the JSON file."""
        write_json(path, self.to_json(), force=force)

    @classmethod
    def from_json(cls, data: object) -> Score:
        """A certificate whose claims follow from its facts; all others raise `CertificateError`."""
        raw = of_format("a score", data, _FORMAT)
        claims = read_as(_Claims, "claims", raw.pop("claims", None))
        score = read_as(cls, "a score", raw)
        if not claims.exceed(score._claims):
            raise CertificateError(f"the claim does not follow: {claims} is claimed, these facts give {score._claims}")
        return score
