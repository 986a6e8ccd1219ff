"""Laws of every covering lemma, built in or added: registering one enrols it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from boundcalc.base.numbers import FLOAT
from boundcalc.layers.facts import Points, Target
from boundcalc.setting import Budget
from boundcalc.statements.covers import LEMMAS, CoverLemma
from boundcalc.statements.weights import matrix_norms
from boundcalc.testing import Cases, check_lemma
from boundcalc.testing._lemmas import LAWS, least_log_count
from tests.cases.lemmas import cases, examples

UNPROVED = ("T13", "T14")
"""Lemmas whose closed form seems to grow no faster than y^2, which nobody has proved."""
EXPECTED = {"Tpub": ["closed_grows_no_faster_than_its_square"]}
"""It holds at one scale and coarser ones: log y is in it."""


@pytest.mark.parametrize("lemma", LEMMAS.values(), ids=LEMMAS)
def test_laws(lemma: CoverLemma) -> None:
    complaints = check_lemma(lemma, cases(lemma.name))
    assert [complaint.law for complaint in complaints] == EXPECTED.get(lemma.name, []), complaints


def broken(name: str, lemma: CoverLemma) -> bool:
    """Whether one law fails somewhere."""
    return any(complaint.law == name for complaint in check_lemma(lemma, Cases(list(examples(lemma)), [], {})))


@pytest.mark.parametrize("lemma", LEMMAS.values(), ids=LEMMAS)
def test_only_quadratic_lemmas_extend_to_all_scales(lemma: CoverLemma, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tpub holds at one scale and coarser ones: its logarithm grows with y."""
    if lemma.name == "Tpub":
        for case in examples(lemma):
            twice = lemma.closed(FLOAT, 2 * case.y, case.target, case.n)
            assert twice >= 4 * lemma.closed(FLOAT, case.y, case.target, case.n)
    elif lemma.name in UNPROVED:
        assert not lemma.quadratic
    elif not lemma.quadratic:
        monkeypatch.setattr(type(lemma), "quadratic", True)
        assert broken("closed_grows_no_faster_than_its_square", lemma)


T13 = LEMMAS["T13"]
WRONG: list[tuple[str, Any, str, Any]] = [
    ("costs_grow_with_y", T13, "closed", lambda ns, y, target, n: 1 / y),
    ("sharp_is_not_above_closed", T13, "sharp", lambda ns, y, target, n, params: 2 * T13.closed(ns, y, target, n)),
    ("costs_grow_with_y", T13, "sharp", lambda ns, y, target, n, params: n / y),
    ("number_systems_agree", T13, "sharp", lambda ns, *_: ns.number(2 if ns.name == "interval" else 1)),
    ("costs_grow_with_points_unless_uniform", LEMMAS["T2"], "uniform", True),
    ("unknown_parameters_are_refused", T13, "check_params", lambda params: None),
    ("applies_to_its_examples", T13, "check_params", lambda params: "no"),
    ("is_in_words", T13, "name", "T99"),
]


@pytest.mark.parametrize(("law", "lemma", "part", "wrong"), WRONG)
def test_each_law_sees_a_broken_lemma(
    law: str, lemma: CoverLemma, part: str, wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not broken(law, lemma)
    monkeypatch.setattr(type(lemma) if part == "uniform" else lemma, part, wrong)
    assert broken(law, lemma)
    assert len(LAWS) == 9


def test_the_least_count_is_that_of_known_covers() -> None:
    """An interval needs ceil(R/eps) centres; a norm that is not the least of all says nothing more."""
    norms = matrix_norms(FLOAT, Budget(op=2.0), 1, 1)
    assert norms is not None
    interval = Target("map", 1, 1, 1.0, norms, Points(1))
    for eps, count in ((3.0, 1), (1.0, 2), (0.9, 3), (0.1, 20)):
        assert least_log_count(interval, eps, 1) == pytest.approx(math.log(count))
    square = matrix_norms(FLOAT, Budget(fro=1.0), 2, 2)
    assert square is not None
    wide = Target("map", 2, 2, 1.0, square, Points(1))
    assert least_log_count(wide, 1e-3, None) == pytest.approx(4 * math.log(1000 / math.sqrt(2)))
    assert least_log_count(wide, 1e-3, 1) < least_log_count(wide, 1e-3, 2)
