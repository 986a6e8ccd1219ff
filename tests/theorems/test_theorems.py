"""Theorem objects: their numbers against the checker and against written-out sums, their uses, their refusals."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest

import boundcalc.theorems as theorems
from boundcalc.base.numbers import FLOAT
from boundcalc.lab.latent.formulas import excess_risk
from boundcalc.setting import Architecture, Attention, Budget, Norms, Sample, Setting
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.network import Network

POINT: dict[str, Any] = {"C": 1.5, "m": 10**7, "d": 16, "heads": 2, "gamma": 1, "delta": 0.05}


@pytest.mark.parametrize("depth", [1, 4])
def test_x5_in_symbolic_depth_is_at_least_the_sum(depth: int) -> None:
    """X5 of the calculus on the pieces of a network with numbers; equal for one block, a little less for more."""
    setting = Setting.of(C=1.5, depth=depth, d=16, heads=2, n_train=10**7, margin=1.0)
    dimensions: list[float] = []
    stretches: list[float] = []
    for piece in Network(setting, FLOAT).pieces:
        (member,) = piece.members
        target = next(t for t in member.targets if t.kind in ("map", "query"))
        dimensions.append(member.multiplicity * target.size)
        stretches.append(2 * piece.gain * target.radius * target.norms.op)
    inverse = float(mpmath.log(20))
    counts = (p * math.log1p(len(stretches) * 10**7 * s) for p, s in zip(dimensions, stretches, strict=True))
    want = 2e-7 + math.sqrt((sum(counts) + inverse) / 2e7)
    values = POINT | {"depth": depth}
    got = theorems.zhang2022.gap.value(**values)
    assert want <= got * (1 + 1e-12)
    assert got == pytest.approx(want, rel=1e-12 if depth == 1 else 0.05)
    excess = theorems.zhang2022.formula("excess").value(**values)
    assert excess == pytest.approx(excess_risk(FLOAT, got, inverse, 10**7), rel=1e-12)
    count = theorems.zhang2022.covering_number.value(
        epsilon=1e-7, **{k: v for k, v in values.items() if k in ("C", "d", "heads", "depth")}
    )
    assert got == pytest.approx(2e-7 + math.sqrt((count + inverse) / 2e7), rel=1e-12)


def capacity_of_pieces(setting: Setting, names: set[str]) -> float:
    """A1's sum over the pieces of a network, each by the cheapest of the lemmas named, on the sample."""
    total = 0.0
    for piece in Network(setting, FLOAT).pieces:
        for member in piece.members:
            costs = [
                LEMMAS[name].closed(FLOAT, 1.0, target, min(target.points.per_sample * setting.sample.n_train, cap))
                * LEMMAS[name].reach(target) ** 2
                for target in member.targets
                for name in names
                if LEMMAS[name].applies(target) is None
                for cap in [target.points.cap or math.inf]
            ]
            total += (member.multiplicity * min(costs) * piece.gain**2) ** (1 / 3)
    return total**3


@pytest.mark.parametrize("name", ["edelman2022", "edelman2022_head", "trauger2024"])
def test_covering_numbers_are_sums_over_the_pieces_of_a_network(name: str) -> None:
    """Of networks with numbers, by the calculus; a width more is noticed."""
    d, T, m = 8, 20, 1000
    values: dict[str, Any] = {"d": d, "T": T, "m": m, "epsilon": 0.1}
    if name == "edelman2022_head":
        values |= {"C_V": 1.3, "K_V": 2.5, "K_QK": 1.7, "B_X": 1.4, "L_s": 0.6}
        norms = Norms(budgets={"W_V": Budget(op=1.3, two_one=2.5), "W_QK": Budget(two_one=1.7)})
        layers = (Attention(d=d, heads=1),)
        architecture = Architecture(layers=layers, classes=d, seq_len=T, input_radius=1.4)
        setting = Setting(architecture, norms, Sample(n_train=m, lipschitz=0.6))
    else:
        C, K = 1.2, 3.0
        values |= {"C": C, "K": K, "depth": 3, "heads": 2}
        budget = Budget(op=C, two_one=C) if name == "edelman2022" else Budget(op=C, one_one=K)
        norms = Norms(budgets={kind: budget for kind in ("W_QK", "W_V", "W_1", "readout")})
        setting = Setting.of(norms=norms, depth=3, d=d, heads=2, seq_len=T, n_train=m, lipschitz=1.0)
    want = capacity_of_pieces(setting, {"T3"} if name == "trauger2024" else {"T1", "T2"}) / 0.1**2
    formula = theorems.THEOREMS[name].covering_number
    values = {symbol.name: values[symbol.name] for symbol in formula.inputs}
    assert formula.value(**values) == pytest.approx(want, rel=1e-10)
    assert formula.value(**values | {"d": d + 1}) != pytest.approx(want, rel=1e-5)
