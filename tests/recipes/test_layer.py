"""How to add a layer from outside: say what it is, say its facts, try to refute them. Here: x -> c tanh(x / c) by entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.evaluate import evaluate
from boundcalc.proof.checker import verify
from boundcalc.setting import Architecture, Attention, Ball, Layer, Linear, Norms, Pool, Setting, Weight, validate
from boundcalc.setting.named import CLASSES, layer_from_json, layer_to_json, register_layer, remove_layer
from boundcalc.statements.layers import LAYERS, facts, unknown_to_noise
from boundcalc.statements.network import Network
from boundcalc.statements.slots import Context, Facts, LayerRule
from boundcalc.testing import Cases, LayerExample, check_layer
from boundcalc.testing.layer_example import Array, Drawn, Rule


@dataclass(frozen=True, slots=True)
class SoftCap(Layer):
    """Entries of a row of width d stay within c."""

    label: ClassVar[str] = "recipe"
    d: int
    c: float

    def __post_init__(self) -> None:
        validate.size("d", self.d)
        validate.positive("c", self.c)

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
def named() -> Iterator[None]:
    register_layer(SoftCap)
    yield
    remove_layer(SoftCap)


@pytest.fixture
def registered() -> Iterator[None]:
    LAYERS.register(LayerRule(SoftCap, rule))
    yield
    LAYERS.remove(SoftCap.label)
    assert SoftCap.label not in LAYERS
    assert SoftCap.label not in CLASSES


def run(c: float) -> Callable[[Drawn, Array], Array]:
    return lambda weights, x: c * np.tanh(x / c)


def example(layer: SoftCap, radius: float) -> LayerExample:
    return LayerExample(layer, Norms(C=1.0), run(layer.c), radius=radius)


def smaller(radius: float = 1.0, lipschitz: float = 1.0) -> Callable[[SoftCap, Context], Facts]:
    def wrong(layer: SoftCap, at: Context) -> Facts:
        honest = rule(layer, at)
        return Facts(radius * honest.radius, lipschitz * honest.lipschitz)

    return wrong


def cases() -> Cases[Rule, LayerExample]:
    """Layers, what must be refused, and the negative controls."""
    examples = [example(SoftCap(3, 0.5), 2.0), example(SoftCap(2, 5.0), 1.0)]
    wrong = {"radius": smaller(radius=0.5), "stretch": smaller(lipschitz=0.5)}
    return Cases(examples, [(lambda: SoftCap(3, -1.0), "c must")], wrong)


@pytest.mark.usefixtures("registered")
def test_the_laws_hold_and_wrong_rules_do_not() -> None:
    check_layer("recipe", cases()).raise_if_broken()


@pytest.mark.usefixtures("registered")
def test_a_layer_from_outside_is_searched_checked_and_written() -> None:
    capped, plain = evaluate(network(SoftCap(4, 0.1))), evaluate(network())
    assert verify(capped.certificate).log_value <= capped.certificate.log_value
    assert capped.certificate.log_value < plain.certificate.log_value
    assert layer_from_json(layer_to_json(SoftCap(4, 0.1))) == SoftCap(4, 0.1)


@pytest.mark.usefixtures("named")
def test_a_layer_without_a_rule_is_refused() -> None:
    with pytest.raises(Unsupported, match="no statement about SoftCap"):
        evaluate(network(SoftCap(4, 0.1)))


@pytest.mark.usefixtures("registered")
def test_what_a_rule_does_not_say_is_not_supposed() -> None:
    """Noise was not proved for it, so it gets none; said, it does."""
    assert unknown_to_noise((Linear("W", 4, 4), SoftCap(4, 0.1))) == "'recipe'"
    LAYERS.remove(SoftCap.label)
    LAYERS.register(LayerRule(SoftCap, rule, noise=lambda layer: layer.c < 1))
    assert unknown_to_noise((SoftCap(4, 0.1),)) is None
    assert unknown_to_noise((SoftCap(4, 1.0),)) == "'recipe'"


@dataclass(frozen=True, slots=True)
class Stretched(Ball):
    """Another layer under the label of one of the library's."""


def test_a_layer_is_not_taken_for_the_one_whose_label_it_has() -> None:
    with pytest.raises(Unsupported, match="no statement about Stretched"):
        facts(Stretched(1.0), None)  # type: ignore[arg-type]
    with pytest.raises(InvalidSetting, match="registered"):
        evaluate(network(Stretched(1.0)))
    with pytest.raises(InvalidSetting, match="registered already"):
        LAYERS.register(LayerRule(Stretched, rule))
    with pytest.raises(InvalidSetting, match="a label of its own"):
        register_layer(Stretched)
    LAYERS.remove("ball")  # one of the library's own stays
    assert LAYERS["ball"].layer is Ball


@dataclass(frozen=True, slots=True)
class Namesake(SoftCap):
    """Another class under the label of this one."""


def test_a_rule_of_a_class_that_files_cannot_name_is_not_left_behind() -> None:
    register_layer(Namesake)
    with pytest.raises(InvalidSetting, match="a label of its own"):
        LAYERS.register(LayerRule(SoftCap, rule))
    assert SoftCap.label not in LAYERS
    remove_layer(Namesake)
    assert SoftCap.label not in CLASSES


@pytest.mark.parametrize("missing", ["where", "weights", "inner", "widths", "rows_before"])
def test_a_layer_that_does_not_say_what_it_is_cannot_be_made(missing: str) -> None:
    methods = {name: getattr(SoftCap, name) for name in ("where", "weights", "inner", "widths", "rows_before")}
    del methods[missing]
    silent = type("Silent", (Layer,), {"label": "silent", **methods})
    with pytest.raises(TypeError, match=missing):
        silent()
    with pytest.raises(InvalidSetting, match="tuple of primitive layers"):
        Architecture(layers=(object(),))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Twice(SoftCap):
    """A layer that holds others and does not say how they run."""

    label: ClassVar[str] = "twice"

    def inner(self) -> tuple[Layer, ...]:
        return (SoftCap(self.d, self.c), SoftCap(self.d, self.c))


@pytest.mark.usefixtures("registered")
def test_a_layer_that_holds_others_says_how_they_run() -> None:
    with pytest.raises(Unsupported, match="does not say how they run"):
        Network(network(Twice(4, 0.1)), FLOAT)
