"""A6: joined networks are the same functions, their budgets hold, and nothing is joined across what acts.

Products are made here by their own definitions, from the network as it is written and the layers that are left of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import CertificateError
from boundcalc.engine.evaluate import evaluate
from boundcalc.engine.search import Search
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
    Normaliser,
    Norms,
    Pool,
    Residual,
    Sample,
    Setting,
)
from boundcalc.statements import merge
from boundcalc.statements.merge import split_readout
from boundcalc.testing.drawing import Array, Dice, Parameters
from boundcalc.theorems import POLICIES
from tests.proof import alone
from tests.soundness.network import Network, merged

SOFTMAX = Normaliser("softmax", 1.5)
SIGMOID = Normaliser("sigmoid", 1.5)


def setting(*layers: Layer, **budgets: Budget) -> Setting:
    stages = (*layers, Pool("mean"), Linear("readout", 3, 1))
    return Setting(Architecture(seq_len=4, layers=stages), Norms(C=0.9, budgets=budgets))


def map_(kind: str, d: int, k: int, bias: str | None = None, block: int | None = 0) -> Linear:
    return Linear(kind, d, k, bias, block)


def heads(d: int, out: int | None = None, **given: Any) -> Attention:
    return Attention(d, **{"d_value": out, "normaliser": SOFTMAX, "block": 1, **given})


def between(*layers: Layer, radius: float = 1.0, pool: str = "cls") -> Setting:
    """A map, some layers, a map."""
    stages = (map_("A", 3, 3), *layers, Pool(pool), Linear("readout", 3, 1))  # type: ignore[arg-type]
    return Setting(Architecture(layers=stages, input_radius=radius, seq_len=3), Norms(C=1.0))


TANH = Activation("tanh")
JOINED = {
    "nothing": between(),
    "identity": between(Activation("identity")),
    "a ball out of reach": between(Ball(1.0)),
    "pooling": between(pool="mean"),
    "depth 1": Setting.of(depth=1, d=4, seq_len=3),
    "depth 3": Setting.of(depth=3, d=4, seq_len=3, C=0.8),
    "tanh and mean": Setting.of(depth=2, d=4, seq_len=3, activation="tanh", readout="mean"),
    "budgets of their own": Setting.of(
        depth=2,
        d=4,
        seq_len=3,
        norms=Norms(C=1.0, budgets={"W_1[0]": Budget(op=0.5, two_one=0.9), "W_V": Budget(op=2.0, two_one=3.0)}),
    ),
    "offsets in a row": setting(map_("A", 3, 3, "a"), map_("B", 3, 3, "b"), TANH),
    "an offset that moves on": setting(map_("A", 3, 3, "a"), map_("B", 3, 3), TANH),
    "an offset before attention": setting(map_("A", 3, 3, "a"), heads(3)),
    "offsets on both sides": setting(map_("A", 3, 3, "a"), heads(3, qk_bias=True, v_bias=True)),
    "a query bias alone": setting(map_("A", 3, 3), heads(3, qk_bias=True, heads=2)),
    "separate queries and keys": setting(map_("A", 3, 3), heads(3, qk="split", d_head=1, heads=2)),
    "separate, with offsets, sigmoid": setting(
        map_("A", 3, 3, "a"), heads(3, qk="split", d_head=1, normaliser=SIGMOID, v_bias=True)
    ),
    "separate and normalised": setting(
        map_("A", 3, 3, "a"), heads(3, qk="split", d_head=2, qk_norm="head", qk_eps=0.1, qk_bias=True)
    ),
    "grouped queries": setting(map_("A", 3, 3), heads(3, qk="split", d_head=1, heads=4, kv_heads=2)),
    "a query of its own": setting(map_("A", 3, 3, "a"), heads(3, qk="fixed")),
    "sigmoid without offsets": setting(map_("A", 3, 3), heads(3, normaliser=SIGMOID)),
    "an output projection": setting(heads(3, 3, combine="concat"), map_("W_O", 3, 3), TANH),
    "with offsets": setting(heads(3, 3, combine="concat", v_bias=True), map_("W_O", 3, 3, "b_O"), TANH),
    "of wide heads": setting(heads(3, 7, combine="concat", heads=2, v_bias=True), map_("W_O", 14, 3, "b_O"), TANH),
    "after a sum of heads": setting(heads(3, 9, heads=2, v_bias=True), map_("W_O", 9, 3), TANH),
    "between two attentions": setting(
        heads(3, 3, combine="concat", block=0), map_("W_O", 3, 3, "b_O"), Ball(40.0), heads(3), TANH
    ),
    "in a branch": setting(
        Residual((heads(3, 3, combine="concat"), map_("W_O", 3, 3)), ((map_("A", 3, 3), map_("B", 3, 3)),)), TANH
    ),
    "to the read-out": setting(Residual((heads(3, 3, combine="concat"), map_("W_O", 3, 3)))),
    "heads of their own": setting(
        map_("A", 3, 3, "a"),
        heads(3, 4, combine="concat", heads=2, v_bias=True),
        map_("W_O", 8, 3),
        TANH,
        **{"W_V[1,0]": Budget(op=0.4, two_one=0.5), "W_QK[1,1]": Budget(op=2.0), "b_V[1,1]": Budget(op=0.1)},
    ),
    "pre": Setting.of(
        depth=2, d=4, seq_len=4, style="pre", residual=True, normalisation="layernorm", eps=0.5, bias=True
    ),
    "post with RoPE": Setting.of(depth=2, d=4, seq_len=4, style="post", normalisation="none", rope=True, bias=True),
}
APART = {
    "an activation": between(Activation("relu")),
    "an activation of slope 1 at 0": between(TANH),
    "a ball within reach": between(Ball(1.0), radius=5.0),
    "LayerNorm": between(LayerNorm("norm", 3, gain=False, centred=False)),
    "a residual": setting(Residual((map_("A", 3, 3),)), map_("B", 3, 3), TANH),
    "large weights": Setting.of(depth=2, d=4, seq_len=3, C=1.5),
    "an activation after heads": setting(heads(3, 3, combine="concat"), TANH, map_("W_O", 3, 3), TANH),
    "LayerNorm after heads": setting(
        heads(3, 3, combine="concat"), LayerNorm("norm", 3, gain=False), map_("W_O", 3, 3), TANH
    ),
    "narrow heads": setting(heads(3, 1, combine="concat", heads=3), map_("W_O", 3, 3), TANH),
    "a bottleneck": setting(map_("A", 6, 2), heads(2, 3), TANH),
    "shared values": setting(heads(3, 6, combine="concat", heads=2, kv_heads=1), map_("W_O", 12, 3), TANH),
    "offsets of values under sigmoid": setting(
        heads(3, 3, combine="concat", normaliser=SIGMOID, v_bias=True), map_("W_O", 3, 3), TANH
    ),
    "an offset before sigmoid scores": setting(map_("A", 3, 3, "a"), heads(3, normaliser=SIGMOID), TANH),
    "an offset before capped scores": setting(map_("A", 3, 3, "a"), heads(3, cap=2.0), TANH),
}


def linear_names(layers: Sequence[Layer]) -> Iterator[tuple[str, int | None]]:
    for layer in layers:
        if isinstance(layer, Linear):
            yield layer.kind, layer.block
        elif isinstance(layer, Residual):
            for branch in layer.branches:
                yield from linear_names(branch)


class Products:
    """The weights of the larger network."""

    def __init__(self, base: Setting, larger: Setting, p: Parameters) -> None:
        self.p, self.old = dict(p), p
        self.left = set(linear_names(larger.architecture.stages))
        self.heads = {layer.block: layer for layer in flat(larger.architecture.stages) if isinstance(layer, Attention)}
        self.row(base.architecture.stages)

    def row(self, layers: Sequence[Layer]) -> None:
        waits: tuple[Array, Array | None] | None = None
        last: Attention | None = None
        for layer in layers:
            if isinstance(layer, Residual):
                for branch in layer.branches:
                    self.row(branch)
            if isinstance(layer, Linear):
                waits = self.linear(waits, layer)
            elif isinstance(layer, Ball | Pool):
                continue
            else:
                if waits is not None and last is not None and self.changed(last):
                    waits = self.into(last, waits)
                if isinstance(layer, Attention) and waits is not None:
                    waits = self.attention(waits, layer)
                last = layer if isinstance(layer, Attention) else None
        if waits is not None:
            assert last is not None
            self.into(last, waits)

    def changed(self, layer: Attention) -> bool:
        """Whether what follows the heads has gone into their values."""
        now = self.heads[layer.block]
        return (now.out, now.combine) != (layer.out, layer.combine)

    def linear(self, waits: tuple[Array, Array | None] | None, layer: Linear) -> tuple[Array, Array | None] | None:
        w = self.old[layer.kind, layer.block, None]
        b = self.old[layer.bias, layer.block, None] if layer.bias else None
        if waits is not None:
            a, c = waits
            moved = None if c is None else c @ w
            w, b = a @ w, moved if b is None else b if moved is None else b + moved
        if (layer.kind, layer.block) not in self.left:
            return w, b
        self.p[layer.kind, layer.block, None] = w
        if b is not None:
            self.p[layer.bias or f"b_{layer.kind}", layer.block, None] = b
        return None

    def attention(self, waits: tuple[Array, Array | None], layer: Attention) -> None:
        (a, c), block = waits, layer.block
        zero = np.zeros(a.shape[1])
        row = zero if c is None else c
        shared = layer.groups

        def affine(kind: str, name: str, head: int) -> None:
            w = self.old[kind, block, head]
            self.p[kind, block, head] = a @ w
            own = self.old.get((name, block, head))
            if own is not None or c is not None:
                self.p[name, block, head] = row @ w + (0 if own is None else own)

        for head in range(shared):
            affine("W_V", "b_V", head)
        for head in range(layer.heads):
            if layer.qk == "split":
                affine("W_Q", "b_Q", head)
                if head < shared:
                    affine("W_K", "b_K", head)
            elif layer.qk == "fixed":
                self.p["q", block, head] = a @ self.old["q", block, head]
            else:
                w = self.old["W_QK", block, head]
                left = a if c is None and not layer.qk_bias else np.vstack([a, row])
                if layer.qk_bias:
                    left = np.hstack([left, np.eye(len(left))[:, -1:]])
                self.p["W_QK", block, head] = left @ w @ a.T
        return None

    def into(self, layer: Attention, waits: tuple[Array, Array | None]) -> None:
        (a, c), n = waits, layer.heads
        wide = layer.combine == "concat"
        parts = np.split(a, n) if wide else [a] * n
        values = [self.p.get(("b_V", layer.block, head)) for head in range(n)]
        added = sum(
            (v @ part for v, part in zip(values, parts, strict=True) if v is not None), start=np.zeros(a.shape[1])
        )
        added = added if c is None else added + c
        for head in range(n):
            self.p["W_V", layer.block, head] = self.p["W_V", layer.block, head] @ parts[head]
            if self.heads[layer.block].v_bias:
                self.p["b_V", layer.block, head] = added / n
        return None


def flat(layers: Sequence[Layer]) -> Iterator[Layer]:
    for layer in layers:
        yield layer
        if isinstance(layer, Residual):
            for branch in layer.branches:
                yield from flat(branch)


SIZES: dict[str, Callable[[Array], float]] = {
    "op": lambda w: float(np.linalg.norm(w, 2)),
    "fro": lambda w: float(np.linalg.norm(w)),
    "two_one": lambda w: float(np.linalg.norm(w, axis=0).sum()),
    "two_one_t": lambda w: float(np.linalg.norm(w, axis=1).sum()),
    "rank": lambda w: float(np.linalg.matrix_rank(w)),
}


def faults(base: Setting, rounds: int = 12) -> set[str]:
    """Where the joined network differs, or has weights outside their budgets."""
    base = split_readout(base) or base  # which test_products.py is about
    larger = merged(base)
    assert larger is not None
    radius = base.architecture.input_radius
    before, after = (Network(s.architecture.stages, s.norms, s.architecture.seq_len, radius) for s in (base, larger))
    found: set[str] = set()
    for seed in range(rounds):
        dice = Dice(np.random.default_rng(seed), aligned=seed % 3 == 0)
        p = before.draw(dice)
        made = Products(base, larger, p).p
        x = radius * dice.unit(base.architecture.seq_len, 3 if base.architecture.layers else 4)
        plain, product = (plainly(net, q, x) for net, q in ((before, p), (after, made)))
        if np.abs(plain - product).max() > 1e-10:
            found.add("another function")
        for weight in (w for layer in flat(larger.architecture.stages) for w in layer.weights(4)):
            for head in range(weight.copies) if weight.heads else (None,):
                w = made[weight.kind, weight.block, head]
                budget = larger.norms.find(weight.kind, weight.block, head)
                w = w if w.ndim == 2 else w[:, None]
                for name, size in SIZES.items():
                    limit = getattr(budget, name)
                    if limit is not None and size(w) > limit * (1 + 1e-9) and "gain" not in weight.kind:
                        found.add(f"{weight.kind} {name}")
                if budget.schatten is not None and np.linalg.norm(w, "nuc") > budget.schatten[1] * (1 + 1e-9):
                    found.add(f"{weight.kind} nuclear")
    return found


def plainly(net: Network, p: Parameters, x: Array) -> Array:
    """The network without the projections of covers."""
    known = iter(net.known)

    def run(layers: Sequence[Layer], x: Array) -> Array:
        for layer in layers:
            if isinstance(layer, Residual):
                parts = [run(branch, x) for branch in layer.branches]
                x = sum(parts[1:], start=parts[0])
            else:
                _, at, _ = next(known)
                x = np.atleast_2d(net.apply(layer, p, x, at, project=False))
        return x

    return run(net.layers, x)


@pytest.mark.parametrize("what", JOINED)
def test_joined_networks_are_the_same_function(what: str) -> None:
    assert faults(JOINED[what]) == set()


@pytest.mark.parametrize("what", JOINED)
def test_both_checkers_know_the_same_larger_class(what: str) -> None:
    base = replace(JOINED[what], sample=Sample(10**7, margin=0.02))
    found = evaluate(base)
    ways = [found.certificate] if found.risk_refusal is not None else [found.certificate, found.risk_certificate]
    for certificate in ways:
        assert check(certificate).log_value == pytest.approx(float(alone.log_value(certificate)), abs=1e-12)
        if certificate.meeting:
            with pytest.raises(CertificateError):
                alone.log_value(replace(certificate, meeting=False))


@pytest.mark.parametrize("what", APART)
def test_what_does_not_meet_is_left_alone(what: str) -> None:
    larger = merged(APART[what])
    if larger is not None:  # only the read-out may have met something
        kept = [layer for layer in APART[what].architecture.stages[:-2]]
        assert list(larger.architecture.stages[: len(kept)]) == kept


@pytest.mark.parametrize("what", ["an offset before sigmoid scores", "an offset before capped scores"])
def test_a_condition_on_scores_that_is_dropped_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "_offsets_fit", lambda layer: True)
    assert "another function" in faults(APART[what])


@pytest.mark.parametrize("what", ["an activation", "an activation of slope 1 at 0", "a ball within reach", "LayerNorm"])
def test_a_condition_on_what_is_between_that_is_dropped_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "_idle", lambda layer, radius: isinstance(layer, Activation | Ball | LayerNorm))
    assert "another function" in faults(APART[what])


def test_an_activation_between_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = merge._idle
    monkeypatch.setattr(merge, "_idle", lambda layer, radius: isinstance(layer, Activation) or honest(layer, radius))
    base = setting(map_("A", 3, 3, "a"), TANH, heads(3, qk="split", d_head=2), TANH)
    assert "another function" in faults(base)


@pytest.mark.parametrize(
    ("what", "part", "name"),
    [
        ("an offset before attention", "with_row", "offset"),
        ("offsets on both sides", "with_corner", "corner"),
        ("separate queries and keys", "product", "half"),
    ],
)
def test_budgets_too_small_are_noticed(what: str, part: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = getattr(merge, part)
    shorter: dict[str, Callable[..., object]] = {
        "with_row": lambda ns, a, row, width: a,
        "with_corner": lambda ns, a, row, width: a,
        "product": lambda ns, a, b: replace(honest(ns, a, b), op=a.op * b.op / 2, fro=a.op * b.op / 2),
    }
    monkeypatch.setattr(merge, part, shorter[part])
    assert any("another" not in fault for fault in faults(JOINED[what], 40)), name


def test_the_offsets_of_heads_are_all_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = merge._Merger.length
    monkeypatch.setattr(merge._Merger, "length", lambda self, *at: honest(self, *at) / 1000)
    assert "b_V op" in faults(JOINED["with offsets"], 30)


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
