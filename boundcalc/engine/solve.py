"""`solve`: how many samples are needed, how long a sequence or how large a norm is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

from boundcalc.base.errors import InvalidSetting, NoSolution, Refusal
from boundcalc.base.rounding import up
from boundcalc.base.validate import choice
from boundcalc.engine._witness import no_witness
from boundcalc.engine.bound import BoundValue
from boundcalc.engine.evaluate import Evaluator
from boundcalc.engine.growth import value_of
from boundcalc.engine.search import Search
from boundcalc.setting import Setting
from boundcalc.statements.premise import margin_on_both_labels, no_member
from boundcalc.statements.strategies import Quantity
from boundcalc.theorems import known_bound

_Variable = Literal["m", "T", "C", "depth", "gamma", "delta", "n_train", "seq_len", "margin"]

_STEPS, _FIRST_STEP = 60, 0.3
_STRETCH = 1.2
"""How much longer each further step outward is: where a bound hardly moves, the end of the range is still reached."""
_TRIES = 40
"""Values tried for a network with the margin."""


class Axis(NamedTuple):
    """A variable one can solve for.

    Attributes:
        field: its name in `Setting.but`.
        low: where to look.
        high: the same.
        whole: whether its values are whole numbers.
        more_helps: whether more of it makes bounds smaller.
        stride: the longest step, in logs, where a trial costs more the farther out it is.
        digits: how many digits are found.
    """

    field: str
    low: float
    high: float
    whole: bool
    more_helps: bool
    stride: float = math.inf
    digits: int = 4

    @property
    def easy(self) -> float:
        """The end at which bounds are smallest."""
        return self.high if self.more_helps else self.low

    @property
    def hard(self) -> float:
        """The other end."""
        return self.low if self.more_helps else self.high

    def ending(self, easy: float | None = None, hard: float | None = None) -> Axis:
        """The same with other ends."""
        ends = (self.easy if easy is None else easy, self.hard if hard is None else hard)
        return self._replace(low=min(ends), high=max(ends))

    def unit(self, x: float) -> float:
        """The last digit requested (at least 1 for whole numbers)."""
        unit = 10.0 ** (math.floor(math.log10(x)) - self.digits + 1)
        return max(1.0, unit) if self.whole else unit

    def rounded(self, x: float) -> float:
        """The nearest value with so many digits."""
        unit = self.unit(x)
        return min(max(float(f"{round(x / unit) * unit:.15g}"), self.low), self.high)

    def next(self, x: float, end: float) -> float:
        """One last digit towards an end."""
        return self.rounded(x + math.copysign(self.unit(x), end - x)) if x != end else x

    def crossing(self, start: float, miss_at: Callable[[float], float]) -> float | None:
        """The value nearest the hard end that does not miss; None where all miss.

        `miss_at` is a monotone function of log x, above 0 where a value misses: steps outward widen, then narrow.
        """
        x = self.rounded(min(max(start, self.low), self.high))
        miss = miss_at(x)
        end = self.easy if miss > 0 else self.hard
        for i in range(_STEPS):
            if x == end:
                break
            length = min((_FIRST_STEP + 2.2 * min(abs(miss), 40.0)) * _STRETCH**i, self.stride)
            log_new = math.log(x) + math.copysign(length, end - x)
            beyond = (log_new - math.log(end)) * (end - x) >= 0
            new = end if beyond else self.rounded(math.exp(log_new))
            new = self.next(x, end) if new == x else new
            there = miss_at(new)
            if (there > 0) != (miss > 0):
                good, bad = ((new, there), (x, miss)) if there <= 0 else ((x, miss), (new, there))
                return self._narrowed(good, bad, miss_at)
            x, miss = new, there
        return None if miss > 0 else x

    def _narrowed(
        self, good: tuple[float, float], bad: tuple[float, float], miss_at: Callable[[float], float]
    ) -> float:
        """By the Illinois rule: an end that stays twice is trusted less."""
        (x, low), (y, high) = good, bad
        before: bool | None = None
        for _ in range(_STEPS):
            if abs(x - y) <= self.unit(x) * 1.01:
                break
            share = high / (high - low) if low < 0 else 0.5
            middle = self.rounded(math.exp(math.log(y) + min(0.95, max(0.05, share)) * math.log(x / y)))
            for end, other in ((x, y), (y, x)):  # strictly between them
                middle = self.next(end, other) if abs(middle - end) < 0.5 * self.unit(end) else middle
            if middle in (x, y):
                break
            miss = miss_at(middle)
            met = miss <= 0
            if met:
                x, low, high = middle, miss, high / 2 if before is met else high
            else:
                y, high, low = middle, miss, low / 2 if before is met else low
            before = met
        return x


_AXES: dict[str, Axis] = {
    "m": Axis("n_train", 1.0, 1e18, True, True),
    "T": Axis("seq_len", 1.0, 1e18, True, False),
    "C": Axis("C", 1e-9, 1e9, False, False),
    "depth": Axis("depth", 1.0, 1024.0, True, False, math.log(4)),
    "gamma": Axis("margin", 1e-12, 1e12, False, True),
    "delta": Axis("delta", 1e-300, 1 - 1e-12, False, True),
}
"""What can be solved for: the least m, gamma or delta, the greatest T, C or depth."""


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
    choice("quantity", quantity, ("gap", "risk"))
    if not 0 < target < 1:
        raise InvalidSetting(f"target must lie in (0, 1), got {target!r}")
    setting.refuse_symbols()
    q = setting.sample.train_error
    if quantity == "risk" and q >= target:
        raise NoSolution(
            f"no {variable} gives a risk of at most {target:g}: every bound of it is above the train error, here {q:g}"
        )
    trials = _Trials(setting, variable, bound, quantity, math.log(target), evaluator)
    full = axis = trials.axis._replace(digits=digits)
    start = trials.start()
    if trials.premise and trials.miss(start) > 0:
        axis = axis.ending(easy=trials.end(start, axis.easy))
    # Where layers shrink what they are given, down to no margin at all, a bound rises with depth and then falls.
    if variable == "depth" and no_member(trials.at(axis.hard)) is not None:
        axis = axis.ending(hard=trials.end(start, axis.hard))
    falls_again = axis.hard != full.hard and trials.miss(axis.hard) <= 0
    x = axis.hard if falls_again else axis.crossing(start, trials.miss)
    if x is None:
        value = trials.checked(axis.easy, alone)
        reached = "one that is trivial"
        if not value.of(quantity).trivial:
            reached = up(value.gap if quantity == "gap" else value.risk)
        raise NoSolution(
            f"no {variable} gives a {quantity} of at most {target:g}: "
            f"even {variable} = {axis.easy:.12g} gives {reached} (bound {bound!r})"
        )
    for _ in range(_STEPS):
        value = trials.checked(x, alone)
        if not value.of(quantity).trivial and value.of(quantity).log_value <= trials.log_target:
            none_beyond = x != full.hard and trials.refusal(full.next(x, full.hard)) is not None
            between = falls_again and axis.crossing(start, trials.miss) != x
            return Solution(variable, target, quantity, x, value, none_beyond or x == full.hard, none_beyond, between)
        x = axis.next(x, axis.easy)
    raise NoSolution(f"no {variable} was confirmed near {x:g}: the bound is not monotone there")


class _Trials:
    """What a policy's own search expects at other values of a variable; only the last is checked.

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
    ) -> None:
        self.setting, self.variable, self.axis = setting, variable, _AXES[variable]
        self.bound, self.log_target = known_bound(bound), log_target
        self.quantity: Quantity = quantity
        self.premise = variable not in ("m", "delta")
        """Whether the variable decides which networks have the margin."""
        self._samples = (evaluator or Evaluator(setting)) if variable == "m" else None
        self.miss, self._search, self._refused = cache(self._missed), cache(self._searched), cache(self._refuses)

    def at(self, x: float) -> Setting:
        """The setting at a value."""
        if self.variable == "C" and self.setting.norms.budgets:
            raise InvalidSetting("C can be solved for only where it is the one norm: the norms file gives others")
        if self.variable == "depth" and self.setting.architecture.layers is not None:
            raise InvalidSetting("depth cannot be solved for where the layers are listed one by one")
        values: dict[str, Any] = {self.axis.field: round(x) if self.axis.whole else x}
        return self.setting.but(**values)

    def refusal(self, x: float) -> Refusal | None:
        """Why no network has a margin above gamma there (G0e), or, for a risk, none is built."""
        if self.quantity == "gap" and not self.premise:
            return None  # a gap bound has no premise that m or delta could change
        return self._refused(x if self.premise else self.axis.low)

    def _refuses(self, x: float) -> Refusal | None:
        if self._samples is not None:
            return self._samples.risk_refusal
        setting = self.at(x)
        return (
            no_member(setting)
            if self.quantity == "gap"
            else no_witness(setting, measured=bool(setting.sample.measured))
        )

    def start(self) -> float:
        """The setting's own value, or one at which some network has the margin."""
        axis, setting = self.axis, self.setting
        start = (setting.norms.C or 1.0) if self.variable == "C" else float(value_of(setting, self.variable) or 1.0)
        refusal = self.refusal(start)
        if refusal is None:
            return start
        if not self.premise:
            raise NoSolution(str(refusal))
        tries = round(math.log2(axis.high / axis.low)) if axis.whole else _TRIES
        steps = (axis.low * (axis.high / axis.low) ** (i / tries) for i in range(tries + 1))
        inside = next((x for step in steps if self.refusal(x := round(step) if axis.whole else step) is None), None)
        if inside is not None:
            return inside
        most = max((axis.low, axis.high), key=lambda x: float(margin_on_both_labels(self.at(x))))
        where = "" if self.variable == "gamma" else f" (at {self.variable} {most:g})"
        raise NoSolution(
            f"at no {self.variable} from {axis.low:g} to {axis.high:g} has any network the margin: "
            f"{self.refusal(most)}{where}"
        )

    def end(self, inside: float, end: float) -> float:
        """The value nearest an end, from inside, at which some network has the margin."""
        if inside == end or self.refusal(end) is None:
            return end
        between = self.axis._replace(low=min(inside, end), high=max(inside, end), more_helps=end < inside)
        return between.crossing(inside, lambda x: -1.0 if self.refusal(x) is None else 1.0) or inside

    def _missed(self, x: float) -> float:
        """By how much the search misses the target (log); by 1 where it does not, but no network has the margin."""
        miss = self._expected(self._search(x)[1]) - self.log_target
        return 1.0 if miss <= 0 and self.refusal(x) is not None else miss

    def _expected(self, search: Search) -> float:
        """Log of the value that a search expects; 0 where the gap is trivial."""
        risks = [risk.log_value for risk in search.candidates("risk")] if self.quantity == "risk" else []
        if any(risk <= self.log_target for risk in risks):  # what the gap gives would change nothing
            return min(risks)
        ranked = sorted(search.candidates("gap"), key=lambda candidate: candidate.log_value)
        gap = next((gap.log_value for gap in ranked if not gap.certificate.trivial), 0.0)
        if self.quantity == "gap":
            return gap
        return min(math.log(math.exp(min(gap, 0.0)) + self.setting.sample.train_error), *risks, math.inf)

    def _searched(self, x: float) -> tuple[Evaluator, Search]:
        """Other numbers of samples share the allocations of one search."""
        if self._samples is not None:
            return self._samples, self._samples.search(self.bound).with_samples(round(x))
        evaluator = Evaluator(self.at(x))
        return evaluator, evaluator.search(self.bound)

    def checked(self, x: float, alone: bool) -> BoundValue:
        """The checked bound."""
        evaluator, search = self._search(x)
        return evaluator.value(self.bound, search, risks=self.quantity == "risk" or not alone)
