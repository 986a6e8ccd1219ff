"""The largest margin of a class (G0e): the same in what is refused and what is said."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest

from boundcalc import Setting, compare
from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.search import Search
from boundcalc.proof.checker import check
from boundcalc.setting import Budget
from boundcalc.setting.norms import Norms
from boundcalc.statements.premise import _classes, _margin_of_class, largest_margin, margin_on_both_labels, no_member
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings
from tests.laws.test_bounds import fell


def test_the_margin_of_an_output_is_sharp_in_its_length_for_every_number_of_classes() -> None:
    """An output of length R along the extreme direction has the margin, and no other has more."""
    rng = np.random.default_rng(0)
    for classes in (2, 3, 10):
        most = float(largest_margin(FLOAT, 1.0, classes))
        outputs = rng.standard_normal((4000, classes))
        outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
        margins = outputs[:, 0] - outputs[:, 1:].max(axis=1)
        assert margins.max() <= most
        extreme = np.append(1.0, -np.ones(classes - 1) / (classes - 1))
        extreme /= np.linalg.norm(extreme)
        assert extreme[0] - extreme[1] == pytest.approx(most, rel=1e-12)


def test_what_is_printed_and_what_the_checker_accepts() -> None:
    """Refused together: `compare` prints no risk, and a certificate of one, forged or found, does not pass."""
    refused = Setting.of(depth=1, C=0.5, margin=0.2)
    for value in compare(refused):
        assert value.risk_refusal is not None
        assert value.gap <= 1
    met = refused.but(margin=0.04)
    for policy in (each for each in POLICIES.values() if each.refuses(met) is None):
        assert list(Search(refused, policy).candidates("risk")) == []
        for found in Search(met, policy).candidates("risk"):
            forged = replace(found.certificate, setting=refused)  # whose covers are of a larger scale than they need be
            with pytest.raises(CertificateError, match=r"margin above 0\.0441"):
                check(forged)
    assert all(value.risk_refusal is None for value in compare(met))
    assert all(check(found.certificate) for found in Search(met, POLICIES["best"]).candidates("risk"))


def test_what_is_said_of_the_largest_margin_is_true_to_the_last_digit() -> None:
    """No margin is above the number said to be above all, and a gamma below the one advised is below the largest."""
    for plain in settings("said", 60):
        setting = plain.but(seq_len=min(plain.architecture.seq_len, 16), variance_floor=0.0)
        most = upper_float(margin_on_both_labels(setting))
        if not 1e-250 < most < 1e250:
            continue
        refusal = no_member(setting.but(margin=2 * most))
        assert refusal is not None
        (above,) = re.findall(r"has a margin above (\S+)", refusal.got)
        (below,) = re.findall(r"Take a gamma below (\S+),", refusal.fix)
        low, high = (float(text.replace("10^", "1e")) for text in (below, above))
        assert low <= most <= high / (1 - 1e-15)
        assert no_member(setting.but(margin=low * (1 - 1e-9))) is None


def test_where_the_premise_is_supposed() -> None:
    """A training error of 1, and a loss that is no ramp, suppose no margin."""
    far = Setting.of(depth=1, margin=100.0)
    assert no_member(far.but(train_error=1.0)) is None
    assert no_member(far.but(lipschitz=2.0)) is None
    assert no_member(far.but(train_error=0.999)) is not None


# -- products: a smaller budget never prints a larger number (A6, A7)

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
    assert float(_margin_of_class(empty)) == pytest.approx(1.0, abs=1e-5)
    assert no_member(empty) is not None
    assert all(value.risk_refusal is not None for value in compare(empty) if value.refusal is None)
    assert no_member(with_values(1.3)) is None
    walks = [float(_margin_of_class(each)) for each in _classes(empty)[1:]]
    assert walks == [pytest.approx(1.0, abs=1e-5)]
    factors = replace(empty, norms=Norms(C=100.0))  # the control: without the class of the products it is not empty
    assert float(_margin_of_class(factors)) > 1.2


@pytest.mark.parametrize("kind", ["token_values", "W_2_to_readout[0]", "token_scores"])
def test_smaller_budgets_of_products_have_smaller_bounds(kind: str) -> None:
    rng, limit = random.Random(kind), {"token_values": "heads", "token_scores": "sup"}.get(kind, "op")
    wide = TOKENS.but(n_train=10**8, margin=0.05)
    for _ in range(3):
        budget = Budget(**{limit: rng.uniform(0.5, 3.0)})  # type: ignore[arg-type]
        before, after = (Norms(C=1.2, budgets={kind: each}) for each in (budget, budget.map(lambda x: 0.7 * x)))
        assert fell(replace(wide, norms=before), replace(wide, norms=after))
