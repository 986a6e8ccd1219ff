"""How to add a layer from outside: say what it is, say its facts, try to refute them. Here: x -> c tanh(x / c) by entry."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.engine.evaluate import evaluate
from boundcalc.proof.checker import verify
from boundcalc.setting import Architecture, Attention, Layer, Linear, Norms, Pool, Setting, Weight
from boundcalc.setting.layers import layer_from_json, layer_to_json, register_layer
from boundcalc.statements import layers as statements
from boundcalc.statements.layers import register_rule
from boundcalc.statements.slots import Context, Facts


@dataclass(frozen=True, slots=True)
class SoftCap(Layer):
    """Entries of a row of width d stay within c."""

    label: ClassVar[str] = "recipe"
    d: int
    c: float

    def where(self) -> int | None:
        return None

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()

    def inner(self) -> tuple[Layer, ...]:
        return ()

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, self.d

    def rows_before(self, rows: int, seq_len: int) -> int:
        return rows


def rule(layer: SoftCap, at: Context) -> Facts:
    """|c tanh(x/c)| <= min(|x|, c) by entry, and its slope is at most 1."""
    ns = at.ns
    reach = ns.number(layer.c) * ns.sqrt(ns.number(layer.d))
    return Facts(ns.minimum(at.radius, reach), ns.number(1))


def network(*inside: Layer) -> Setting:
    layers = (Attention(4, block=0), *inside, Pool(), Linear("readout", 4, 1))
    return Setting(Architecture(layers=layers), Norms(C=3.0)).but(margin=0.1, n_train=10**8)


@pytest.fixture
def registered() -> Iterator[None]:
    register_layer(SoftCap)
    register_rule(SoftCap, rule)
    yield
    del statements._RULES[SoftCap]


def refuted(claim: Facts, layer: SoftCap, radius: float) -> bool:
    """Whether some rows of norm at most `radius` go further, or are stretched more, than a rule claims."""
    rng = random.Random(0)

    def row(size: float) -> list[float]:
        x = [rng.gauss(0, 1) for _ in range(layer.d)]
        return [size * value / math.hypot(*x) for value in x]

    def image(x: list[float]) -> list[float]:
        return [layer.c * math.tanh(value / layer.c) for value in x]

    for _ in range(500):
        x, step = row(radius * rng.random()), row(1e-4)
        y = [a + b for a, b in zip(x, step, strict=True)]
        moved = math.dist(image(x), image(y)) / math.dist(x, y)
        if math.hypot(*image(x)) > claim.radius * (1 + 1e-9) or moved > claim.lipschitz * (1 + 1e-6):
            return True
    return False


def test_the_rule_resists_and_a_wrong_one_does_not() -> None:
    from boundcalc.base.numbers import FLOAT
    from boundcalc.statements.weights import Weights

    for layer, radius in ((SoftCap(3, 0.5), 2.0), (SoftCap(2, 5.0), 1.0)):
        at = Context(Weights(FLOAT, Norms(C=1.0)), radius, 1, 1)
        honest = rule(layer, at)
        assert not refuted(honest, layer, radius)
        assert refuted(Facts(honest.radius / 2, honest.lipschitz), layer, radius)
        assert refuted(Facts(honest.radius, honest.lipschitz / 2), layer, radius)


@pytest.mark.usefixtures("registered")
def test_a_layer_from_outside_is_searched_checked_and_written() -> None:
    capped, plain = evaluate(network(SoftCap(4, 0.1))), evaluate(network())
    assert verify(capped.certificate).log_value <= capped.certificate.log_value
    assert capped.certificate.log_value < plain.certificate.log_value
    assert layer_from_json(layer_to_json(SoftCap(4, 0.1))) == SoftCap(4, 0.1)


def test_a_layer_without_a_rule_is_refused() -> None:
    with pytest.raises(Unsupported, match="no statement about SoftCap"):
        evaluate(network(SoftCap(4, 0.1)))


@pytest.mark.parametrize("missing", ["where", "weights", "inner", "widths", "rows_before"])
def test_a_layer_that_does_not_say_what_it_is_cannot_be_made(missing: str) -> None:
    methods = {name: getattr(SoftCap, name) for name in ("where", "weights", "inner", "widths", "rows_before")}
    del methods[missing]
    silent = type("Silent", (Layer,), {"label": "silent", **methods})
    with pytest.raises(TypeError, match=missing):
        silent()
    with pytest.raises(InvalidSetting, match="tuple of primitive layers"):
        Architecture(layers=(object(),))  # type: ignore[arg-type]
