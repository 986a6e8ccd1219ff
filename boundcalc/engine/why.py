"""Why a bound is what it is, and which single change would help most: `boundcalc eval --why`.

A proof is held (`engine.held`) while the setting changes (`engine.changes`). What is advised is searched and checked again
before it is printed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from boundcalc.base.errors import BoundcalcError
from boundcalc.base.numbers import log_sum
from boundcalc.base.value import VACUOUS_MARGIN
from boundcalc.engine.changes import changers, value_of
from boundcalc.engine.evaluate import Desk
from boundcalc.engine.held import Held, held_certificate, held_link, hold
from boundcalc.engine.proved import BoundValue, Proved
from boundcalc.engine.search import Search
from boundcalc.engine.solve import solve
from boundcalc.formulas.theorems import BOUNDS, Policy
from boundcalc.proof.certificate import Quantity
from boundcalc.setting import Setting
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.premise import no_member
from boundcalc.statements.strategies import STRATEGIES

_STEP = 1.02
_TRIED, _SHOWN = 6, 3
_SECANTS = 6
_FURTHER = (1.0, 1.03, 1.15)
"""Powers of the factor that the search is asked at, until the target is reached."""
_MOST = 60.0
"""Changes by more than e^60 are no advice."""
_UP = ("m", "gamma", "delta")
"""What helps when it grows; everything else helps when it shrinks."""


@dataclass(frozen=True, slots=True)
class Count:
    """One piece at the level that costs most: the log of its log count (natural), and its share."""

    piece: str
    log_count: float
    share: float


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
        strategy: the theorem; of a trivial gap, that of the first link that would say something.
        first_link: whether the numbers are those of that first link, because the least proof is trivial.
        log_count: log of the log count at the level that costs most.
        counts: its pieces, the largest first.
        n_train: m.
        needed: the m that reaches the target, everything else unchanged; None where none up to 10^18 does.
        target: what the changes reach: below 1, or half of the bound (of a risk: of what lies above the training error).
        saturates: whether the bound is a risk that has reached 1 and tells no slope.
        elasticities: d log(bound)/d log(.); where it saturates, of log N/m.
        changes: the single changes of least factor that reach the target, each searched and checked.
    """

    quantity: Quantity
    strategy: str
    first_link: bool
    log_count: float
    counts: tuple[Count, ...]
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
        ten = math.log(10)
        return {
            "quantity": self.quantity,
            "strategy": self.strategy,
            "first_link": self.first_link,
            "log10_count": self.log_count / ten,
            "n_train": self.n_train,
            "n_train_needed": self.needed,
            "target": self.target,
            "pieces": [
                {
                    "piece": c.piece,
                    "log10_count": c.log_count / ten if c.log_count > -math.inf else None,
                    "share": c.share,
                }
                for c in self.counts
            ],
            "saturates": self.saturates,
            "elasticities": dict(self.elasticities),
            "changes": [
                {"what": c.what, "factor": c.factor, "value": c.value, self.quantity: math.exp(min(0.0, c.log_bound))}
                for c in self.changes
            ],
        }


def why(value: BoundValue, desk: Desk) -> list[Why]:
    """The gap's and the risk's account; a quantity that is refused has none."""
    found: list[Why] = []
    if value.by_gap is not None:
        found += _account(value, "gap", desk)
    if value.by_risk is not None and value.risk_refusal is None:
        found += _account(value, "risk", desk)
    return found


def _account(value: BoundValue, quantity: Quantity, desk: Desk) -> list[Why]:
    held = hold(value, quantity, desk)
    if held is None:
        return []
    return [_Account(value, quantity, desk, held).made()]


