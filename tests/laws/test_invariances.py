"""What must not change a bound: the order of heads, and other ways to say the same."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from boundcalc.engine.evaluate import Evaluator
from boundcalc.layers.base import weights_of
from boundcalc.setting import Architecture, Budget, Norms, Setting
from boundcalc.statements.premise import no_member
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings

SAME = 1e-9
NOISE = 1e-3


def logs(setting: Setting) -> dict[str, tuple[float, float]]:
    """Logs of gap and risk, per policy."""
    found = [value for value in map(Evaluator(setting, no_member).value, POLICIES) if value.refusal is None]
    return {
        value.name: (value.log10 * math.log(10), value.log_risk if value.risk_refusal is None else -math.inf)
        for value in found
    }


def differ(first: Setting, second: Setting, tolerance: float = SAME) -> list[str]:
    """Policies whose bounds differ."""
    a, b = logs(first), logs(second)
    assert a.keys() == b.keys()
    return [name for name in a if any(abs(x - y) > tolerance for x, y in zip(a[name], b[name], strict=True))]


HEADS = Setting.of(heads=3, d=12, depth=2, n_train=10**8, seq_len=100)


def per_head(sizes: tuple[float, ...], kind: str = "W_V", block: int = 0) -> Norms:
    given = {f"{kind}[{block},{h}]": Budget(op=size, two_one=1.5 * size) for h, size in enumerate(sizes)}
    return Norms(C=1.0, budgets=given)


def test_heads_may_be_listed_in_any_order() -> None:
    for kind in ("W_V", "W_QK"):
        orders = [HEADS.but(norms=per_head(sizes, kind)) for sizes in itertools.permutations((0.5, 1.0, 2.0))]
        for other in orders[1:]:
            assert differ(orders[0], other) == []


def test_equal_budgets_per_head_are_the_common_ones() -> None:
    common = Norms(C=1.0, budgets={"W_V": Budget(op=0.8, two_one=1.2), "W_QK": Budget(op=0.8, two_one=1.2)})
    each = {
        f"{kind}[{b},{h}]": Budget(op=0.8, two_one=1.2) for kind in common.budgets for b in (0, 1) for h in (0, 1, 2)
    }
    assert differ(HEADS.but(norms=common), HEADS.but(norms=Norms(C=1.0, budgets=each))) == []
    blocks = {f"{kind}[{b}]": Budget(op=0.8, two_one=1.2) for kind in common.budgets for b in (0, 1)}
    assert differ(HEADS.but(norms=common), HEADS.but(norms=Norms(C=1.0, budgets=blocks))) == []


def test_heads_with_different_budgets_do_differ() -> None:
    """The comparison sees what matters."""
    assert "best" in differ(HEADS.but(norms=per_head((1.0, 1.0, 1.0))), HEADS.but(norms=per_head((1.0, 1.0, 1.3))))


def test_tightening_one_head_never_hurts() -> None:
    for kind, block in (("W_V", 0), ("W_V", 1), ("W_QK", 0), ("W_QK", 1)):
        before = logs(HEADS.but(norms=per_head((1.0, 1.0, 1.0), kind, block)))
        for size in (0.9, 0.5, 0.1):
            after = logs(HEADS.but(norms=per_head((1.0, size, 1.0), kind, block)))
            for name, values in before.items():
                assert all(new <= old + NOISE for old, new in zip(values, after[name], strict=True)), (kind, name, size)


def test_as_many_key_heads_as_heads_is_none() -> None:
    for setting in settings(21, 10):
        if setting.architecture.kv_heads is None:
            assert differ(setting, setting.but(kv_heads=setting.architecture.heads)) == []


def test_layers_listed_one_by_one_are_the_preset() -> None:
    for setting in settings(22, 10):
        architecture = setting.architecture
        explicit = Architecture(
            seq_len=architecture.seq_len,
            classes=architecture.classes,
            input_radius=architecture.input_radius,
            layers=architecture.stages,
        )
        assert differ(setting, replace(setting, architecture=explicit)) == []


def test_the_knob_is_its_budgets_spelt_out() -> None:
    for setting in settings(23, 10, budgets=False):
        knob = setting.norms.C
        budget = Budget(op=knob, two_one=knob, sup=knob, row=knob)
        weights = weights_of(setting.architecture.stages, setting.architecture.seq_len)
        spelt = Norms(budgets={weight.kind: weight.usable(budget) for weight in weights})
        assert differ(setting, setting.but(norms=spelt)) == []
