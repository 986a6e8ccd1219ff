"""The closed form in symbolic depth against sums written out block by block, and against the checked numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mpmath
import pytest
import sympy
from mpmath import mpf

from boundcalc import evaluate
from boundcalc.base import symbols as sym
from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.formulas.symbolic import ClosedForm, Formula, closed_form
from boundcalc.formulas.symbolic.functions import Lambda
from boundcalc.setting import Architecture, Attention, Budget, Norms, Setting
from boundcalc.statements.gap import CLOSED_OFFSET

GENERAL = Setting.of(
    C=sym.C, depth=sym.depth, seq_len=sym.T, n_train=sym.m, d=sym.d, heads=sym.heads, delta=sym.delta, margin=sym.gamma
)
"""Preset edelman2022 with every number a symbol."""
POINT: dict[str, Any] = {"T": 512, "m": 10**6, "d": 64, "heads": 1, "delta": 0.05, "gamma": 1}


@pytest.fixture(scope="module")
def general() -> ClosedForm:
    return closed_form(GENERAL)


def lam(k: Any, N: Any) -> Any:
    """T2's constant, from its statement: rho log((2Nk+1) rho^2/(rho-1)) at rho = 1 + 1/log(2Nk+1)."""
    wide = 2 * mpf(N) * k + 1
    rho = 1 + 1 / mpmath.log(wide)
    return rho * mpmath.log(wide * rho**2 / (rho - 1))


def direct_capacity(C: Any, D: int, T: int, n: int, d: int, H: int, gamma: Any) -> Any:
    """A1's sum over every matrix of D blocks of radius 1, amplifications multiplied out one by one."""
    C, gamma = mpf(C), mpf(gamma)
    lipschitz_of_block = H * C * (C + mpmath.sqrt(1 + C**2)) * C
    total = (mpmath.log(2 * n + 1) * C**2 / gamma**2) ** (mpf(1) / 3)
    amplification = C / gamma
    for block in reversed(range(D)):
        rows = 1 if block == D - 1 else T
        width = lam(d, n * rows)
        score = min(mpmath.log(2 * mpf(n) * rows * T + 1), width)
        for count, cost, gain in (
            (1, width, amplification),  # W_1
            (H, width, amplification * C * H),  # W_V of every head, through W_1
            (H, score, amplification * C * C * H),  # W_QK of every head, through W_V and W_1
        ):
            total += (count * cost * C**2 * gain**2) ** (mpf(1) / 3)
        amplification *= lipschitz_of_block
    return total**3


def direct_gap(capacity: Any, m: int, delta: Any) -> Any:
    k = mpf(17) / 32 * mpmath.e * mpmath.sqrt(2 * capacity / m)
    chain = 2 * k * (mpf(str(CLOSED_OFFSET)) + max(mpf(0), mpmath.log(1 / (2 * k))))
    return chain + mpmath.sqrt(mpmath.log(1 / mpf(str(delta))) / (2 * mpf(m)))


def agree(a: Any, b: Any, tolerance: float = 1e-12) -> bool:
    return bool(abs(a - b) <= tolerance * abs(b))


def budget_with_ratio(ratio: float) -> Any:
    """The C at which one block (one head) multiplies errors by the given ratio, to forty digits."""
    with mpmath.workdps(60):
        return mpmath.findroot(lambda C: C**2 * (C + mpmath.sqrt(1 + C**2)) - ratio, mpf("0.7"))


@pytest.mark.parametrize("depth", [1, 2, 5, 12, 40])
@pytest.mark.parametrize("ratio", [0.03, 0.999999, 1, 1.000001, 3.7, 60.0])
def test_symbolic_depth_is_the_sum_over_blocks(general: ClosedForm, ratio: float, depth: int) -> None:
    with mpmath.workdps(40):
        C = budget_with_ratio(ratio)
        values = {"C": sympy.Float(str(C), 50), "depth": depth, **POINT}
        expected = direct_capacity(C, depth, 512, 17 * 10**6, 64, 1, 1)
        assert agree(general.capacity.mp(**{k: v for k, v in values.items() if k != "delta"}), expected)
        assert agree(general.gap.mp(**values), direct_gap(expected, 10**6, 0.05))


def test_the_direct_sum_can_tell_a_wrong_formula(general: ClosedForm) -> None:
    """Negative control: the sum over blocks, one block short, is not the direct sum."""
    values = {name: POINT[name] for name in ("T", "m", "d", "heads", "gamma")}
    expected = direct_capacity(1, 5, 512, 17 * 10**6, 64, 1, 1)
    assert agree(general.capacity.mp(C=1, depth=5, **values), expected)
    assert not agree(general.capacity.mp(C=1, depth=4, **values), expected)


