"""Laws of every covering lemma: registering one enrols it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from flint import arb

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.numbers import FLOAT, LOG, LogFloat, Number, NumberSystem
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.targets import Kind, Points, Target, matrix_norms

UNPROVED = ("T11", "T12", "T13", "T14")
"""Lemmas whose closed form seems to grow no faster than y^2, which nobody has proved."""
KINDS: tuple[Kind, ...] = ("map", "score", "query", "key", "vector", "gain", "table")
PRECISE = 1e-9


@dataclass(frozen=True)
class Case:
    """A target, how far eps lies below its reach, and the number of points."""

    target: Target
    y: float
    n: int


def cases(lemma: CoverLemma, number: int = 300) -> Iterator[Case]:
    """Targets the lemma applies to."""
    rng = random.Random(lemma.name)
    found = 0
    while found < number:
        kind = rng.choice(KINDS)
        d, k = rng.choice((1, 2, 40, 60)), rng.choice((1, 2, 40, 60))
        budget = Budget(
            op=1.0,
            two_one=rng.choice((None, 1.0, 2.0)),
            schatten=rng.choice((None, (0.5, 1.2), (2.0, 3.0))),
            rank=rng.choice((None, 1, 3)),
        )
        norms = matrix_norms(FLOAT, budget, 1 if kind in ("vector", "gain") else d, k)
        assert norms is not None
        target = Target(kind, norms.rank if kind == "vector" else d, k, 1.0, norms, Points(1))
        if lemma.applies(target) is None:
            found += 1
            yield Case(target, math.exp(rng.uniform(1e-6, rng.choice((1, 6)))), rng.choice((1, 10, 10**6, 10**12)))


def sharp(lemma: CoverLemma, case: Case) -> float:
    """The cost with the optimiser's own parameters."""
    params = lemma.params(math.log(case.y), case.target, case.n)
    assert lemma.check_params(params) is None
    return lemma.sharp(FLOAT, case.y, case.target, case.n, params)


def closed(lemma: CoverLemma, case: Case) -> float:
    return lemma.closed(FLOAT, case.y, case.target, case.n)


Law = Callable[[CoverLemma, Case], bool]


def sharp_is_not_above_closed(lemma: CoverLemma, case: Case) -> bool:
    return 0 <= sharp(lemma, case) <= closed(lemma, case) * (1 + PRECISE)


def closed_grows_with_y(lemma: CoverLemma, case: Case) -> bool:
    wider = replace(case, y=case.y * 1.01)
    return closed(lemma, case) <= closed(lemma, wider) * (1 + PRECISE)


def sharp_grows_with_y_at_the_same_parameters(lemma: CoverLemma, case: Case) -> bool:
    params = lemma.params(math.log(case.y), case.target, case.n)
    values = [lemma.sharp(FLOAT, y, case.target, case.n, params) for y in (case.y, case.y * 1.01, case.y * 2)]
    return values == sorted(values)


def costs_grow_with_points_unless_uniform(lemma: CoverLemma, case: Case) -> bool:
    params = lemma.params(math.log(case.y), case.target, case.n)
    few, many = (lemma.sharp(FLOAT, case.y, case.target, n, params) for n in (case.n, 3 * case.n))
    return few == many if lemma.uniform else few <= many


def closed_grows_no_faster_than_its_square(lemma: CoverLemma, case: Case) -> bool:
    at_one = closed(lemma, replace(case, y=1.0))
    return closed(lemma, case) <= case.y**2 * at_one * (1 + PRECISE)


def systems_agree(lemma: CoverLemma, case: Case) -> bool:
    params = lemma.params(math.log(case.y), case.target, case.n)
    as_float = sharp(lemma, case)
    budget_norms = case.target.norms
    exact = replace(
        case.target,
        norms=replace(
            budget_norms,
            schatten=None if budget_norms.schatten is None else tuple(map(arb, budget_norms.schatten)),
        ),
    )
    enclosed = lemma.sharp(INTERVAL, arb(case.y), exact, arb(case.n), params)
    as_log = LogFloat.of(lemma.sharp(LOG, LogFloat.of(case.y), case.target, LogFloat.of(case.n), params))
    room = PRECISE * (1 + abs(as_float))
    return (
        as_float <= upper_float(enclosed) + room
        and upper_float(enclosed) <= as_float + room
        and abs(float(as_log) - as_float) <= room
    )


LAWS: tuple[Law, ...] = (
    sharp_is_not_above_closed,
    closed_grows_with_y,
    sharp_grows_with_y_at_the_same_parameters,
    costs_grow_with_points_unless_uniform,
    systems_agree,
)


def broken(law: Law, lemma: CoverLemma) -> list[Case]:
    return [case for case in cases(lemma) if not law(lemma, case)]


@pytest.mark.parametrize("lemma", LEMMAS.values(), ids=LEMMAS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law(law: Law, lemma: CoverLemma) -> None:
    assert broken(law, lemma)[:1] == []


@pytest.mark.parametrize("lemma", LEMMAS.values(), ids=LEMMAS)
def test_only_quadratic_lemmas_extend_to_all_scales(lemma: CoverLemma) -> None:
    """Tpub holds at one scale and coarser ones: its logarithm grows with y."""
    if lemma.name == "Tpub":
        for case in cases(lemma):
            twice = replace(case, y=2 * case.y)
            assert closed(lemma, twice) >= 4 * closed(lemma, case)
    elif lemma.name in UNPROVED:
        assert not lemma.quadratic
    else:
        assert lemma.quadratic is not bool(broken(closed_grows_no_faster_than_its_square, lemma))


def test_the_laws_see_a_broken_lemma(monkeypatch: pytest.MonkeyPatch) -> None:
    lemma = LEMMAS["T2"]

    def falling(ns: object, y: float, target: Target, n: float) -> float:
        return 1 / y

    monkeypatch.setattr(lemma, "closed", falling)
    for law in (sharp_is_not_above_closed, closed_grows_with_y):
        assert broken(law, lemma)
    monkeypatch.undo()

    def rising(ns: object, y: float, target: Target, n: float, params: object) -> float:
        return n / y

    monkeypatch.setattr(lemma, "sharp", rising)
    assert broken(sharp_grows_with_y_at_the_same_parameters, lemma)

    def different(ns: NumberSystem, y: float, target: Target, n: float, params: object) -> Number:
        return ns.number(2 if ns.name == "interval" else 1)

    monkeypatch.setattr(lemma, "sharp", different)
    assert broken(systems_agree, lemma)
    monkeypatch.undo()
    monkeypatch.setattr(type(lemma), "uniform", True)
    assert broken(costs_grow_with_points_unless_uniform, lemma)
