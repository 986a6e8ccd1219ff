"""Laws of every layer, run on real numbers by the networks of the soundness tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import Unsupported
from boundcalc.laws import Cases, LayerExample, check_layer
from boundcalc.laws.layers import LAWS, Array, Drawn, Rule
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Budget,
    Embedding,
    Experts,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Normaliser,
    Norms,
    Pool,
    SoftCap,
)
from boundcalc.setting.named import CLASSES
from boundcalc.statements.layers import facts
from boundcalc.statements.slots import Context, Facts
from tests.soundness.network import Dice, Network, joined

KNOB = Norms(C=1.3)
GAINS = Norms(
    C=1.0, budgets={"norm.gain": Budget(sup=1.2), "norm_Q.gain": Budget(sup=1.1), "norm_K.gain": Budget(sup=0.9)}
)
OFFSETS = Norms(C=1.0, budgets={"score_offsets": Budget(sup=0.7)})
SPLIT = Attention(4, 2, d_head=2, d_value=2, qk="split", combine="concat", causal=True, block=0)


def _cast(word: str) -> Any:
    """A word that no type allows."""
    return word


EXAMPLES: dict[str, list[tuple[Layer, Norms]]] = {
    "linear": [(Linear("W", 3, 2), KNOB), (Linear("W", 3, 2, bias="c"), KNOB)],
    "activation": [(Activation(name), KNOB) for name in ("relu", "gelu", "silu", "mish", "tanh")],
    "ball": [(Ball(0.7), KNOB)],
    "softcap": [(SoftCap(3, 0.3), KNOB)],
    "layernorm": [
        (LayerNorm("norm", 3, 0.1), GAINS),
        (LayerNorm("norm", 3, 0.2, offset=True, centred=False), GAINS),
        (LayerNorm("norm", 3, 0.1, around_one=True), GAINS),
    ],
    "gated": [(GatedFeedForward(3, 4, "silu", 0), KNOB), (GatedFeedForward(3, 4, "gelu", 0, bias=True), KNOB)],
    "experts": [(Experts(3, 2, 3, block=0), KNOB)],
    "embedding": [(Embedding(5, 3), KNOB), (Embedding(5, 3, positions="learned"), KNOB)],
    "pool": [(Pool(), KNOB), (Pool("mean"), KNOB)],
    "attention": [
        (Attention(3, block=0), KNOB),
        (Attention(3, 2, normaliser=Normaliser("softmax1"), block=0), KNOB),
        (Attention(3, 2, normaliser=Normaliser("sigmoid"), causal=True, block=0), KNOB),
        (SPLIT, KNOB),
        (replace(SPLIT, qk_norm="head", qk_eps=0.3), GAINS),
        (replace(SPLIT, qk="joint", offsets="learned", buckets=2), OFFSETS),
    ],
}
REFUSALS: dict[str, list[tuple[Callable[[], object], str]]] = {
    "activation": [(lambda: Activation("relu2"), "relu2|activation")],
    "attention": [
        (lambda: Attention(3, normaliser=Normaliser("sparsemax")), "sparsemax"),
        (lambda: Attention(3, 2, kv_heads=5), "kv_heads|groups|divide"),
    ],
    "ball": [(lambda: Ball(-1.0), "radius")],
    "softcap": [(lambda: SoftCap(3, 0.0), "cap")],
    "linear": [(lambda: Linear("W", 0, 2), "at least 1|between 1")],
    "layernorm": [(lambda: LayerNorm("norm", 3, -1.0), "eps")],
    "gated": [(lambda: GatedFeedForward(3, 4, "relu2", 0), "relu2|activation")],
    "experts": [(lambda: Experts(3, 2, 0, block=0), "experts")],
    "embedding": [(lambda: Embedding(5, 3, positions=_cast("sometimes")), "positions")],
    "pool": [(lambda: Pool(_cast("median")), "median|how")],
}

ELSEWHERE = {
    "residual": "composition's business",
    "hidden": "tests/soundness/test_hidden.py attacks it",
    "lookup": "tests/soundness/test_products.py attacks it",
}
"""Layers that are not tried here, and why."""
TOO_SMALL = {"gated": 0.2, "experts": 0.1, "attention": 0.2}
"""The part of a claim that is noticed to be too little; half of it, elsewhere."""


def example(layer: Layer, norms: Norms) -> LayerExample:
    """A layer with the weights and the forward pass of the soundness tests."""
    network = Network((layer,), norms, 3)
    ((_, at, _),) = network.known
    vocabulary = layer.vocabulary if isinstance(layer, Embedding) else 0

    def draw(rng: np.random.Generator) -> Drawn:
        p = network.draw(Dice(rng, aligned=rng.random() < 0.4))
        return joined(network, layer, p) if isinstance(layer, Attention) else p

    def run(weights: Drawn, x: Array) -> Array:
        return network.apply(layer, dict(weights), x, at, project=False)

    def tokens(rng: np.random.Generator) -> Array:
        return rng.integers(vocabulary, size=(3, 1)).astype(float)

    return LayerExample(layer, norms, draw, run, inputs=tokens if vocabulary else None)


def changed(**factors: float) -> Rule:
    """A rule with some of its facts times a factor."""

    def rule(layer: Layer, at: Context) -> Facts:
        here = facts(layer, at)
        slots = tuple(
            replace(slot, sensitivity=factors.get("sensitivity", 1.0) * slot.sensitivity) for slot in here.slots
        )
        radius, stretch = factors.get("radius", 1.0), factors.get("lipschitz", 1.0)
        return replace(here, radius=radius * here.radius, lipschitz=stretch * here.lipschitz, slots=slots)

    return rule


def test_every_layer_is_here() -> None:
    assert set(EXAMPLES) == set(REFUSALS) == set(CLASSES) - ELSEWHERE.keys()


@pytest.mark.parametrize("label", EXAMPLES)
def test_laws(label: str) -> None:
    examples = [example(*each) for each in EXAMPLES[label]]
    part = TOO_SMALL.get(label, 0.45)
    wrong = {"radius": changed(radius=part)}
    if label != "embedding":  # tokens have no neighbours
        wrong["Lipschitz factor"] = changed(lipschitz=part)
    if any(each.claims(facts).slots for each in examples):
        wrong["sensitivity"] = changed(sensitivity=part)
    check_layer(label, Cases(examples, REFUSALS[label], wrong)).raise_if_broken()


def test_what_one_law_alone_sees() -> None:
    """A mixing layer that calls itself row-wise; weights that nobody mentions; weights outside the class."""

    class Unmixed(Attention):
        __slots__ = ()

        def rows_before(self, rows: int, seq_len: int) -> int:
            return rows

    def laws(at: LayerExample) -> set[str]:
        found = check_layer(
            "it", Cases([at], None, {}), rule=lambda layer, context: facts(Attention(3, block=0), context)
        )
        return {complaint.law for complaint in found.complaints}

    honest = example(Attention(3, block=0), KNOB)
    assert laws(honest) == {"complete"}
    assert "reads_only_the_rows_it_says" in laws(replace(honest, layer=Unmixed(3, block=0)))
    more = replace(honest, draw=lambda rng: {**honest.draw(rng), ("W_secret", 0, 0): np.ones((2, 2))})
    assert "trains_what_it_says" in laws(more)
    large = replace(honest, draw=lambda rng: {key: 1.5 * array for key, array in honest.draw(rng).items()})
    assert "is_drawn_within_its_budgets" in laws(large)
    assert len(LAWS) == 8


def test_a_layer_without_a_rule_is_refused() -> None:
    class Unknown(Ball):
        __slots__ = ()

    with pytest.raises(Unsupported, match="no statement about Unknown"):
        example(Unknown(1.0), KNOB)
