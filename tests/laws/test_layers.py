"""Laws of every layer, by the cases it brings; and that each law sees what it is there for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from boundcalc.layers.base import KINDS
from boundcalc.setting import (
    Attention,
    Layer,
    Linear,
    Norms,
    Pool,
)
from boundcalc.statements.network import claimed as facts
from boundcalc.testing import Cases, LayerExample, check_layer
from boundcalc.testing._layers import Rule, claimed
from tests.cases.layers import cases

KNOB = Norms(C=1.3)


@pytest.mark.parametrize("label", KINDS)
def test_laws(label: str) -> None:
    assert check_layer(cases(label)) == []


def test_published_constants_are_never_below_the_sharp_ones() -> None:
    """So the laws of these hold of them (PUB)."""
    larger = 0
    for at in (at for label in KINDS if label != "residual" for at in cases(label).examples):
        sharp = at.claims(claimed)
        published = at.claims(lambda layer, at: facts(layer, replace(at, published=True)))
        pairs = [(published.lipschitz, sharp.lipschitz)]
        pairs += [(a.sensitivity, b.sensitivity) for a, b in zip(published.slots, sharp.slots, strict=True)]
        assert published.radius == sharp.radius
        assert all(more >= less for more, less in pairs)
        larger += any(more > less for more, less in pairs)
    assert larger >= 5


def example(layer: Layer, norms: Norms = KNOB) -> LayerExample:
    return LayerExample(layer, norms)


def broken(at: LayerExample, rule: Rule = claimed) -> set[str]:
    return {complaint.law for complaint in check_layer(Cases([at], None, {}), rule=rule)} - {"complete"}


@pytest.mark.parametrize("layer", [Attention(3, block=0), Pool("mean")])
def test_a_mixing_layer_that_calls_itself_row_wise_is_seen(layer: Attention | Pool) -> None:
    """A mean has no weights whose points could be counted: its rows are tried."""
    assert broken(example(layer)) == set()
    row_wise = {"__slots__": (), "rows_before": lambda self, rows, seq_len: 1}
    wrong: Any = type("RowWise", (type(layer),), row_wise)(*(getattr(layer, field.name) for field in fields(layer)))
    assert "reads_only_the_rows_it_says" in broken(example(wrong), lambda _, at: facts(layer, at))


def test_a_map_that_is_another_at_every_row_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps to every other law: its length, its slope, its rows."""

    def fading(_: Any, x: Any, weights: Any, run: Any) -> Any:
        return x @ weights("W") * np.linspace(0.5, 1, x.shape[1])[:, None]

    monkeypatch.setattr(Linear, "forward", fading)
    assert broken(example(Linear("W", 3, 3))) == {"does_the_same_to_every_row"}
