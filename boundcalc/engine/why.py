"""Why a bound is what it is, and which single change would help most: `boundcalc eval --why`.

A proof is held while the setting changes (`Checked.moved`); what is advised is searched and checked again before it is
printed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from boundcalc.base.errors import BoundcalcError
from boundcalc.base.intervals import upper_log
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.engine._allocate import slack
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.growth import STEP, changers, value_of
from boundcalc.engine.search import Search
from boundcalc.engine.solve import solve
from boundcalc.proof.breakdown import Part
from boundcalc.proof.certificate import Certificate, Level
from boundcalc.proof.checker import Checked
from boundcalc.setting import Setting
from boundcalc.statements.strategies import STRATEGIES, Chain, Quantity

_TRIED, _SHOWN = 6, 3
_SEARCHES, _CLOSE = 4, 0.03
"""Searches by which a change is found, and how near the target (in logs) is near enough."""
_LARGEST = 60.0
"""Larger changes (in logs) are no advice."""
_UP = ("m", "gamma", "delta")
"""What helps when it grows; everything else helps when it shrinks."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of the setting, by a factor, and the checked bound it gives (log)."""

    what: str
    factor: float
    value: float | None
    log_bound: float


@dataclass(frozen=True, slots=True)
class Why:
    """Why one bound is what it is.

    Attributes:
        quantity: "gap" or "risk".
        strategy: the theorem; of a trivial gap, that of the first link that would give a bound.
        first_link: whether the numbers are those of that first link, because the best proof is trivial.
        log_count: log of the log count at the level that costs most.
        counts: its pieces, the largest first; none where nothing is covered.
        n_train: m.
        needed: the m that reaches the target, everything else unchanged; None where none up to 10^18 does.
        target: what the changes reach: below 1, or half of the bound (of a risk: of what lies above the training
            error).
        saturates: whether the bound is a risk that has reached 1 and has no slope.
        elasticities: d log(bound)/d log(.); where it saturates, of log N/m.
        changes: the single changes of least factor that reach the target, each searched and checked.
    """

    quantity: Quantity
    strategy: str
    first_link: bool
    log_count: float
    counts: tuple[Part, ...]
    n_train: int
    needed: float | None
    target: float
    saturates: bool
    elasticities: Mapping[str, float]
    changes: tuple[Change, ...]

    @property
    def halves(self) -> bool:
        """Whether the target is half of a bound that is below 1 already."""
        return self.target < math.exp(-2 * VACUOUS_MARGIN)

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""

        def log10(log: float) -> float | None:
            return log / math.log(10) if log > -math.inf else None

        return {
            "quantity": self.quantity,
            "strategy": self.strategy,
            "first_link": self.first_link,
            "log10_count": log10(self.log_count),
            "n_train": self.n_train,
            "n_train_needed": self.needed,
            "target": self.target,
            "pieces": [
                {"piece": part.key, "log10_count": log10(upper_log(part.count)), "share": part.share}
                for part in self.counts
            ],
            "saturates": self.saturates,
            "elasticities": dict(self.elasticities),
            "changes": [
                {"what": c.what, "factor": c.factor, "value": c.value, self.quantity: math.exp(min(0.0, c.log_bound))}
                for c in self.changes
            ],
        }


def why(value: BoundValue, evaluator: Evaluator) -> list[Why]:
    """The gap's and the risk's account; a quantity that is refused, or a closed formula, has none."""
    proofs: tuple[tuple[Quantity, object], ...] = (("gap", value.by_gap), ("risk", value.by_risk))
    held: dict[Quantity, Checked | None] = {
        quantity: hold(evaluator, value, quantity) for quantity, proof in proofs if isinstance(proof, Checked)
    }
    return [
        _Account(value, quantity, evaluator, proof).account() for quantity, proof in held.items() if proof is not None
    ]


def hold(evaluator: Evaluator, value: BoundValue, quantity: Quantity) -> Checked | None:
    """The proof of a quantity, or the first link of one that is trivial; None where there is nothing to hold."""
    proof = value.of(quantity)
    if not proof.trivial:
        fixed = replace(proof.certificate, measured=None)  # as norms fixed beforehand, which may change
        if STRATEGIES[fixed.strategy].every_scale:
            return None
        return proof if proof.certificate == fixed else evaluator.check(fixed)
    return _first_link(evaluator, evaluator.search(value.name))


def _first_link(evaluator: Evaluator, search: Search) -> Checked | None:
    point = search.best_link()
    if point is None:
        return None
    level = Level(point.log_scale + slack(point.items), point.covers())
    return evaluator.check(Certificate(evaluator.paid, search.policy.name, Chain.name, (level,)))


