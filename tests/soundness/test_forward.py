"""Two forward passes, written apart: what the package says a layer computes, and what the attacks run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting
from boundcalc.checkpoints.layers import NUMPY
from boundcalc.layers.base import KINDS, TOKENS
from boundcalc.layers.forward import Fixed, Forward
from boundcalc.setting import Attention, Embedding, Layer, LayerNorm, Lookup, Residual
from boundcalc.testing.drawing import Array, Dice, Parameters
from tests.cases.layers import Arrays
from tests.soundness.network import Network, joined, rotated, tokens_or_rows
from tests.soundness.test_layer_facts import SUBJECTS, Subject


def fixed_of(layer: Layer) -> Fixed:
    """What the attacks take for fixed: turns, distances of positions, types of tokens, the last row."""

    def apart(count: int) -> Any:
        return abs(np.arange(count)[:, None] - np.arange(count))

    def turned(y: Array, _: int | None) -> Array:
        return np.stack([np.stack([rotated(head) for head in heads]) for heads in y])

    fixed = Fixed(row=-1)
    if isinstance(layer, Embedding) and layer.segments:
        fixed = replace(fixed, segment=np.arange(3) % layer.segments)
    if isinstance(layer, Attention):
        buckets = layer.buckets or 1
        fixed = replace(
            fixed,
            rotate=turned if layer.qk == "split" else None,
            added=(lambda count: -0.7 * apart(count)) if layer.offsets == "fixed" else None,
            bucket=lambda count: np.minimum(apart(count), buckets - 1),
        )
    return fixed


def both(subject: Subject, seed: int, fixed: Fixed) -> tuple[Array, Array]:
    layer = subject.layer
    network, dice = subject.network(), Dice(np.random.default_rng(seed), aligned=seed == 0)
    ((_, at, _),) = network.known
    p = network.draw(dice)
    p = joined(network, layer, p) if seed == 1 else p
    x = tokens_or_rows(dice, network, subject.width, layer.vocabulary if isinstance(layer, Embedding | Lookup) else 0)
    ours: Parameters = {("positions" if key[0] == "fixed" else key[0], *key[1:]): w for key, w in p.items()}
    rows = x[:, 0].astype(int) if layer.widths()[0] == TOKENS else x
    found = Forward(NUMPY, Arrays(ours), fixed)((layer,), rows[None])[0]
    return np.atleast_2d(network.apply(layer, p, x, at, project=False)), found


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_they_agree_on_every_layer(subject: Subject) -> None:
    fixed = fixed_of(subject.layer)
    if isinstance(subject.layer, Attention) and subject.layer.normaliser.name == "custom":
        with pytest.raises(InvalidSetting, match="cannot be run"):
            both(subject, 0, fixed)
        return
    if isinstance(subject.layer, LayerNorm):  # below a floor that the class guarantees the attacks clamp, as covers may
        subject = replace(subject, layer=replace(subject.layer, variance_floor=0.0))
    for seed in range(6):
        theirs, ours = both(subject, seed, fixed)
        assert ours.shape == theirs.shape
        assert np.abs(ours - theirs).max() <= 1e-12 * max(1.0, np.abs(theirs).max())


def test_every_layer_is_among_them() -> None:
    assert {type(subject.layer) for subject in SUBJECTS} == set(KINDS.values()) - {Residual}


def test_they_part_where_one_is_told_otherwise() -> None:
    """Negative control: no turns, other distances, another row."""
    for name, said in (("rotary softmax", {"rotate": None}), ("cls", {"row": 0}), ("embedding", {"segment": 0})):
        subject = next(each for each in SUBJECTS if each.name == name)
        theirs, ours = both(subject, 2, replace(fixed_of(subject.layer), **said))
        assert np.abs(ours - theirs).max() > 1e-3


def test_a_residual_adds_what_its_branches_make() -> None:
    inner = tuple(subject.layer for subject in SUBJECTS if subject.name in ("ball", "gelu"))
    layer = Residual(inner[:1], (inner[1:],))
    x = np.random.default_rng(0).standard_normal((3, 2))
    theirs = Network((layer,), SUBJECTS[0].norms, 3, 9.0).run({}, x)
    assert np.abs(Forward(NUMPY, Arrays({}))((layer,), x[None])[0] - theirs).max() < 1e-12
