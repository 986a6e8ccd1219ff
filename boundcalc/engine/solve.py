"""`solve`: how many samples are needed, how long a sequence or how large a norm is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from boundcalc.base.errors import InvalidSetting, NoSolution, Refusal, Unsupported
from boundcalc.base.rounding import up
from boundcalc.base.validate import choice
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.crossing import Axis, Crossing
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.growth import value_of
from boundcalc.engine.search import Candidate, Search
from boundcalc.engine.witness import no_witness
from boundcalc.setting import Setting
from boundcalc.statements.premise import margin_on_both_labels, no_member
from boundcalc.statements.strategies import Quantity
from boundcalc.theorems import known_bound

_Variable = Literal["m", "T", "C", "depth", "gamma", "delta", "n_train", "seq_len", "margin"]

_AXES: dict[str, Axis] = {
    "m": Axis("n_train", 1, 1e18, True, True),
    "T": Axis("seq_len", 1, 1e18, True, False),
    "C": Axis("C", 1e-9, 1e9, False, False),
    "depth": Axis("depth", 1, 1024, True, False, math.log(4)),
    "gamma": Axis("margin", 1e-12, 1e12, False, True),
    "delta": Axis("delta", 1e-300, 1 - 1e-12, False, True),
}
"""What can be solved for: the least m, gamma or delta, the greatest T, C or depth; where a network may have the
margin."""
_CONFIRMATIONS = 60
_LOOKS = 4
"""Times that a part of the search narrows a range before all of it does at every step."""
_STEP, _SHORT_STEP = 0.3, 0.03
"""The shortest first steps outward (log), and where a cheaper search ended."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The extreme value of a variable at which a bound still meets its target, and a checked bound there.

    `at_end`: the value is the end of the range searched; the bound there need not be the least then.
    `none_beyond`: the range ends there because no network beyond it has the margin.
    `some_between_miss`: not every value of the range meets the target.
    """

    variable: str
    target: float
    quantity: Quantity
    value: float
    bound: BoundValue
    at_end: bool = False
    none_beyond: bool = False
    some_between_miss: bool = False

    @property
    def direction(self) -> str:
        """Whether the value is the smallest or the largest."""
        return "smallest" if _AXES[self.variable].more_helps else "largest"


def solve(
    setting: Setting,
    variable: _Variable,
    target: float,
    *,
    bound: str = "best",
    quantity: Quantity = "gap",
    digits: int = 4,
    evaluator: Evaluator | None = None,
    alone: bool = False,
) -> Solution:
    """The smallest m, gamma or delta (the largest T, C or depth) whose checked bound is at most the target.

    Args:
        setting: what stays the same.
        variable: "m", "gamma", "delta", "T", "C" or "depth".
        target: what the bound may be at most, between 0 and 1.
        bound: a policy or a theorem.
        quantity: "gap" or "risk".
        digits: how many digits are found.
        evaluator: one made for the setting, to start from what was found at it.
        alone: leave the other quantity at what follows from the requested one.

    Returns:
        The value, rounded to the safe side, and the bound checked there.

    Raises:
        NoSolution: when even the end of the range is not enough.
    """
    variable = choice("variable", variable, _AXES)  # type: ignore[assignment]
    axis = _AXES[variable]
    choice("quantity", quantity, ("gap", "risk"))
    if not 0 < target < 1:
        raise InvalidSetting(f"target must lie in (0, 1), got {target!r}")
    setting.refuse_symbols()

    q = setting.sample.train_error
    if quantity == "risk" and q >= target:
        raise NoSolution(
            f"no {variable} gives a risk of at most {target:g}: every bound of it is above the train error, here {q:g}"
        )
    if quantity == "risk" or variable not in ("m", "delta"):  # a gap bound has no premise that m or delta could change
        axis = _with_members(setting, variable, axis, quantity)
    log_target = math.log(target)
    trial = _Trials(setting, variable, bound, quantity, log_target, evaluator, alone)
    search = Crossing(axis, digits)
    none_beyond = search.hard not in (_AXES[variable].low, _AXES[variable].high)
    # Where layers shrink what they are given, down to no margin at all, a bound rises with depth and then falls.
    falls_again = variable == "depth" and none_beyond and trial.meets(search.hard)
    start = _start(setting, variable)
    x = search.hard if falls_again else trial.narrowed(search, start)
    if x is None:
        value = trial.checked(search.easy)
        reached = "one that is trivial"
        if not value.of(quantity).trivial:
            reached = up(value.gap if quantity == "gap" else value.risk)
        raise NoSolution(
            f"no {variable} gives a {quantity} of at most {target:g}: "
            f"even {variable} = {search.easy:.12g} gives {reached} (bound {bound!r})"
        )
    for _ in range(_CONFIRMATIONS):
        value = trial.checked(x)
        if not value.of(quantity).trivial and value.of(quantity).log_value <= log_target:
            if x != search.hard:
                return Solution(variable, target, quantity, x, value)
            return Solution(variable, target, quantity, x, value, True, none_beyond, trial.narrowed(search, start) != x)
        x = search.safer(x)
    raise NoSolution(f"no {variable} was confirmed near {x:g}: the bound is not monotone there")


_TRIES, _PREMISE_DIGITS = 40, 10
"""Values tried for a network with the margin; digits to which its range is narrowed."""


def _with_members(setting: Setting, variable: str, axis: Axis, quantity: Quantity) -> Axis:
    """The part of an axis on which some network may have a margin above gamma (G0e), or, for a risk, one is built."""

    def at(x: float) -> Refusal | None:
        changed = _change(setting, variable, axis, x)
        if quantity == "gap":
            return no_member(changed)
        return no_witness(changed, measured=bool(changed.sample.measured))

    if variable in ("m", "delta"):
        refusal = at(axis.low)
        if refusal is not None:
            raise NoSolution(str(refusal))
        return axis
    low, high = axis.low, axis.high
    inside = _start(setting, variable)
    if at(inside) is not None:
        tries = round(math.log2(high / low)) if axis.whole else _TRIES
        steps = (low * (high / low) ** (i / tries) for i in range(tries + 1))
        inside = next((x for x in steps if at(round(x) if axis.whole else x) is None), 0.0)
        if not inside:
            most = max((low, high), key=lambda x: float(margin_on_both_labels(_change(setting, variable, axis, x))))
            where = "" if variable == "gamma" else f" (at {variable} {most:g})"
            raise NoSolution(f"at no {variable} from {low:g} to {high:g} has any network the margin: {at(most)}{where}")
    return axis._replace(low=_end(at, inside, low, axis), high=_end(at, inside, high, axis))


def _end(at: Callable[[float], Refusal | None], inside: float, end: float, axis: Axis) -> float:
    """The place nearest an end of an axis, from inside, at which some network may have the margin."""
    if inside == end or at(end) is None:
        return end
    between = axis._replace(low=min(inside, end), high=max(inside, end), more_helps=end < inside)
    nearest = Crossing(between, _PREMISE_DIGITS).run(inside, lambda x: -1.0 if at(x) is None else 1.0)
    return inside if nearest is None else nearest


def _least(
    gaps: Iterable[Candidate], risks: Iterable[Candidate], setting: Setting, quantity: str
) -> tuple[float, str | None]:
    """Log of the value a search expects, and by which strategy; 0 by none where the gap is trivial."""
    ranked = sorted(gaps, key=lambda candidate: candidate.log_value)
    best = next(((gap.log_value, gap.strategy) for gap in ranked if not gap.certificate.trivial), None)
    least = best or (0.0, None)
    if quantity == "gap":
        return least
    plain = math.log(math.exp(min(least[0], 0.0)) + setting.sample.train_error)
    return min([(plain, least[1]), *((risk.log_value, risk.strategy) for risk in risks)], key=lambda pair: pair[0])


class _Trials:
    """What a search expects at other values of a variable; only the last is checked.

    Other numbers of samples share the allocations of one: only the chain is found anew.
    """

    def __init__(
        self,
        setting: Setting,
        variable: str,
        bound: str,
        quantity: Quantity,
        log_target: float,
        evaluator: Evaluator | None,
        alone: bool,
    ) -> None:
        self.setting, self.variable, self.bound, self.alone = setting, variable, known_bound(bound), alone
        self.quantity: Quantity = quantity
        self.log_target = log_target
        self._samples = (evaluator or Evaluator(setting)) if variable == "m" else None
        self._evaluators: dict[float, Evaluator] = {}
        self._expected: dict[tuple[float, str | None], tuple[float, str | None]] = {}

    def narrowed(self, search: Crossing, start: float) -> float | None:
        """The value nearest the hard end at which the search meets the target.

        A part of the search narrows the range: for m its best strategy, else the policy's own search. All that the
        policy may draw on is asked one digit farther.
        """
        x, step = start, _STEP
        part = "own" if self._samples is None else self._expect(start, None)[1]
        for _ in range(_LOOKS):
            near = None if part is None else search.run(x, lambda x, part=part: self._miss(x, part), step)
            if near is None:
                break
            x, before = search.harder(near), part
            log_value, strategy = self._expect(x, None)
            if x == near or log_value > self.log_target:
                return near
            part, step = strategy if self._samples is not None else before, _SHORT_STEP
            if part == before:
                break
        return search.run(x, self._miss, step)

    def meets(self, x: float) -> bool:
        """Whether the search meets the target at a value."""
        return self._miss(x) <= 0

    def _miss(self, x: float, part: str | None = None) -> float:
        return self._expect(x, part)[0] - self.log_target

    def _expect(self, x: float, part: str | None) -> tuple[float, str | None]:
        """Log of the value that a part of the search, or all of it, expects, and by which strategy."""
        key = (x, part)
        if key not in self._expected:
            risks = list(self._candidates(x, "risk", part)) if self.quantity == "risk" else []
            enough = any(risk.log_value <= self.log_target for risk in risks)  # what the gap gives would change nothing
            gaps = () if enough else self._candidates(x, "gap", part)
            self._expected[key] = _least(gaps, risks, self.setting, self.quantity)
        return self._expected[key]

    def _candidates(self, x: float, quantity: Quantity, part: str | None) -> Iterable[Candidate]:
        if self._samples is None:
            return self._evaluator(x).candidates(self.bound, quantity, alone=part is not None)
        search = self._search(x)
        return search.gaps(part) if quantity == "gap" else search.risks(part)

    def _evaluator(self, x: float) -> Evaluator:
        if x not in self._evaluators:
            self._evaluators[x] = Evaluator(self._at(x))
        return self._evaluators[x]

    def _search(self, x: float) -> Search:
        assert self._samples is not None  # noqa: S101 - only of trials of m
        return self._samples.search(self.bound).with_samples(round(x))

    def checked(self, x: float) -> BoundValue:
        """The checked bound."""
        if self._samples is not None:
            risks = self.quantity == "risk" or not self.alone
            return self._samples.value_of(self.bound, self._search(x), self._at(x), risks=risks)
        value = self._evaluator(x).value(self.bound)
        if value.refusal is not None:
            raise Unsupported(value.refusal)
        return value

    def _at(self, x: float) -> Setting:
        return _change(self.setting, self.variable, _AXES[self.variable], x)


def _start(setting: Setting, variable: str) -> float:
    return (setting.norms.C or 1.0) if variable == "C" else float(value_of(setting, variable) or 1.0)


def _change(setting: Setting, variable: str, axis: Axis, x: float) -> Setting:
    if variable == "C" and setting.norms.budgets:
        raise InvalidSetting("C can be solved for only where it is the one norm: the norms file gives others")
    if variable == "depth" and setting.architecture.layers is not None:
        raise InvalidSetting("depth cannot be solved for where the layers are listed one by one")
    if variable == "C":
        return setting.but(C=x)
    values: dict[str, Any] = {axis.field: round(x) if axis.whole else x}
    return setting.but(**values)
