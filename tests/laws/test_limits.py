"""A limit means in the walk what its words say: a weight of which just that norm is known stays within every radius.

The norms are computed here as docs/cli.md words them, not as the library draws weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.layers.base import KINDS, Weight, weights_of
from boundcalc.setting import Budget, Layer, Norms
from boundcalc.testing._drawing import Array, Dice
from tests.cases.layers import cases
from tests.soundness.network import Network

HEADS, ROWS = 2, 3
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


def worst(layer: Layer, weight: Weight, limit: str, words: Norm, rng: np.random.Generator) -> float:
    """The longest row met, over the radius that the walk claims, where one norm of one weight is 1."""
    budget = Budget(**{limit: 1.0})  # type: ignore[arg-type]
    scores = {f"{side}_scores": Budget(sup=30.0) for side in ("token", "position")}
    norms = Norms(C=1.5, budgets={**scores, weight.kind: budget})
    try:
        network = Network((layer,), norms, ROWS, 2.0)
    except InvalidSetting:  # a norm that needs another beside it
        return 0.0
    parts: list[float] = []
    for _ in range(40):
        dice = Dice(rng, bool(rng.random() < 0.3))
        p = network.draw(dice)
        for key in [key for key in p if key[0] == weight.kind]:
            w = drawn(weight.shape, rng).reshape(p[key].shape)
            size = words(w)
            p[key] = w / size if size > 0 else w
        network.run(p, network.inputs(dice), check=parts)
    return max(parts)


def limits(label: str) -> Iterator[tuple[Layer, Weight, str]]:
    """Every layer of a kind, each of its weights, and each norm that can limit it."""
    for layer in [example.layer for example in cases(label).examples]:
        for weight in {w.kind: w for top in weights_of((layer,), ROWS) for w in top.all}.values():
            yield from ((layer, weight, limit) for limit in sorted(weight.limits & WORDS.keys()))


@pytest.mark.parametrize("label", KINDS)
def test_one_norm_by_its_words_is_enough(label: str) -> None:
    rng, every = np.random.default_rng(sum(map(ord, label))), list(limits(label))
    longest = {(weight.kind, limit): worst(layer, weight, limit, WORDS[limit], rng) for layer, weight, limit in every}
    assert {place: share for place, share in longest.items() if share > 1 + 1e-9} == {}
    assert not every or max(longest.values()) > 0.1


def test_another_norm_than_the_words_say_is_seen() -> None:
    """The longest row is no limit for heads that look at different tokens; the largest entry none for a matrix."""
    rng = np.random.default_rng(1)
    for label, kind, limit, other in (("lookup", "token_values", "heads", "row"), ("linear", "W", "op", "sup")):
        place = next(each for each in limits(label) if (each[1].kind, each[2]) == (kind, limit))
        assert worst(*place, WORDS[other], rng) > 1.01
