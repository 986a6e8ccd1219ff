"""Certified norms, class budgets that hold for every member, and how norms grow."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.lab.represent.classes import CLASSES, class_budgets
from boundcalc.lab.represent.construct import construct, possible_kinds
from boundcalc.lab.represent.expressions import parse
from boundcalc.lab.represent.functions import SparseFunction
from boundcalc.lab.represent.growth import Growth, growth, product
from boundcalc.lab.represent.norms import budget, upper_op, upper_rank
from boundcalc.lab.represent.positions import orthonormal
from tests.lab.represent.conftest import random_table


@pytest.mark.parametrize("scale", [1e-320, 1e-165, 1e-160, 1e155, 1e300])
def test_norms_near_the_ends_of_the_floats(scale: float) -> None:
    """Squares leave the range there; the norms do not."""
    matrix = scale * np.array([[3.0, 4.0], [0.0, 1.0]])
    exact = [Fraction(float(x)) for x in matrix.ravel()]
    least = max(sum(x * x for x in exact[:2]), sum(x * x for x in exact[1::2]))  # squared row or column norm
    found = budget(matrix)
    assert found.op is not None
    assert found.fro is not None
    assert found.one_one is not None
    assert Fraction(found.fro) ** 2 >= sum(x * x for x in exact)
    assert Fraction(found.op) ** 2 >= least
    assert Fraction(found.one_one) >= sum(exact)
    assert found.one_one <= 9 * scale


def test_upper_norms_are_upper_and_close() -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 3), (40, 5), (5, 40), (200, 30), (1, 7), (6, 1)):
        matrix = rng.normal(size=shape) * 10.0 ** rng.integers(-5, 5)
        matrix[rng.random(shape) < 0.3] = 0
        singular = np.linalg.svd(matrix, compute_uv=False)
        found = budget(matrix)
        exact = {
            "op": singular[0],
            "fro": math.sqrt(math.fsum((matrix**2).ravel())),
            "two_one": math.fsum(np.linalg.norm(matrix, axis=0)),
            "two_one_t": math.fsum(np.linalg.norm(matrix, axis=1)),
            "one_one": math.fsum(np.abs(matrix).ravel()),
        }
        for name, value in exact.items():
            assert value * (1 - 1e-14) <= getattr(found, name) <= value * (1 + 1e-9), (shape, name)
        assert found.rank >= np.linalg.matrix_rank(matrix)


def test_the_spectral_norm_is_not_below_a_known_one() -> None:
    """Orthogonal columns of equal length: every direction attains the norm, where a power iteration sees nothing."""
    for k in (2, 5, 16):
        signs = np.array([[(-1.0) ** (i & j).bit_count() for j in range(16)] for i in range(16)])[:, :k]
        assert 4 * (1 - 1e-15) <= upper_op(signs) <= 4 * (1 + 1e-12)


def test_rank_is_exact() -> None:
    row = np.array([1.0, -2.0, 0.5])
    assert upper_rank(np.stack([row, -row, row, np.zeros(3)])) == 1
    assert upper_rank(np.zeros((3, 4))) == 0
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, k, r = (int(x) for x in rng.integers(1, 9, 3))
        left = rng.integers(-9, 10, (n, r)) * 2.0 ** rng.integers(-40, 40, (n, 1))
        matrix = left @ rng.integers(-9, 10, (r, k))
        assert upper_rank(matrix) == np.linalg.matrix_rank(matrix / np.maximum(np.abs(matrix).max(1), 1e-300)[:, None])
    nearly = np.outer([1.0, 3.0], row)
    nearly[1, 2] *= 1 + 2.0**-52  # no numerical rank sees this, and T5 is not entitled to ignore it
    assert upper_rank(nearly) == 2


def test_declared_rank_is_true(built) -> None:
    """The value matrix is an exact product, so its numerical rank is no accident."""
    for made in built.values():
        found = made.network.norms.budgets["W_V[0]"]
        w_v = made.network.blocks[0].w_v[0]
        singular = np.linalg.svd(w_v, compute_uv=False)
        assert (singular > 1e-12 * singular[0]).sum() <= found.rank


def test_weights_are_within_the_budgets_of_the_setting(built) -> None:
    for made in built.values():
        weights = made.network.weights(joint=True)
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


def test_a_particular_function_needs_no_more_than_its_class_by_much() -> None:
    """Fitted units beat one unit per corner."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        function = random_table(4, rng, 64)
        if "corners" not in possible_kinds(function):
            continue
        fitted = construct(function, orthonormal(64), "corners")
        by_corner = construct(function, orthonormal(64), "corners", all_corners=True)

        def cost(made) -> float:
            found = made.network.norms.budgets
            return found["W_QK[0]"].fro * found["W_V[0]"].op * found["W_1[0]"].op

        assert cost(fitted) <= cost(by_corner) * 1.02
