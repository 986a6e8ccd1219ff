"""A limit means in the walk what its words say: a weight of which just that norm is known stays within every radius.

The norms are computed here as docs/cli.md words them, not as the library draws weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.layers.base import Weight, weights_of
from boundcalc.layers.merged import Hidden, Lookup
from boundcalc.setting import (
    Attention,
    Budget,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Norms,
    Pool,
)
from boundcalc.testing._drawing import Array, Dice
from tests.soundness.network import Network

HEADS, ROWS, TOKENS = 2, 3, 4
Norm = Callable[[Array], float]


def longest_parts(v: Array) -> float:
    """The longest value of each head, as one vector."""
    return float(np.linalg.norm(np.linalg.norm(v.reshape(len(v), HEADS, -1), axis=2).max(axis=0)))


WORDS: Mapping[str, Norm] = {
    "op": lambda w: float(np.linalg.norm(w) if w.ndim == 1 else np.linalg.svd(w, compute_uv=False)[0]),
    "fro": lambda w: float(np.sqrt((w**2).sum())),
    "two_one": lambda w: float(np.sqrt((w**2).sum(axis=0)).sum()) if w.ndim > 1 else float(np.linalg.norm(w)),
    "two_one_t": lambda w: float(np.sqrt((w**2).sum(axis=1)).sum()),
    "one_one": lambda w: float(np.abs(w).sum()),
    "nuclear": lambda w: float(np.linalg.svd(w, compute_uv=False).sum()),
    "sup": lambda w: float(np.abs(w).max()),
    "row": lambda w: float(np.sqrt((w**2).sum(axis=1)).max()),
    "heads": longest_parts,
}
LAYERS: Mapping[str, tuple[Layer, ...]] = {
    "linear": (Linear("W", 3, 3, bias="b"),),
    "heads side by side": (Attention(3, HEADS, d_head=2, d_value=2, combine="concat", v_bias=True),),
    "queries and keys": (Attention(3, HEADS, d_head=2, qk="split", qk_bias=True, causal=True),),
    "tokens": (Embedding(TOKENS, 3, "learned", segments=2),),
    "layernorm": (LayerNorm("norm", 3, 0.1, offset=True),),
    "gated": (GatedFeedForward(3, 4, bias=True),),
    "hidden": (Hidden("W", "v", 3, 4, "gelu", "c"),),
    "looked up": (Lookup(TOKENS, HEADS, 2),),
    "network": (Embedding(TOKENS, 3), Attention(3, HEADS), LayerNorm("n", 3, 0.1), Pool(), Linear("readout", 3, 1)),
}


def drawn(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Single entries, one entry a row, rank one, or anything."""
    w = rng.standard_normal(shape)
    kind = rng.integers(4)
    if kind == 0:
        w *= np.abs(w) == np.abs(w).max()
    elif kind == 1 and w.ndim > 1:
        w = np.eye(shape[1])[rng.integers(shape[1], size=shape[0])]
    elif kind == 2 and w.ndim > 1:
        w = np.outer(w[:, 0], w[0])
    return np.asarray(w, float)


def worst(layers: tuple[Layer, ...], weight: Weight, limit: str, words: Norm, rng: np.random.Generator) -> float:
    """The longest row met, over the radius that the walk claims, where one norm of one weight is 1."""
    budget = Budget(**{limit: 1.0})  # type: ignore[arg-type]
    scores = {f"{side}_scores": Budget(sup=30.0) for side in ("token", "position")}
    norms = Norms(C=1.5, budgets={**scores, weight.kind: budget})
    try:
        network = Network(layers, norms, ROWS, 2.0)
    except InvalidSetting:  # a norm that needs another beside it
        return 0.0
    parts: list[float] = []
    for _ in range(60):
        dice = Dice(rng, bool(rng.random() < 0.3))
        p = network.draw(dice)
        for key in [key for key in p if key[0] == weight.kind]:
            w = drawn(weight.shape, rng).reshape(p[key].shape)
            size = words(w)
            p[key] = w / size if size > 0 else w
        network.run(p, network.inputs(dice), check=parts)
    return max(parts)


def limits() -> Iterator[tuple[str, Weight, str]]:
    for name, layers in LAYERS.items():
        for weight in {w.kind: w for top in weights_of(layers, ROWS) for w in top.all}.values():
            yield from ((name, weight, limit) for limit in sorted(weight.limits & WORDS.keys()))


@pytest.mark.parametrize("name", LAYERS)
def test_one_norm_by_its_words_is_enough(name: str) -> None:
    rng = np.random.default_rng(sum(map(ord, name)))
    tried = 0
    for of, weight, limit in limits():
        if of == name:
            found = worst(LAYERS[name], weight, limit, WORDS[limit], rng)
            assert found <= 1 + 1e-9, (weight.kind, limit)
            tried += found > 0
    assert tried


def test_another_norm_than_the_words_say_is_seen() -> None:
    """The longest row is no limit for heads that look at different tokens; the largest entry none for a length."""
    rng = np.random.default_rng(1)
    found = {(of, weight.kind, limit): weight for of, weight, limit in limits()}
    for of, kind, limit, other in (("looked up", "token_values", "heads", "row"), ("linear", "b", "op", "sup")):
        assert worst(LAYERS[of], found[of, kind, limit], limit, WORDS[other], rng) > 1.01