def test_the_branch_at_ratio_one_is_exact(general: ClosedForm) -> None:
    total = next(part for part in general.gap.where if part.symbol.name == "G")
    r = sympy.Symbol("r", positive=True)
    assert isinstance(total.expr, sympy.Piecewise)
    assert total.expr.subs({r: 1, sym.depth: 12}) == 11
    for depth in range(1, 7):
        written_out = sum((r ** sympy.Rational(2 * i, 3) for i in range(1, depth)), sympy.S.Zero)
        difference = sympy.simplify(total.expr.args[1].args[0].subs(sym.depth, depth) - written_out)
        assert difference == 0


SETTINGS: list[dict[str, Any]] = [
    {"C": 1.0, "depth": 2, "seq_len": 512, "n_train": 10**6},
    {"C": 1.7, "depth": 12, "seq_len": 1000, "n_train": 10**9, "d": 128, "heads": 4},
    {"C": 1.0, "depth": 1, "seq_len": 16, "n_train": 10**12, "margin": 0.5, "delta": 0.01},
    {"C": 1.2, "depth": 40, "seq_len": 16, "n_train": 10**12, "heads": 2},
    {"C": 2.5, "depth": 5, "seq_len": 1, "n_train": 50, "d": 2},
]


@pytest.mark.parametrize("values", SETTINGS)
def test_the_checked_numbers_are_the_formulas(general: ClosedForm, values: Mapping[str, Any]) -> None:
    checked = evaluate(Setting.of(**values), "closed")
    formula = general.gap.mp(
        **{"d": 64, "heads": 1, "delta": 0.05, "gamma": Setting.of(**values).sample.margin, **_inputs(values)}
    )
    assert agree(mpmath.exp(checked.certificate.log_value), formula, 1e-12)


def _inputs(values: Mapping[str, Any]) -> dict[str, Any]:
    return {sym.ALIASES.get(name, name): value for name, value in values.items()}


@pytest.mark.parametrize("C", [0.2, 0.6, 0.95, 1.0, 3.0])
def test_small_budgets_shrink_the_activations_and_exact_radii_follow_them(general: ClosedForm, C: float) -> None:
    values = {"C": C, "depth": 3, "seq_len": 100, "n_train": 10**7}
    checked = mpmath.exp(evaluate(Setting.of(**values), "closed").certificate.log_value)
    exact = closed_form(Setting.of(**values), exact=True).gap.mp()
    balls = general.gap.mp(
        **{"d": 64, "heads": 1, "delta": 0.05, "gamma": Setting.of(**values).sample.margin, **_inputs(values)}
    )
    assert agree(checked, exact)
    assert balls >= checked * (1 - 1e-12)
    if C >= 1:
        assert agree(balls, checked)


OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("edelman", {"style": "post", "normalisation": "ball", "depth": 4}),
    ("edelman", {"style": "post", "normalisation": "ball", "residual": True, "depth": 6}),
    ("edelman", {"input_radius": 2.0, "depth": 3}),
    ("edelman", {"activation": "gelu", "readout": "mean", "classes": 7, "depth": 3}),
    ("bert", {"depth": 3}),
    ("gpt2", {"depth": 3}),
    ("llama", {"depth": 3}),
    ("vit", {"depth": 2}),
]


@pytest.mark.parametrize(("preset", "values"), OTHERS)
def test_every_preset_has_a_closed_form_at_least_as_large_as_the_checked_number(
    preset: str, values: Mapping[str, Any]
) -> None:
    numbers = Setting.of(preset, C=2.0, n_train=10**9, **values)
    symbolic = Setting.of(preset, **{**values, "depth": sym.depth}, C=sym.C, n_train=sym.m)
    formula = closed_form(symbolic).gap.log10(C=2, m=10**9, depth=values["depth"])
    checked = evaluate(numbers, "closed").log10
    assert checked <= formula + 1e-12 * abs(formula)
    radii_grow = preset in ("gpt2", "llama", "vit", "bert")  # rows are taken to fill their sphere: slightly larger
    assert formula - checked < (0.02 if radii_grow else 1e-9)


def test_complexity_and_covering_number_are_the_same_calculus(general: ClosedForm) -> None:
    """R_m is chained on the sample alone and not doubled; N is counted on it, for the read-out instead of the loss."""
    values = {"C": 1.3, "depth": 3, "T": 512, "d": 64, "heads": 1}
    on_sample = direct_capacity(1.3, 3, 512, 10**6, 64, 1, mpf("0.5"))
    k = mpmath.e * mpmath.sqrt(2 * on_sample / 10**6)
    expected = k * (mpf(str(CLOSED_OFFSET)) + max(mpf(0), mpmath.log(1 / (2 * k))))
    assert agree(general.rademacher.mp(m=10**6, gamma=0.5, **values), expected)
    expected = direct_capacity(1.3, 3, 512, 10**6, 64, 1, 1) / mpf("0.1") ** 2
    assert agree(general.covering_number.mp(m=10**6, epsilon=0.1, **values), expected)


