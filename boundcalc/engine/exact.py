"""The cheapest cover at one given error, as margin bounds need it. Not trusted.

Costs are not convex (a piece whose share reaches its reach costs nothing, and lemmas cross), so the vertices of the
hull leave a gap between them: start from the two that enclose the error and change one piece's lemma at a time,
spending the whole error again each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from boundcalc.base.numbers import log_add, log_sum
from boundcalc.engine.allocate import Bracket, Point, bracket, point_of, slack
from boundcalc.engine.options import Item, Option, cost_at

_ROUNDS = 6
_MOVES = 16
"""Changes tried per round, the most promising first; with many pieces fewer, as each then matters less."""
_SECANTS = 8
_CLOSE = 1e-6
"""Hulls around errors that differ by less are the same."""

_Assignment = Sequence[Option | None]
"""A lemma per piece; None where the piece is left out."""


def allocate_exactly(items: Sequence[Item], log_scale: float, known: Bracket | None = None) -> Point:
    """A cheap cover at the error e^log_scale; `known` may be the hull around it of these items."""
    budget = log_scale - 3 * slack(items)
    hull = _hull(items, budget, known)
    starts = [hull.inside.options] + ([hull.outside.options] if hull.outside is not None else [])
    filled = [(found, options) for options in starts if (found := _spend(items, options, budget)) is not None]
    if not filled:
        return hull.inside
    (count, shares), options = min(filled, key=lambda entry: entry[0][0])
    found = _moved(items, budget, options, (count, shares), hull.log_lambda)
    return min(found, hull.inside, key=lambda point: point.log_count)


def _hull(items: Sequence[Item], budget: float, known: Bracket | None) -> Bracket:
    if known is None:
        return bracket(items, budget)
    same = len(known.inside.options) == len(items) and all(
        option is None or option in item.heaviest for item, option in zip(items, known.inside.options, strict=True)
    )
    if same and abs(known.log_scale - budget) < _CLOSE and known.inside.log_scale <= budget:
        return known
    return bracket(items, budget)


def allocate_alike(items: Sequence[Item], log_scale: float, like: Point, *, moves: bool) -> Point | None:
    """A cover at the error e^log_scale from the lemmas of another, other lemmas tried or not; None where they do not fit."""
    budget = log_scale - 3 * slack(items)
    options = _same(items, like.options)
    found = _spend(items, options, budget)
    if found is None:
        return None
    if moves:
        return _moved(items, budget, options, found, like.log_lambda)
    settled = _settle(items, options, found[1])
    settled.log_lambda = like.log_lambda
    return settled


def _moved(
    items: Sequence[Item], budget: float, options: _Assignment, spent: tuple[float, Sequence[float]], log_lambda: float
) -> Point:
    """The point of an assignment after all changes of one piece's lemma that help."""
    count, shares = spent
    for _ in range(_ROUNDS):
        improved = False
        for index, option in _moves(items, options, shares, log_lambda):
            changed = [*options[:index], option, *options[index + 1 :]]
            found = _spend(items, changed, budget)
            if found is not None and found[0] < count - 1e-9:
                (count, shares), options, improved = found, changed, True
        if not improved:
            break
    settled = _settle(items, options, shares)
    settled.log_lambda = log_lambda
    return settled


def _same(items: Sequence[Item], options: _Assignment) -> list[Option | None]:
    """The options that are the same lemmas on the same targets."""
    return [
        None
        if option is None
        else next((o for o in item.heaviest if (o.lemma, o.index) == (option.lemma, option.index)), None)
        for item, option in zip(items, options, strict=True)
    ]


def _moves(
    items: Sequence[Item], options: _Assignment, shares: Sequence[float], log_lambda: float
) -> list[tuple[int, Option | None]]:
    """Changes of one piece's lemma, by how little they raise the Lagrangian."""

    def value(item: Item, option: Option | None, share: float) -> float:
        cost = -math.inf if option is None else option.log_cost(share) + item.total
        return log_add(cost, log_lambda + share)

    def alternatives() -> Iterator[tuple[float, int, Option | None]]:
        for index, (item, option, share) in enumerate(zip(items, options, shares, strict=True)):
            now = value(item, option, share)
            if option is not None:
                yield log_lambda + item.log_zero - now, index, None
            for other in item.heaviest:
                wanted = other.minimiser(item.total, log_lambda)
                if other is not option and wanted < item.log_zero:
                    yield value(item, other, wanted) - now, index, other

    ranked = sorted(alternatives(), key=lambda entry: entry[0])
    return [(index, option) for _, index, option in ranked[: max(2, min(_MOVES, 600 // len(items)))]]


def _spend(items: Sequence[Item], options: _Assignment, budget: float) -> tuple[float, list[float]] | None:
    """(log count, shares) when an assignment spends a whole error with one multiplier; None where it cannot."""
    dropped = log_sum([item.log_zero for item, option in zip(items, options, strict=True) if option is None])
    if dropped >= budget:
        return None
    left = budget + math.log1p(-math.exp(dropped - budget))
    covered = [(item, option) for item, option in zip(items, options, strict=True) if option is not None]
    shares = iter(_balanced(covered, left))
    all_shares = [
        item.log_zero if option is None else min(item.log_zero, next(shares))
        for item, option in zip(items, options, strict=True)
    ]
    costs = [
        _cost(item, option, share)
        for item, option, share in zip(items, options, all_shares, strict=True)
        if option is not None
    ]
    return log_sum(costs), all_shares


def _cost(item: Item, option: Option, share: float) -> float:
    if len(item.members) == 1:
        return option.log_cost(share) + item.total
    return cost_at(item, share)[0]


def _balanced(covered: Sequence[tuple[Item, Option]], left: float) -> list[float]:
    """Shares with equal slopes that sum to e^left: a few secant steps in the log multiplier, then scaled to fit."""
    if not covered:
        return []
    log_lambda, slope = 2.0 - left, -0.5
    before: tuple[float, float] | None = None
    shares: list[float] = []
    excess = 0.0
    for _ in range(_SECANTS):
        shares = [option.minimiser(item.total, log_lambda) for item, option in covered]
        excess = log_sum(shares) - left
        if abs(excess) < 1e-7:
            break
        if before is not None and log_lambda != before[0]:
            slope = min(-0.2, max(-1.0, (excess - before[1]) / (log_lambda - before[0])))
        before = (log_lambda, excess)
        log_lambda -= excess / slope
    return [share - excess for share in shares]


def _settle(items: Sequence[Item], options: _Assignment, shares: Sequence[float]) -> Point:
    """The point of an assignment: each piece by its cheapest lemma at its share, on whole steps."""
    found: list[tuple[float, float, Option | None]] = []
    for item, option, share in zip(items, options, shares, strict=True):
        if option is None:
            found.append((item.log_zero, -math.inf, None))
        else:
            found.append((share, *cost_at(item, share)))
    return point_of(items, found)
