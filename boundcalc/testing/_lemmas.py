"""Laws of covering lemmas."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product
from typing import NamedTuple

from flint import arb

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.numbers import FLOAT, Number, NumberSystem
from boundcalc.base.theory import page, parse
from boundcalc.layers.facts import Target
from boundcalc.statements.covers import CoverLemma, Params
from boundcalc.testing._judge import Cases, Complaint, judge

_PRECISE = 1e-9
_YS = (1.0000013, 1.4937, 2.5173, 11.317, 397.31)
_COUNTS = (1, 10, 10**6)


class LemmaExample(NamedTuple):
    """A target, how far eps lies below its reach (y = reach / eps > 1), and the number of points."""

    target: Target
    y: float
    n: int


def examples_of(target: Target) -> Iterator[LemmaExample]:
    """A target at coarse and fine scales, on few and many points."""
    return (LemmaExample(target, y, n) for y, n in product(_YS, _COUNTS))


def _closed(lemma: CoverLemma, at: LemmaExample, finer: float = 1.0) -> float:
    return lemma.closed(FLOAT, at.y * finer, at.target, at.n)


def _sharp(lemma: CoverLemma, at: LemmaExample, finer: float = 1.0, more: int = 1) -> float:
    """With the parameters of the example also at finer scales: certificates keep theirs when scales move."""
    return lemma.sharp(FLOAT, at.y * finer, at.target, at.n * more, _params(lemma, at))


def _params(lemma: CoverLemma, at: LemmaExample) -> Params:
    return lemma.params(math.log(at.y), at.target, at.n)


def applies_to_its_examples(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """Its own examples are not refused, and its own parameters are admissible."""
    refusal = lemma.applies(at.target)
    return str(refusal) if refusal is not None else lemma.check_params(_params(lemma, at))


def unknown_parameters_are_refused(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """A certificate with parameters that nothing reads is no certificate."""
    parameters = {**_params(lemma, at), "no such parameter": 1.0}
    return "a parameter of no meaning is taken" if lemma.check_params(parameters) is None else None


def is_in_words(lemma: CoverLemma, _: LemmaExample) -> str | None:
    """Its statement can be read: in docs/theory.md, or in the text it brings."""
    entry = (parse(lemma.text) if lemma.text else page()).get(lemma.name)
    return None if entry is not None and entry.says else f"no entry {lemma.name!r} says what it states"


def sharp_is_not_above_closed(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """0 <= sharp <= closed."""
    low, high = _sharp(lemma, at), _closed(lemma, at)
    return None if 0 <= low <= high * (1 + _PRECISE) else f"sharp {low:.6g}, closed {high:.6g}"


def costs_grow_with_y(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """A finer cover is not smaller."""
    for cost in (_closed, _sharp):
        values = [cost(lemma, at, finer) for finer in (1.0, 1.01, 2.0)]
        if any(fine < coarse * (1 - _PRECISE) for coarse, fine in pairwise(values)):
            return f"{cost.__name__} {values} at y, 1.01 y, 2 y"
    return None


def costs_grow_with_points_unless_uniform(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """A uniform cover counts no points; another does not fall with them."""
    few, many = _sharp(lemma, at), _sharp(lemma, at, more=3)
    holds = few == many if lemma.uniform else few <= many
    return None if holds else f"{few:.6g} on n points, {many:.6g} on 3n, uniform: {lemma.uniform}"


def number_systems_agree(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """One formula: in floats, and in intervals, which enclose it."""
    value = _sharp(lemma, at)
    high = upper_float(lemma.sharp(INTERVAL, arb(at.y), at.target, arb(at.n), _params(lemma, at)))
    return None if abs(high - value) <= _PRECISE * (1 + abs(value)) else f"floats {value!r}, intervals {high!r}"


def closed_grows_no_faster_than_its_square(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """What `quadratic` says: the closed forms of G extend the cost to all scales by it."""
    here, limit = _closed(lemma, at), at.y**2 * _closed(lemma, at._replace(y=1.0))
    return f"{here:.6g} at y, above {limit:.6g}" if lemma.quadratic and here > limit * (1 + _PRECISE) else None


def no_smaller_cover_than_there_can_be(lemma: CoverLemma, at: LemmaExample) -> str | None:
    """Some of the class needs so many centres: what is claimed is at least the log of that."""
    claimed = min(_sharp(lemma, at), _closed(lemma, at))
    needed = least_log_count(at.target, float(lemma.reach(at.target)) / at.y, None if lemma.uniform else at.n)
    return None if claimed >= needed * (1 - _PRECISE) else f"{claimed:.6g} nats are claimed, {needed:.6g} are needed"


LAWS = (
    applies_to_its_examples,
    unknown_parameters_are_refused,
    is_in_words,
    sharp_is_not_above_closed,
    costs_grow_with_y,
    costs_grow_with_points_unless_uniform,
    number_systems_agree,
    closed_grows_no_faster_than_its_square,
    no_smaller_cover_than_there_can_be,
)


def check_lemma(lemma: CoverLemma, cases: Cases) -> list[Complaint]:
    """What is wrong with a covering lemma, registered or not: every law is tried.

    Args:
        lemma: the lemma.
        cases: targets it is for (or examples, to choose scales and numbers of points); targets it must refuse; and
            variants of it that are false, such as half its cost.
    """
    examples = [e for case in cases.examples for e in (examples_of(case) if isinstance(case, Target) else (case,))]
    return judge(lemma, cases._replace(examples=examples), LAWS, lambda changed, target: changed.applies(target))


def scaled(lemma: CoverLemma, factor: float) -> CoverLemma:
    """The lemma with its cost times a factor: below 1, a variant that may be false."""

    class Scaled(type(lemma)):  # type: ignore[misc]
        def closed(self, ns: NumberSystem, y: Number, target: Target, n: Number) -> Number:
            return factor * super().closed(ns, y, target, n)

        def sharp(self, ns: NumberSystem, y: Number, target: Target, n: Number, params: Params) -> Number:
            return factor * lemma.sharp(ns, y, target, n, params)

    return Scaled()  # pyright: ignore[reportAbstractUsage]: its class is a concrete one


# -- how many centres are needed at least


def least_log_count(target: Target, eps: float, points: int | None) -> float:
    """A lower bound of log N for the class of a target, on the worst so many points (None: on all).

    The class holds the matrices of any block whose rows have length at most r, for the r at which no norm is exceeded.
    At the points b e_i errors are the lengths of rows, so that a product of balls is covered: (r b/eps)^(entries)
    centres at least, by volume; and ceil(r b/eps) per row of one entry, where so many are more than 2 eps apart.
    """
    norms, reach = target.norms, float(target.radius) / eps
    row = float(norms.op) * reach
    if target.kind in ("vector", "gain", "table"):
        number = {"vector": 1, "gain": target.k, "table": min(target.d, points or target.d)}[target.kind]
        return _balls(number, 1 if target.kind == "gain" else target.k, row)
    most = 0.0
    for rows, columns in product({1, min(2, target.d), target.d}, {1, min(2, target.k), target.k}):
        score, least = target.kind == "score", min(rows, columns)
        if least > norms.rank or (points is not None and rows * (columns if score else 1) > points):
            continue
        sides = {"op": 1, "fro": 1, "two_one": columns, "two_one_t": rows, "one_one": rows * columns, "nuclear": least}
        whole = min(float(getattr(norms, name)) / math.sqrt(side) for name, side in sides.items())
        row = whole / math.sqrt(rows) * reach
        blocks = (rows * columns, 1, row / math.sqrt(columns)) if score else (rows, columns, row)
        most = max(most, _balls(*blocks))
    return most


def _balls(number: int, dimension: int, ratio: float) -> float:
    """Log of the centres that a product of balls needs, each `ratio` times as wide as what a centre covers."""
    if ratio <= 1:
        return 0.0
    return number * (math.log(math.ceil(ratio * (1 - _PRECISE))) if dimension == 1 else dimension * math.log(ratio))