def test_the_sample_size_of_the_formula_suffices_and_is_near_the_least(general: ClosedForm) -> None:
    values = {"C": 1, "depth": 1, "T": 512, "d": 64, "heads": 1, "delta": 0.05, "gamma": 1}
    low, least = 1, 10**18
    while least - low > 1:
        middle = (low + least) // 2
        low, least = (low, middle) if general.gap.mp(m=middle, **values) <= 0.1 else (middle, least)
    assert general.gap.mp(m=least, **values) <= 0.1 < general.gap.mp(m=least - 1, **values)
    m = 10**3
    for _ in range(60):  # its right side grows like log m: iterate to the fixed point
        m = int(mpmath.ceil(general.sample_complexity.mp(m=m, target=0.1, **values)))
    assert general.sample_complexity.mp(m=m, target=0.1, **values) <= m
    assert least <= m < 20 * least
    assert general.gap.mp(m=m, **values) <= 0.1


def test_separate_budgets_stay_separate() -> None:
    """A4 with |W_QK|_F <= K_F: Lambda_s = min{(K_F/K)^2 log(34 m n T + 1), Lambda}."""
    K_F: Any = sympy.Symbol("K_F", positive=True)
    norms = Norms(C=sym.C, budgets={"W_QK": Budget(op=K_F, fro=K_F, two_one=sym.K)})
    form = closed_form(
        Setting.of(norms=norms, depth=sym.depth, seq_len=sym.T, n_train=sym.m, d=sym.d), order=(K_F, sym.K)
    )
    formula = form.capacity
    assert {symbol.name for symbol in formula.inputs} == {"C", "K", "K_F", "T", "m", "depth", "d"}
    part = next(part.expr for part in formula.where if part.symbol.name == "Lambda_sT")
    n = 17 * sym.m * sym.T
    assert set(part.args) == {
        K_F**2 * sympy.log(2 * n * sym.T + 1),  # S1
        sym.K**2 * Lambda(sym.d, n),  # S2, query side
        sym.d * K_F**2 * Lambda(sym.d, n),  # S2, key side: |W^T|_21 <= sqrt(d) |W|_F
    }
    assert form.conditions[2] == r"$K_{F}\le K$"


def test_a_depth_that_never_repeats_is_refused_with_the_piece() -> None:
    with pytest.raises(Unsupported, match=r"W_QK\[2\].*--depth 12"):
        _ = closed_form(Setting.of(C=sym.C, depth=sym.depth, normalisation="none")).gap


def test_sizes_that_symbols_do_not_decide_are_refused() -> None:
    with pytest.raises((Unsupported, InvalidSetting), match="d"):
        _ = closed_form(Setting.of("bert", C=sym.C, d=sym.d, depth=sym.depth)).gap


def test_lists_of_layers_have_no_depth() -> None:
    architecture = Architecture(layers=(Attention(d=8),), classes=8)
    with pytest.raises(Unsupported, match="explicit list of layers"):
        _ = closed_form(Setting(architecture, Norms(C=sym.C))).gap


def test_a_piece_without_a_cover_is_named() -> None:
    form = closed_form(GENERAL, lemmas=frozenset({"T13"}))
    with pytest.raises(Unsupported, match=r"W_QK\[0\].*none of .*T13"):
        _ = form.gap


def test_symbols_must_be_assumed_positive() -> None:
    with pytest.raises(InvalidSetting, match="C = q must be positive"):
        Setting.of(C=sympy.Symbol("q"))  # type: ignore
    with pytest.raises(InvalidSetting, match="T = t must be integer and positive"):
        Setting.of(seq_len=sympy.Symbol("t", positive=True))


def test_wrong_names_are_refused_with_the_nearest(general: ClosedForm) -> None:
    formula: Formula = general.gap
    with pytest.raises(InvalidSetting, match="did you mean 'depth'"):
        formula.value(dept=3)
    with pytest.raises(InvalidSetting, match="does not depend on K"):
        formula.value(K=3)
    with pytest.raises(InvalidSetting, match="needs a value for T, m"):
        formula.value(C=1)


def test_sums_of_roots_have_names() -> None:
    """No radical stands under another: 1 + 16 sqrt(3), a LayerNorm radius of BERT, is b_1."""
    formula = closed_form(Setting.of("bert", depth=sym.depth, C=sym.C))
    parts = {str(part.symbol): part.expr for part in formula.gap.where}
    assert parts["b_1"] == 1 + 16 * sympy.sqrt(3)
    for expr in (formula.gap.expr, *(e for name, e in parts.items() if not name.startswith("b_"))):
        for power in expr.atoms(sympy.Pow):
            if not power.exp.is_Integer and power.base.is_Add and not power.base.free_symbols:
                raise AssertionError(f"{power} is nested")
