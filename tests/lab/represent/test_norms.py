"""Certified norms, class budgets that hold for every member, and how norms grow."""

from __future__ import annotations

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.lab.represent import units
from boundcalc.lab.represent.classes import CLASSES, class_budgets
from boundcalc.lab.represent.construct import construct, possible_kinds
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.growth import Growth, growth, product
from boundcalc.lab.represent.positions import orthonormal
from tests.lab.represent.conftest import random_table


def test_declared_rank_is_true(built) -> None:
    """The value matrix is an exact product, so its numerical rank is no accident."""
    for made in built.values():
        found = made.network.norms.budgets["W_V[0]"]
        w_v = made.network.blocks[0].w_v[0]
        singular = np.linalg.svd(w_v, compute_uv=False)
        assert (singular > 1e-12 * singular[0]).sum() <= found.rank


def test_weights_are_within_the_budgets_of_the_setting(built) -> None:
    for made in built.values():
        weights = made.network.weights()
        weights["W_QK[0]"] = weights.pop("W_Q[0]") @ weights.pop("W_K[0]").swapaxes(1, 2)
        budgets = made.network.norms.budgets
        for name, array in weights.items():
            matrix = array[0] if array.ndim == 3 else array
            assert np.linalg.norm(matrix) <= budgets[name].fro
            assert np.linalg.norm(matrix, 2) <= budgets[name].op * (1 + 1e-12)


NAMES = ("op", "fro", "two_one", "two_one_t", "one_one", "rank")


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize(("T", "where"), [(16, "orthonormal"), (300, "orthonormal"), (1024, "compact")])
def test_every_member_keeps_within_the_class(name: str, T: int, where) -> None:
    """Random members at random places: certified margin 1, and no norm above the class's."""
    rng = np.random.default_rng(T)
    for s in (1, 2, 3, 4):
        budgets = class_budgets(name, s, T, where)
        tried = 0
        while tried < 6:
            function = _member_of(name, s, T, rng)
            if function.minimised().arity < s:
                continue
            tried += 1
            made = budgets.member(function)
            made.certify(1.0)
            for key, has in made.network.norms.budgets.items():
                may = budgets.norms.budgets[key]
                for norm in NAMES:
                    if norm == "rank" and where == "compact":
                        continue  # true in real numbers; sums of rounded products hide it from a certain count
                    assert getattr(has, norm) <= getattr(may, norm), (s, key, norm)


@pytest.mark.parametrize("s", [40, 100, 300])
def test_alternating_sums_keep_the_margin_of_the_class(s: int) -> None:
    """Rounding to 26 bits costs parity more the more bits it has: the class allows for it."""
    budgets = class_budgets("symmetric", s, 512)
    made = budgets.member(parse(f"PARITY(0..{s - 1})"))
    made.certify(1.0)
    for key, has in made.network.norms.budgets.items():
        for norm in ("op", "fro", "two_one", "two_one_t", "one_one"):
            assert getattr(has, norm) <= getattr(budgets.norms.budgets[key], norm), (key, norm)


def _member_of(name: str, s: int, T: int, rng: np.random.Generator) -> SparseFunction:
    places = tuple(int(v) for v in np.sort(rng.choice(T, s, replace=False)))
    if name == "any":
        return SparseFunction(places, tuple(int(v) for v in rng.integers(0, 2, 1 << s)))
    level, flip = int(rng.integers(1, s + 1)), int(rng.integers(0, 2))
    profile = rng.integers(0, 2, s + 1) if "symmetric" in name else (np.arange(s + 1) >= level) ^ flip
    negated = tuple(bool(b) for b in rng.integers(0, 2, s)) if name.startswith("signed") else (False,) * s
    return SparseFunction(places, (), tuple(int(v) for v in profile), negated)


def test_budgets_with_a_tenth_less_are_left() -> None:
    """The control: budgets are not so loose that any number would pass."""
    budgets = class_budgets("any", 3, 300)
    made = budgets.member(SparseFunction((3, 50, 200), (0, 1, 1, 0, 1, 0, 0, 1)))
    for key in ("W_QK[0]", "W_V[0]", "W_1[0]"):
        own, most = made.network.norms.budgets[key].fro, budgets.norms.budgets[key].fro
        assert own is not None
        assert most is not None
        assert own > 0.9 * most
    with pytest.raises(CertificateError):
        made.with_beta(0.8).certify(1.0)


def test_members_of_other_classes_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="depends on 2"):
        class_budgets("any", 3, 16).member(SparseFunction((0, 1, 2), (0, 1, 1, 0, 0, 1, 1, 0)))
    with pytest.raises(InvalidSetting, match="not in the class"):
        class_budgets("threshold", 2, 16).member(SparseFunction((0, 1), (0, 1, 1, 0)))
    with pytest.raises(InvalidSetting, match="not in the class"):
        class_budgets("symmetric", 2, 16).member(SparseFunction((0, 1), (0, 1, 0, 0)))


@pytest.fixture(scope="module")
def measured() -> Growth:
    return growth(512)


def test_norms_of_general_functions_grow_exponentially(measured: Growth) -> None:
    assert 2.0 < measured.base < 3.0
    assert 2.0 < measured.last < 3.0
    assert 1.7 < measured.freed < 2.1  # 2^s s^1.5, as in the formula


def test_norms_of_symmetric_functions_grow_polynomially(measured: Growth) -> None:
    for name, low, high in (("symmetric", 2.2, 3.0), ("threshold", 1.3, 2.0)):
        assert low < measured.degrees[name] < high
        assert measured.local[name] < 3.2  # no local degree drifts upward as it would for an exponential
    assert measured.products["symmetric"][28] < product("any", 10, 512)


def test_norms_grow_like_log_t(measured: Growth) -> None:
    assert 2.0 < measured.per_e_fold < 3.2  # sqrt(2 s) = 2.45 in the simple construction
    assert measured.bend < 0.5  # straight in log T
    assert measured.others < 1.1  # the other norms do not grow


def test_a_particular_function_needs_no_more_than_its_class_by_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted units beat one unit per corner."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        function = random_table(4, rng, 64)
        if "corners" not in possible_kinds(function):
            continue
        fitted = construct(function, orthonormal(64), "corners")
        with monkeypatch.context() as patch:
            patch.setattr(units, "MOST_FITTED", 0)
            by_corner = construct(function, orthonormal(64), "corners")

        def cost(made) -> float:
            found = made.network.norms.budgets
            return found["W_QK[0]"].fro * found["W_V[0]"].op * found["W_1[0]"].op

        assert cost(fitted) <= cost(by_corner) * 1.02
