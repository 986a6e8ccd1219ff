"""How to add a layer: its file (this class), its lines in the verifier, its paragraph in docs/theory.md, one falsifier.

The class says what the layer is, what proofs know of it and how it runs, and nothing else of the package changes; the
falsifier is `check_layer`. Here: x -> c tanh(x / c) by entry. The verifier refuses labels that it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from boundcalc.base.errors import InvalidSetting, Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.base.schema import Positive, Size, read, write
from boundcalc.engine.evaluate import evaluate
from boundcalc.layers.base import KINDS, EveryRow, register_layer, unknown_to_noise
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Forward
from boundcalc.proof.checker import verify
from boundcalc.setting import Architecture, Attention, Ball, Layer, Linear, Norms, Pool, Setting, Weight
from boundcalc.statements.network import Network
from boundcalc.testing import Cases, LayerExample, check_layer
from boundcalc.testing._layers import Rule


@dataclass(frozen=True, slots=True)
class Recipe(EveryRow):
    """Entries of a row of width d stay within c."""

    label: ClassVar[str] = "recipe"
    d: Size
    c: Positive

    def weights(self, seq_len: int) -> tuple[Weight, ...]:
        return ()

    def widths(self) -> tuple[int | None, int | None]:
        return self.d, self.d

    def facts(self, at: Context) -> Facts:
        """|c tanh(x/c)| <= min(|x|, c) by entry, and its slope is at most 1."""
        ns = at.ns
        return Facts(ns.minimum(at.radius, ns.number(self.c) * ns.sqrt(ns.number(self.d))), ns.number(1))

    def noise(self) -> bool:
        return self.c < 1

    def forward(self, x: Any, weights: Any, run: Forward) -> Any:
        return self.c * run.xp.tanh(x / self.c)


def network(*inside: Layer) -> Setting:
    layers = (Attention(4, block=0), *inside, Pool(), Linear("readout", 4, 1))
    return Setting(Architecture(layers=layers), Norms(C=3.0)).but(margin=0.1, n_train=10**8)


@pytest.fixture
def registered() -> Iterator[None]:
    register_layer(Recipe)
    yield
    del KINDS[Recipe.label]


def smaller(radius: float = 1.0, lipschitz: float = 1.0) -> Rule:
    def wrong(layer: Recipe, at: Context) -> Facts:
        honest = layer.facts(at)
        return Facts(radius * honest.radius, lipschitz * honest.lipschitz)

    return wrong


@pytest.mark.usefixtures("registered")
def test_the_laws_hold_and_wrong_facts_do_not() -> None:
    layers = ((Recipe(3, 0.5), 2.0), (Recipe(2, 5.0), 1.0))
    examples = [LayerExample(layer, Norms(C=1.0), radius) for layer, radius in layers]
    wrong = {"radius": smaller(radius=0.5), "stretch": smaller(lipschitz=0.5)}
    assert check_layer(Cases(examples, [(lambda: Recipe(3, -1.0), "recipe c must")], wrong)) == []


@pytest.mark.usefixtures("registered")
def test_it_is_searched_checked_written_run_and_trained() -> None:
    layer = Recipe(4, 0.1)
    capped, plain = evaluate(network(layer)), evaluate(network())
    assert verify(capped.certificate).log_value <= capped.certificate.log_value < plain.certificate.log_value
    assert read(Layer, write(layer), "a layer") == layer
    import torch

    from boundcalc.lab.train.model import through

    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    assert np.allclose(
        LayerExample(layer, Norms(C=1.0)).output({}, x[0]),
        through((layer,), {}, torch.as_tensor(x))[0].numpy(),
        rtol=1e-12,
    )


def test_what_a_layer_does_not_say_is_not_supposed() -> None:
    """Noise was not proved for wide ones; facts that nobody wrote are refused, and so is a forward pass."""
    assert unknown_to_noise((Linear("W", 4, 4), Recipe(4, 1.0))) == "'recipe'"
    assert unknown_to_noise((Recipe(4, 0.1),)) is None

    @dataclass(frozen=True, slots=True)
    class Silent(EveryRow):
        label: ClassVar[str] = "silent"

        def weights(self, seq_len: int) -> tuple[Weight, ...]:
            return ()

        def widths(self) -> tuple[int | None, int | None]:
            return None, None

    with pytest.raises(Unsupported, match="layer 'silent'"):
        Network(network(Silent()), FLOAT)
    with pytest.raises(Unsupported, match="forward pass"):
        LayerExample(Silent(), Norms(C=1.0)).output({}, np.zeros((2, 3)))


@dataclass(frozen=True, slots=True)
class Stretched(Ball):
    """Another layer under the label of one of the library's."""


def test_a_layer_is_not_taken_for_the_one_whose_label_it_has() -> None:
    with pytest.raises(InvalidSetting, match="registered"):
        evaluate(network(Stretched(1.0))).certificate.to_json()
    with pytest.raises(InvalidSetting, match="a label of its own"):
        register_layer(Stretched)
    with pytest.raises(InvalidSetting, match="must be of type Layer"):
        Architecture(layers=(object(),))  # type: ignore[arg-type]
