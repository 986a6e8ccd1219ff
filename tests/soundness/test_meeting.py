"""A6: joined networks compute the same functions, their budgets hold, and nothing is joined across what acts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems import POLICIES
from boundcalc.proof.checker import check
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    Layer,
    LayerNorm,
    Linear,
    Norms,
    Pool,
    Residual,
    Setting,
)
from boundcalc.statements import merge
from tests.soundness.network import merged

Matrices = dict[str, np.ndarray]
RNG = np.random.default_rng(4)


def run(layers: tuple[Layer, ...], weights: Matrices, x: np.ndarray) -> np.ndarray:
    """The network, for the layers these tests use."""
    for layer in layers:
        if isinstance(layer, Linear):
            x = x @ weights[name(layer.kind, layer.block)]
        elif isinstance(layer, Ball):
            x = x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True) / layer.radius)
        elif isinstance(layer, Activation):
            x = {"relu": lambda v: np.maximum(v, 0), "tanh": np.tanh, "identity": lambda v: v}[layer.name](x)
        elif isinstance(layer, Pool):
            x = x[:1] if layer.how == "cls" else x.mean(axis=0, keepdims=True)
        elif isinstance(layer, Residual):
            x = x + run(layer.branch, weights, x)
        elif isinstance(layer, LayerNorm):
            x = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + layer.eps)
        else:
            assert isinstance(layer, Attention)
            scores = np.exp(x @ weights[name("W_QK", layer.block)] @ x.T)
            x = scores / scores.sum(axis=1, keepdims=True) @ x @ weights[name("W_V", layer.block)]
    return x


def name(kind: str, block: int | None) -> str:
    return kind if block is None else f"{kind}[{block}]"


def matrix(d: int, k: int, norms: Budget) -> np.ndarray:
    """A random matrix within a spectral and (2,1) budget, at the edge of one of them."""
    w = RNG.standard_normal((d, k)) * RNG.exponential(size=(1, k)) ** 2
    assert norms.op is not None
    assert norms.two_one is not None
    return w * min(norms.op / np.linalg.norm(w, 2), norms.two_one / np.linalg.norm(w, axis=0).sum())


def weights_of(setting: Setting) -> Matrices:
    found: Matrices = {}
    for layer in setting.architecture.stages:
        if isinstance(layer, Linear):
            key = name(layer.kind, layer.block)
            found[key] = matrix(layer.d_in, layer.d_out, setting.norms.find(layer.kind, layer.block))
        elif isinstance(layer, Attention):
            for kind in ("W_QK", "W_V"):
                found[name(kind, layer.block)] = matrix(layer.d, layer.d, setting.norms.find(kind, layer.block))
    return found


def products(setting: Setting, larger: Setting, weights: Matrices) -> Matrices:
    """The matrices of the joined network: each linear map that is gone is multiplied into what comes next."""
    left = {name(layer.kind, layer.block) for layer in larger.architecture.stages if isinstance(layer, Linear)}
    found, gone = dict(weights), None
    for layer in setting.architecture.stages:
        if isinstance(layer, Linear):
            key = name(layer.kind, layer.block)
            found[key] = weights[key] if gone is None else gone @ weights[key]
            gone = None if key in left else found[key]
        elif isinstance(layer, Attention) and gone is not None:
            qk, v = name("W_QK", layer.block), name("W_V", layer.block)
            found[qk], found[v], gone = gone @ weights[qk] @ gone.T, gone @ weights[v], None
    return found


def faults(setting: Setting, rounds: int = 20) -> list[str]:
    """Where the joined network differs, or has a matrix outside its budget."""
    larger = merged(setting)
    if larger is None:
        return []
    found: list[str] = []
    for _ in range(rounds):
        weights = weights_of(setting)
        made = products(setting, larger, weights)
        x = RNG.standard_normal((3, next(iter(weights.values())).shape[0]))
        x *= setting.architecture.input_radius / np.linalg.norm(x, axis=1, keepdims=True)
        before, after = (run(s.architecture.stages, w, x) for s, w in ((setting, weights), (larger, made)))
        if np.abs(before - after).max() > 1e-12:
            found.append("another function")
        for key, budget in larger.norms.budgets.items():
            if key not in made:  # a budget for several blocks, none of them changed
                continue
            w = made[key]
            sizes = {
                "op": np.linalg.norm(w, 2),
                "fro": np.linalg.norm(w),
                "two_one": np.linalg.norm(w, axis=0).sum(),
                "two_one_t": np.linalg.norm(w, axis=1).sum(),
            }
            found += [f"{key} {n}" for n, size in sizes.items() if (b := getattr(budget, n)) and size > b * (1 + 1e-9)]
            if budget.schatten and np.linalg.norm(w, "nuc") > budget.schatten[1] * (1 + 1e-9):
                found.append(f"{key} nuclear")
    return found


def between(*layers: Layer, radius: float = 1.0, pool: bool = True) -> Setting:
    """A map, some layers, a map."""
    stages = (
        Linear("W_1", 4, 4, block=0),
        *layers,
        *((Pool("cls"),) if pool else ()),
        Linear("readout", 4, 1),
    )
    return Setting(Architecture(layers=stages, input_radius=radius, seq_len=3), Norms(C=1.0))


JOINED = {
    "nothing": between(),
    "identity": between(Activation("identity")),
    "a ball out of reach": between(Ball(1.0)),
    "pooling": between(Pool("mean"), pool=False),
    "depth 1": Setting.of(depth=1, d=5, seq_len=3),
    "depth 3": Setting.of(depth=3, d=5, seq_len=3, C=0.8),
    "tanh and mean": Setting.of(depth=2, d=4, seq_len=3, activation="tanh", readout="mean"),
    "budgets of their own": Setting.of(
        depth=2,
        d=4,
        seq_len=3,
        norms=Norms(C=1.0, budgets={"W_1[0]": Budget(op=0.5, two_one=0.9), "W_V": Budget(op=2.0, two_one=3.0)}),
    ),
}
APART = {
    "an activation": between(Activation("relu")),
    "an activation of slope 1 at 0": between(Activation("tanh")),
    "a ball within reach": between(Ball(1.0), radius=5.0),
    "LayerNorm": between(LayerNorm("norm", 4, gain=False, centred=False)),
    "a residual": Setting(
        Architecture(
            layers=(
                Residual((Linear("W_1", 4, 4, block=0),)),
                Linear("W_2", 4, 4, block=0),
                Activation("tanh"),
                Pool("cls"),
                Linear("readout", 4, 1),
            ),
            seq_len=3,
        ),
        Norms(C=1.0),
    ),
    "large weights": Setting.of(depth=2, d=4, seq_len=3, C=1.5),
}


@pytest.mark.parametrize("what", JOINED)
def test_joined_networks_are_the_same_function(what: str) -> None:
    assert merged(JOINED[what]) is not None
    assert faults(JOINED[what]) == []


@pytest.mark.parametrize("what", APART)
def test_maps_that_do_not_meet_are_left_alone(what: str) -> None:
    assert merged(APART[what]) is None


@pytest.mark.parametrize("what", ["an activation", "an activation of slope 1 at 0", "a ball within reach", "LayerNorm"])
def test_a_dropped_condition_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "_idle", lambda layer, radius: isinstance(layer, Activation | Ball | LayerNorm))
    assert "another function" in faults(APART[what])


def test_budgets_too_small_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = merge.product

    def eighth(ns: object, a: object, b: object) -> object:
        found = honest(ns, a, b)  # type: ignore[arg-type]
        names = ("op", "fro", "two_one", "two_one_t", "nuclear")
        return replace(found, **{n: getattr(found, n) / 8 for n in names})

    monkeypatch.setattr(merge, "product", eighth)
    assert any("another" not in fault for fault in faults(JOINED["depth 3"], 60))


def test_the_checker_asks_for_the_conditions_itself() -> None:
    search = Search(Setting.of(depth=1, n_train=10**6, margin=1.0), replace(POLICIES["best"], comparison=False))
    honest = min(search.gaps(), key=lambda each: each.log_value).certificate
    assert honest.meeting
    for wrong in (
        replace(honest, meeting=False),
        replace(honest, setting=honest.setting.but(C=1.5)),
        replace(honest, setting=honest.setting.but(normalisation="none", input_radius=3.0, C=1.01)),
    ):
        with pytest.raises(CertificateError):
            check(wrong)


@pytest.mark.parametrize(("depth", "before", "now"), [(1, 0.1002, 0.0566), (2, 0.1760, 0.1187), (4, 0.3234, 0.2502)])
def test_the_gap_of_the_preset(depth: int, before: float, now: float) -> None:
    """Old values, by T1-T10 and one map after the other, beside new ones."""
    value = evaluate(Setting.of(depth=depth, n_train=10**6, seq_len=512, margin=1.0))
    assert value.gap <= now < 0.8 * before
