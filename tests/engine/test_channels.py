"""What channels instead of covers would gain (docs/theory.md, "What does not pay"): a model in floats, no certificate.

At level j a map W is seen as V_j = W + eps_j Z_j, Z_j the noise of T11 to T14, independent from level to level given W. By the
chain rule of KL level j then costs at most I_j of T11 to T14 itself (no net, no logarithm of one), or the KL from a Gaussian
around V_(j-1): (n/2) log(2 pi e (A_(j-1) + A_j)/d) - h_j with the energies A = eps^2 d/(d + k + 1 + 2a) of columns.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from boundcalc.base.errors import Refusal
from boundcalc.base.numbers import FLOAT
from boundcalc.engine import refine
from boundcalc.engine.evaluate import Desk, evaluate
from boundcalc.setting import Architecture, Attention, Budget, Normaliser, Setting
from boundcalc.statements.covers.noise import noise
from boundcalc.statements.larger import joined

NETS = 11.6
"""Nats of a map of 64 x 64 that T11 to T14 pay for nets."""
EXPONENTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


@cache
def channel(d: int, k: int, log_ratio: float) -> float:
    """Nats of a level e^log_ratio times as fine as the one before, both of the same law, the best of some."""
    n, costs = d * k, []
    for a in EXPONENTS:
        found = noise(FLOAT, d, k, a)
        columns = found.energy / k * min(d, k)  # E|u|^2 over k columns
        energies = (math.exp(2 * log_ratio) + 1) * columns
        costs.append(n / 2 * math.log(2 * math.pi * math.e * energies / d) - found.entropy)
    return min(costs)


def gap(depth: int) -> float:
    """The best gap of the search, in floats."""
    setting = Setting.of(depth=depth, seq_len=512, n_train=10**6, margin=1.0)
    return math.exp(min(found.log_value for found in Desk(setting).found("best", "gap")))


def with_channels(patch: pytest.MonkeyPatch, depth: int) -> float:
    """The same where levels may be channels."""
    shapes: dict[int, list[tuple[float, int, int]]] = {}
    kept: list[object] = []
    residual, cost, seen = refine._residual, refine._Residual.cost, refine.Refinements._seen

    def noted(item: Any) -> Any:
        made = residual(item)
        if made is not None:
            kept.append(made)
            targets = [(math.exp(weight), options[-1].target) for weight, options in item.members]
            shapes[id(made)] = [(weight, target.d, target.k) for weight, target in targets]
        return made

    def least(self: Any, log_ratio: float) -> float:
        covered = cost(self, log_ratio)
        if log_ratio <= 0:
            return covered
        parts = shapes[id(self)]
        return min(covered, sum(weight * channel(d, k, round(log_ratio, 2)) for weight, d, k in parts))

    def without_nets(self: Any, point: Any) -> Any:
        if id(point) not in self._known:
            found = seen(self, point)
            counts = [max(count - NETS, count / 2) for count in found.counts]
            self._known[id(point)] = found._replace(counts=counts, total=sum(counts))
        return self._known[id(point)]

    with patch.context() as inside:
        inside.setattr(refine, "_residual", noted)
        inside.setattr(refine._Residual, "cost", least)
        inside.setattr(refine.Refinements, "_seen", without_nets)
        return gap(depth)


@pytest.mark.parametrize(("depth", "gain"), [(1, 0.0100), (2, 0.0153), (4, 0.0101)])
def test_channels_gain_little(depth: int, gain: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 - with_channels(monkeypatch, depth) / gap(depth) == pytest.approx(gain, abs=0.002)


def test_separate_maps_for_products_of_scores_cost_more() -> None:
    """A6: a query map A W_QK and a key map A, in place of A W_QK A'."""
    setting = Setting.of(depth=2, seq_len=512, n_train=10**6, margin=0.5)
    whole = joined(setting)
    assert not isinstance(whole, Refusal)
    budgets = {key: budget for key, budget in whole.norms.budgets.items() if key != "W_QK[1]"}
    apart = {"W_Q[1]": Budget(op=1.0, two_one=1.0), "W_K[1]": Budget(op=1.0, two_one=1.0)}
    layers = tuple(
        replace(layer, qk="split", d_head=64, normaliser=Normaliser("softmax", 1.0))
        if isinstance(layer, Attention) and layer.block == 1
        else layer
        for layer in whole.architecture.stages
    )
    architecture = Architecture(seq_len=512, layers=layers)
    other = evaluate(Setting(architecture, replace(whole.norms, budgets={**budgets, **apart}), setting.sample))
    assert other.gap / evaluate(setting).gap == pytest.approx(1.15, abs=0.01)
