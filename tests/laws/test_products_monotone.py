"""A smaller budget of a product never prints a larger number, and a premise that products exclude is refused (G0e, A6,
A7)."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from boundcalc import Budget, Norms, Setting, compare
from boundcalc.statements.premise import _classes, margin_of_class, no_member
from tests.laws.test_bounds import NOISE, logs

TOKENS = Setting.of(
    style="post", normalisation="none", residual=True, depth=1, d=4, d_ff=4, heads=2, vocabulary=3,
    positions="learned", own_row=2, seq_len=3, n_train=10**5, margin=1.2,
)  # fmt: skip
SMALL = {
    "position_values": Budget(heads=1e-9),
    "first_row[0]": Budget(op=1e-9),
    "W_O": Budget(op=1.0, two_one=2.0),
    "W_1": Budget(op=1e-6, two_one=1e-6),
    "W_2": Budget(op=1e-6, two_one=1e-6),
    "readout": Budget(op=1.0, two_one=1.0),
}


def with_values(size: float, **more: Budget) -> Setting:
    """The class in which heads put out values no longer than so."""
    return replace(TOKENS, norms=Norms(C=100.0, budgets={**SMALL, "token_values": Budget(heads=size), **more}))


def test_a_premise_that_products_exclude_is_refused() -> None:
    """The factors alone allow margins of thousands; the product of the values leaves 1."""
    empty = with_values(1.0)
    assert float(margin_of_class(empty)) == pytest.approx(1.0, abs=1e-5)
    assert no_member(empty) is not None
    assert all(value.risk_refusal is not None for value in compare(empty) if value.refusal is None)
    assert no_member(with_values(1.3)) is None
    walks = [float(margin_of_class(each)) for each in _classes(empty)[1:]]
    assert walks == [pytest.approx(1.0, abs=1e-5)]


@pytest.mark.parametrize("kind", ["token_values", "W_2_to_readout[0]", "token_scores"])
def test_smaller_budgets_of_products_have_smaller_bounds(kind: str) -> None:
    rng = random.Random(kind)
    limit = {"token_values": "heads", "token_scores": "sup"}.get(kind, "op")
    for _ in range(3):
        size = rng.uniform(0.5, 3.0)
        before, after = (
            {v.name: v for v in compare(_wide(kind, replace(Budget(), **{limit: part * size}))) if v.refusal is None}
            for part in (1.0, 0.7)
        )
        for name, value in before.items():
            assert all(new <= old + NOISE for old, new in zip(logs(value), logs(after[name]), strict=True)), name


def test_the_law_sees_a_premise_asked_of_the_factors_alone() -> None:
    """Without the class of the products the empty class would print a risk."""
    walks = [float(margin_of_class(replace(with_values(1.0), norms=Norms(C=100.0))))]
    assert max(walks) > 1.2
    assert math.isinf(min(logs(value)[1] for value in compare(with_values(1.0)) if value.refusal is None))


def _wide(kind: str, budget: Budget) -> Setting:
    norms = Norms(C=1.2, budgets={kind: budget})
    return replace(TOKENS.but(n_train=10**8, margin=0.05), norms=norms)