class _Account:
    """One quantity's account."""

    def __init__(self, value: BoundValue, quantity: Quantity, evaluator: Evaluator, held: Checked) -> None:
        self.value, self.evaluator, self.held = value, evaluator, held
        self.quantity: Quantity = quantity
        self.changers = changers(evaluator.paid)
        bound = value.of(quantity)
        self.first_link, vacuous, log_bound = bound.trivial, bound.vacuous, bound.log_value
        q = evaluator.paid.sample.train_error if quantity == "risk" else 0.0  # no risk bound gets below it
        halved = math.log(q + max(math.exp(min(log_bound, 0.0)) - q, 1e-300) / 2)
        self.log_target = -VACUOUS_MARGIN - 1e-6 if vacuous else halved
        self.saturates, self.log_goal = vacuous and quantity == "risk", self.log_target
        if self.saturates:  # the log rate at which a risk reaches its target, as the kl inverse gives it
            target = math.exp(self.log_target)
            rate = (1 - q) * math.log((1 - q) / (1 - target)) + (q * math.log(q / target) if q else 0.0)
            self.log_goal = math.log(rate)
        self.measure = self._measure_of(held)

    def _measure_of(self, proof: Checked) -> float:
        """Log of what the proof gives; where a risk saturates, of (log N + log 1/delta)/m."""
        return proof.log_rate if self.saturates else proof.bounding(self.quantity).log_value

    def account(self) -> Why:
        """Everything about it."""
        level = max(self.held.breakdown.levels, key=lambda level: upper_log(level.count), default=None)
        counts = sorted(() if level is None else level.parts, key=lambda part: -part.share)
        slopes = {name: slope for name in self.changers if (slope := self._slope(name)) is not None}
        needed = self._needed()
        return Why(
            self.quantity,
            self.held.certificate.strategy,
            self.first_link,
            -math.inf if level is None else upper_log(level.count),
            tuple(counts),
            self.evaluator.paid.sample.n_train,
            needed.value if needed is not None else None,
            math.exp(self.log_target),
            self.saturates,
            slopes,
            self._changes(slopes, needed),
        )

    # -- proofs of changed settings

    def _at(self, name: str, factor: float) -> Checked | None:
        """The held proof after a change; a new one where other blocks or norms of K2 need it; None where none is."""
        try:
            changed = self.changers[name](factor)
            if name != "depth" and not (self.held.certificate.tuning is not None and "norm" in name):
                return self.held.moved(changed)
            evaluator = Evaluator(changed)
            search = evaluator.search(self.held.certificate.policy)
            proof = _first_link(evaluator, search) if self.first_link else self._proved(evaluator, search)
        except (BoundcalcError, ArithmeticError, ValueError):
            return None
        alike = proof is not None and proof.certificate.strategy == self.held.certificate.strategy
        return proof if alike else None

    def _proved(self, evaluator: Evaluator, search: Search) -> Checked:
        """The proof by the search of the policy that is held, where K2 has one by that theorem."""
        certificate = self.held.certificate
        find = search.candidates if certificate.tuning is None else search.coverless
        return evaluator.prove(find(certificate.quantity))

    def _slope(self, name: str) -> float | None:
        """Of the side on which it is smaller: on the other one the proof may be another (a ball acts, maps part)."""
        paid = self.evaluator.paid
        factor = {"T": 2.0, "d": 2.0, "depth": 1 + 1 / paid.architecture.depth, "delta": 1 / STEP}.get(name, STEP)
        if name == "m":
            factor = max(factor, 1 + 1 / paid.sample.n_train)
        slopes: list[float] = []
        for step in (factor, 1 / factor):
            there = self._at(name, step)
            if there is not None and (length := math.log(self._changed(name, step, there.certificate.setting)[0])):
                slopes.append((self._measure_of(there) - self.measure) / length)
        slope = min(slopes, key=abs, default=None)
        return 0.0 if slope is not None and abs(slope) < 1e-9 else slope

    def _changed(self, name: str, factor: float, there: Setting) -> tuple[float, float | None]:
        """By which factor a number changed, and what it is now: sizes are whole."""
        now, before = value_of(there, name), value_of(self.evaluator.paid, name)
        return (factor if now is None or before is None else now / before), now

    # -- changes

    def _needed(self) -> Change | None:
        """The m that does, everything else unchanged."""
        setting, name, target = self.value.setting, self.value.name, math.exp(self.log_target)
        about: dict[str, Any] = {"quantity": self.quantity, "evaluator": self.evaluator, "alone": True}
        try:
            solution = solve(setting, "m", target, bound=name, **about)
        except BoundcalcError:
            return None
        log_bound = solution.bound.of(self.quantity).log_value
        return Change("m", solution.value / setting.sample.n_train, solution.value, log_bound)

    def _changes(self, slopes: Mapping[str, float], needed: Change | None) -> tuple[Change, ...]:
        likely = sorted(slopes, key=lambda name: -abs(slopes[name]))
        helping = [name for name in likely if name != "m" and (slopes[name] < 0 if name in _UP else slopes[name] > 0)]
        ways = [(abs((self.log_goal - self.measure) / slopes[name]), name) for name in helping[:_TRIED]]
        changes: list[Change] = [] if needed is None else [needed]
        for length, name in sorted(ways):
            better = sorted(abs(math.log(change.factor)) for change in changes)[:_SHOWN]
            if len(better) == _SHOWN and better[-1] <= length:
                break
            if length < _LARGEST and (change := self._reaching(name, length)) is not None:
                changes.append(change)
        return tuple(sorted(changes, key=lambda change: abs(math.log(change.factor)))[:_SHOWN])

    def _reaching(self, name: str, length: float) -> Change | None:
        """A change that is searched and checked to reach the target, by about so much (in logs), by secants."""
        changer, best = changers(self.value.setting)[name], None  # before budgets were rounded up
        sign = 1 if name in _UP else -1
        most = math.log(self.evaluator.paid.architecture.depth) if name == "depth" else _LARGEST
        for _ in range(_SEARCHES):
            if length > most:
                break
            try:
                evaluator = Evaluator(changed := changer(math.exp(sign * length)))
                proof = self._proved(evaluator, evaluator.search(self.held.certificate.policy))
            except (BoundcalcError, ArithmeticError, ValueError):
                break
            there = proof.bounding(self.quantity).log_value
            if not proof.trivial and there <= self.log_target:
                if evaluator.risk_refusal is not None:  # no network has the margin so far away
                    break
                best = Change(name, *self._changed(name, math.exp(sign * length), changed), there)
                if there > self.log_target - _CLOSE:
                    break
            slope = (self._measure_of(proof) - self.measure) / length
            length *= 1.15 if slope >= 0 else max(0.5, min(2.0, (self.log_goal - self.measure) / slope / length + 0.01))
        return best
