"""A6 in networks without branches: merged networks are the same functions, their budgets hold, nothing is merged
across what acts. Products are made here from the network as it is written. test_products.py has the read-out and A7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.search import Search
from boundcalc.proof.checker import check
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Normaliser,
    Norms,
    Pool,
    Residual,
    Sample,
    Setting,
)
from boundcalc.statements.targets import MatrixNorms, product
from boundcalc.testing._drawing import Array, Dice, Parameters
from boundcalc.theorems import POLICIES
from tests.proof import alone
from tests.soundness.network import Network, merged

TANH = Activation("tanh")
NORMS = ("op", "fro", "two_one", "two_one_t", "one_one", "nuclear")


def setting(
    *layers: Layer, radius: float = 1.0, pool: str = "mean", budgets: Mapping[str, Budget] | None = None
) -> Setting:
    stages = (*layers, Pool(pool), Linear("readout", 3, 1))  # type: ignore[arg-type]
    return Setting(
        Architecture(seq_len=4, layers=stages, input_radius=radius), Norms(C=1 - 1e-9, budgets=budgets or {})
    )


def map_(kind: str, d: int, k: int, bias: str | None = None, block: int | None = 0) -> Linear:
    return Linear(kind, d, k, bias, block)


def heads(d: int, out: int | None = None, **options: Any) -> Attention:
    return Attention(d, **{"d_value": out, "normaliser": Normaliser("softmax", 1.5), "block": 1, **options})


A = map_("A", 3, 3)
OWN = Norms(C=1.0, budgets={"W_1[0]": Budget(op=0.5, two_one=0.9), "W_V": Budget(op=2.0, two_one=3.0)})
MERGED = {
    "nothing": setting(A, pool="cls"),
    "identity and pooling": setting(A, Activation("identity")),
    "a ball out of reach": setting(A, Ball(1.0)),
    "three maps": setting(A, Ball(2.0), map_("B", 3, 3), map_("D", 3, 3), TANH),
    "a map in front of heads": setting(A, heads(3, heads=2)),
    "sigmoid": setting(A, heads(3, normaliser=Normaliser("sigmoid", 1.5))),
    "heads of their own": setting(
        A, heads(3, heads=2), budgets={"W_V[1,0]": Budget(op=0.4), "W_QK[1,1]": Budget(op=2.0)}
    ),
    "depth 1": Setting.of(depth=1, d=4, seq_len=4),
    "depth 3": Setting.of(depth=3, d=4, seq_len=4, C=0.8),
    "tanh and mean": Setting.of(depth=2, d=4, seq_len=4, activation="tanh", readout="mean"),
    "budgets of their own": Setting.of(depth=2, d=4, seq_len=4, norms=OWN),
}
APART = {
    "an activation": setting(A, Activation("relu")),
    "an activation of slope 1 at 0": setting(A, TANH),
    "a ball within reach": setting(A, Ball(1.0), radius=5.0),
    "LayerNorm": setting(A, LayerNorm("norm", 3, gain=False, centred=False)),
    "large weights": Setting.of(depth=2, d=4, seq_len=4, C=1.5),
    "an offset": setting(map_("A", 3, 3, "a")),
    "a bottleneck": setting(map_("A", 6, 2), heads(2, 3), TANH),
    "offsets of scores": setting(A, heads(3, qk_bias=True), TANH),
    "separate queries": setting(A, heads(3, qk="split", d_head=1), TANH),
    "a branch": setting(A, Residual((GatedFeedForward(3, 2),))),
    "shared weights": setting(A, TANH, A),
}


def products(larger: Setting, layers: tuple[Layer, ...], old: Parameters) -> Parameters:
    """The weights of the larger network: a map that is gone goes into what follows it."""
    left = {(layer.kind, layer.block) for layer in larger.architecture.stages if isinstance(layer, Linear)}
    new, waits = dict(old), None
    for layer in layers:
        if isinstance(layer, Linear):
            place = layer.kind, layer.block, None
            new[place] = old[place] if waits is None else waits @ old[place]
            waits = None if place[:2] in left else new[place]
        elif isinstance(layer, Attention) and waits is not None:
            for head in range(layer.heads):
                for kind, right in (("W_QK", waits.T), ("W_V", np.eye(layer.out))):
                    new[kind, layer.block, head] = waits @ old[kind, layer.block, head] @ right
            waits = None
    return new


def norms(matrix: Array) -> MatrixNorms:
    values = np.linalg.svd(matrix, compute_uv=False)
    columns, rows = (float(np.linalg.norm(matrix, axis=axis).sum()) for axis in (0, 1))
    fro, entries, rank = np.linalg.norm(matrix), np.abs(matrix).sum(), np.linalg.matrix_rank(matrix)
    return MatrixNorms(float(values[0]), float(fro), columns, rows, float(entries), float(values.sum()), int(rank))


def faults(base: Setting, rounds: int = 12) -> set[str]:
    """Where the merged network differs, or has weights outside their budgets."""
    larger = merged(base)
    assert larger is not None
    a, wrong = base.architecture, set[str]()
    before, after = Network.of(base), Network.of(larger)
    for seed in range(rounds):
        dice = Dice(np.random.default_rng(seed), aligned=seed % 3 == 0)
        old = before.draw(dice)
        new = products(larger, a.stages, old)
        x = a.input_radius * dice.unit(a.seq_len, a.stages[0].widths()[0] or 4)
        if np.abs(before.run(old, x) - after.run(new, x)).max() > 1e-10:
            wrong.add("another function")
        for weight in (w for layer in larger.architecture.stages for w in layer.weights(4)):
            for head in range(weight.copies) if weight.heads else (None,):
                budget = larger.norms.find(weight.kind, weight.block, head)
                size = norms(new[weight.kind, weight.block, head])
                limits = {name: getattr(budget, name) for name in ("op", "fro", "two_one", "two_one_t", "rank")}
                limits["nuclear"] = None if budget.schatten is None else budget.schatten[1]
                wrong |= {
                    f"{weight.kind} {name}"
                    for name, most in limits.items()
                    if most is not None and getattr(size, name) > most * (1 + 1e-9)
                }
    return wrong


@pytest.mark.parametrize("what", MERGED)
def test_merged_networks_are_the_same_function_and_both_checkers_know_them(what: str) -> None:
    assert faults(MERGED[what]) == set()
    bound = evaluate(replace(MERGED[what], sample=Sample(10**7, margin=0.005)))
    for certificate in (bound.certificate, bound.risk_certificate):
        assert check(certificate).log_value == pytest.approx(float(alone.log_value(certificate)), abs=1e-12)
        if certificate.meeting:
            with pytest.raises(CertificateError):
                alone.log_value(replace(certificate, meeting=False))


@pytest.mark.parametrize("what", APART)
def test_what_does_not_meet_is_left_alone(what: str) -> None:
    larger, kept = merged(APART[what]), APART[what].architecture.stages[:-2]
    assert larger is None or larger.architecture.stages[: len(kept)] == kept  # the read-out may have met something


@pytest.mark.parametrize("what", ["an activation", "an activation of slope 1 at 0", "a ball within reach", "LayerNorm"])
def test_a_condition_on_what_is_between_that_is_dropped_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (Activation, Ball, LayerNorm):
        monkeypatch.setattr(kind, "idle", lambda self, radius: True)
    assert "another function" in faults(APART[what])


def test_the_checker_asks_for_the_conditions_itself() -> None:
    search = Search(Setting.of(depth=1, n_train=10**6, margin=1.0), replace(POLICIES["best"], comparison=False))
    honest = min(search.candidates("gap"), key=lambda bound: bound.log_value).certificate
    assert honest.meeting
    for wrong in (
        replace(honest, meeting=False),
        replace(honest, setting=honest.setting.but(C=1.5)),
        replace(honest, setting=honest.setting.but(normalisation="none", input_radius=3.0, C=1.01)),
    ):
        with pytest.raises(CertificateError):
            check(wrong)
        with pytest.raises(CertificateError):
            alone.log_value(wrong)


def test_norms_of_products_are_met_and_never_exceeded() -> None:
    """Random factors; orthogonal ones, which meet every bound of the nuclear norm; flat and single ones."""
    rng = np.random.default_rng(1)
    share = dict.fromkeys(NORMS, 0.0)
    for index in range(300):
        d, n, k = rng.integers(1, 6, 3)
        a, b = rng.normal(size=(d, n)), rng.normal(size=(n, k))
        if index % 3 == 0:
            a = np.linalg.qr(rng.normal(size=(n, n)))[0]
            b = a.T * 10 ** rng.uniform(-2, 2)
        elif index % 3 == 1:
            a, b = np.eye(d, n), np.outer(np.eye(n)[0], np.eye(k)[0])
        claimed, true = product(FLOAT, norms(a), norms(b)), norms(a @ b)
        for name in NORMS:
            share[name] = max(share[name], getattr(true, name) / getattr(claimed, name))
        assert true.rank <= claimed.rank
    assert max(share.values()) <= 1 + 1e-9, share
    assert min(share.values()) >= 1 - 1e-6, share