class _Account:
    """One quantity's account."""

    def __init__(self, value: BoundValue, quantity: Quantity, desk: Desk, held: Held) -> None:
        self.value, self.desk, self.held = value, desk, held
        self.quantity: Quantity = quantity
        self.paid = desk.paid
        self.here = held.counts(self.paid) or []
        self.changers = changers(self.paid)
        self.measure = held.log_value(self.paid) or 0.0
        vacuous = value.of(quantity).says_nothing
        log_bound = 0.0 if vacuous else value.of(quantity).log_value
        floor = self.paid.sample.train_error if quantity == "risk" else 0.0  # no risk bound gets below it
        halved = math.log(floor + max(math.exp(log_bound) - floor, 1e-300) / 2)
        self.log_target = -VACUOUS_MARGIN - 1e-6 if vacuous else halved
        self.saturates = vacuous and quantity == "risk"
        self.steepness = 1.0 if quantity == "gap" or vacuous else self._steepness(math.exp(log_bound))
        self.log_goal = self._goal(vacuous)

    def _steepness(self, risk: float) -> float:
        """The slope of log(risk) in log c, where kl(q|p) = c and the risk is p ."""
        q = self.paid.sample.train_error
        return math.exp(self.measure) * (1 - risk) / (risk - q) if q < risk < 1 else 1.0

    def _goal(self, vacuous: bool) -> float:
        """The held proof's measure that reaches the target."""
        if self.quantity == "gap":
            return self.log_target
        q, target = self.paid.sample.train_error, math.exp(self.log_target)
        if target <= q:
            return -math.inf
        return math.log((1 - q) * math.log((1 - q) / (1 - target)) + (q * math.log(q / target) if q else 0.0))

    def made(self) -> Why:
        """Everything about it."""
        totals = [log_sum(list(each.values())) for each in self.here]
        costly = max(range(len(totals)), key=lambda i: self._weight(i, totals[i]))
        level, total = self.here[costly], totals[costly]
        counts = sorted((Count(key, log, math.exp(log - total)) for key, log in level.items()), key=lambda c: -c.share)
        slopes = self._elasticities()
        needed = self._needed()
        return Why(
            self.quantity,
            self.held.strategy,
            self.held.first_link,
            total,
            tuple(counts),
            self.paid.sample.n_train,
            needed.value if needed is not None else None,
            math.exp(self.log_target),
            self.saturates,
            slopes,
            self._changes(slopes, needed),
        )

    def _weight(self, i: int, total: float) -> float:
        scale = math.log(0.5) if i == 0 else self.held.levels[i - 1].log_scale
        return scale + total / 2

    # -- slopes

    def _elasticities(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name in self.changers:
            slope = self._slope(name)
            if slope is not None:
                found[name] = 0.0 if abs(slope) < 1e-9 else slope * self.steepness
        return found

    def _slope(self, name: str) -> float | None:
        factor = max(_STEP, 1 + 1 / self.paid.sample.n_train) if name == "m" else _STEP
        if name in ("T", "d", "depth"):
            factor = 2.0 if name != "depth" else (self.paid.architecture.depth + 1) / self.paid.architecture.depth
        if name == "delta":
            factor = 1 / _STEP
        for step in (factor, 1 / factor):  # upwards maps may no longer meet (A6), where the proof is another
            there, length = self._held_measure(name, step), self._length(name, step)
            if there is not None and length:
                return (there - self.measure) / length
        there, length = self._measured(name, factor), self._length(name, factor)
        return None if there is None or not length else (there - self.measure) / length

    def _length(self, name: str, factor: float) -> float:
        """By how much a number changes, in logs: sizes are whole."""
        now, before = value_of(self.changers[name](factor), name), value_of(self.paid, name)
        return math.log(factor) if now is None or before is None else math.log(now / before)

    def _held_measure(self, name: str, factor: float) -> float | None:
        try:
            return self.held.log_value(self.changers[name](factor))
        except (BoundcalcError, OverflowError, ValueError):
            return None

    def _measured(self, name: str, factor: float) -> float | None:
        """The held proof's measure after a change; of another depth, the search's own."""
        try:
            changed = self.changers[name](factor)
            found = self.held.log_value(changed)
            return found if found is not None else self._searched(changed)
        except (BoundcalcError, OverflowError, ValueError):
            return None

    def _searched(self, changed: Setting) -> float | None:
        """The measure by a search of the same strategy, where there are other pieces."""
        desk = Desk(changed)
        search = Search(changed, self._policy(), log_union=self.held.log_union, measured=self.desk.measured)
        if self.held.first_link:
            link = search.best_link()
            held = None if link is None else held_link(self.held.policy, link, desk)
        else:
            found = search.gaps() if self.quantity == "gap" else search.risks()
            same = [
                each for each in found if each.certificate.strategy == self.held.strategy and each.certificate.levels
            ]
            best = min(same, key=lambda each: each.log_value, default=None)
            held = None if best is None else held_certificate(best.certificate, desk)
        return None if held is None else replace(held, log_union=self.held.log_union).log_value(changed)

    # -- changes

    def _needed(self) -> Change | None:
        """The m that does, everything else unchanged."""
        setting = self.value.setting
        try:
            found = solve(
                setting,
                "m",
                math.exp(self.log_target),
                bound=self.value.name,
                quantity=self.quantity,
                desk=self.desk,
                alone=True,
            )
        except BoundcalcError:
            return None
        log_bound = found.bound.log10 * math.log(10) if self.quantity == "gap" else found.bound.log_risk
        return Change("m", found.value / setting.sample.n_train, found.value, log_bound)

    def _changes(self, slopes: Mapping[str, float], needed: Change | None) -> tuple[Change, ...]:
        ways: list[tuple[float, str]] = []
        likely = sorted(slopes, key=lambda name: -abs(slopes[name]))
        for name in [name for name in likely if name != "m" and self._helps(name, slopes[name])][:_TRIED]:
            factor = self._reach(name, slopes[name])
            if factor is not None:
                ways.append((abs(math.log(factor)), name))
        found: list[Change] = [] if needed is None else [needed]
        for length, name in sorted(ways):
            better = sorted(abs(math.log(change.factor)) for change in found)[:_SHOWN]
            if len(better) == _SHOWN and better[-1] <= length:
                break
            confirmed = self._confirmed(name, math.exp(length if name in _UP else -length))
            if confirmed is not None:
                found.append(confirmed)
        return tuple(sorted(found, key=lambda change: abs(math.log(change.factor)))[:_SHOWN])

    @staticmethod
    def _helps(name: str, slope: float) -> bool:
        return slope < 0 if name in _UP else slope > 0

    def _reach(self, name: str, slope: float) -> float | None:
        """The factor by which the held proof reaches its goal: secant steps in logs."""
        wanted = self.log_goal - self.measure
        if not self._helps(name, slope) or not -_MOST < wanted < 0:
            return None
        steps = [(0.0, 0.0)]
        length = wanted * self.steepness / slope
        for _ in range(_SECANTS):
            if abs(length) > _MOST or (name == "depth" and length < -math.log(self.paid.architecture.depth)):
                return None
            there = self._measured(name, math.exp(length))
            if there is None:
                return None
            got = there - self.measure
            if wanted * 1.02 - 1e-3 <= got <= wanted:
                return math.exp(length)
            steps.append((length, got))
            (x0, y0), (x1, y1) = sorted(steps, key=lambda step: abs(step[1] - wanted))[:2]
            if y1 == y0:
                return None
            length = x0 + (1.01 * wanted - y0) * (x1 - x0) / (y1 - y0)
        good = [x for x, y in steps if y <= wanted]
        return math.exp(min(good, key=abs)) if good else None

    def _confirmed(self, name: str, factor: float) -> Change | None:
        """The checked bound after a change, if it reaches the target and some network may still have the margin."""
        asked = changers(self.value.setting)[name]  # before budgets were rounded up
        for further in _FURTHER:
            try:
                changed = asked(factor**further)
                proved = self._proved(changed)
            except (BoundcalcError, ArithmeticError, ValueError):
                return None
            if proved is None:
                return None
            if not proved.trivial and proved.log_value <= self.log_target:
                now, before = value_of(changed, name), value_of(self.value.setting, name)
                exact = factor**further if now is None or before is None else now / before
                return Change(name, exact, now, proved.log_value)
        return None

    def _proved(self, changed: Setting) -> Proved | None:
        """The checked bound of a changed setting by the kind of proof that is held; None where it would speak of nobody."""
        desk = Desk(changed)
        if (no_member(desk.paid) if self.quantity == "gap" else desk.risk_refusal) is not None:
            return None
        search = Search(desk.paid, self._policy(), log_union=desk.log_union, measured=desk.measured)
        return desk.prove(list(search.gaps() if self.quantity == "gap" else search.risks()))

    def _policy(self) -> Policy:
        """The policy of the proof; of uniform proofs without the covers that count points, which cannot be part of them."""
        policy = BOUNDS[self.held.policy]
        if not STRATEGIES[self.held.strategy].uniform:
            return policy
        return replace(policy, lemmas=frozenset(name for name in policy.lemmas if LEMMAS[name].uniform))
