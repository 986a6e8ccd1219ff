"""The largest margin of a class (G0e): sharp where layers shorten rows, and the same in what is refused and what is
said."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from boundcalc import Setting, compare
from boundcalc.base.errors import CertificateError
from boundcalc.base.intervals import upper_float
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.search import Search
from boundcalc.layers.facts import largest_margin
from boundcalc.proof.checker import check
from boundcalc.setting import (
    Activation,
    Architecture,
    Budget,
    GatedFeedForward,
    Layer,
    Linear,
    Pool,
    Sample,
    SoftCap,
)
from boundcalc.setting.norms import Norms
from boundcalc.statements.premise import margin_of_class, margin_on_both_labels, no_member
from boundcalc.testing.drawing import Array, Dice, Parameters, within
from boundcalc.theorems import POLICIES
from tests.laws.settings import settings
from tests.soundness.network import Network

ROUNDING = 1e-9


def one_hot(width: int) -> Array:
    return np.eye(1, width)[0]


def direction(x: Array) -> Array:
    size = float(np.linalg.norm(x[0]))
    return x[0] / size if size > 0 else one_hot(len(x[0]))


def test_the_margin_of_an_output_is_sharp_in_its_length_for_every_number_of_classes() -> None:
    """An output of length R along the extreme direction has the margin, and no other has more."""
    rng = np.random.default_rng(0)
    for classes in (2, 3, 10):
        most = float(largest_margin(FLOAT, 1.0, classes))
        outputs = rng.standard_normal((4000, classes))
        outputs /= np.linalg.norm(outputs, axis=1, keepdims=True)
        margins = outputs[:, 0] - outputs[:, 1:].max(axis=1)
        assert margins.max() <= most
        extreme = np.append(1.0, -np.ones(classes - 1) / (classes - 1))
        extreme /= np.linalg.norm(extreme)
        assert extreme[0] - extreme[1] == pytest.approx(most, rel=1e-12)


def test_what_is_printed_and_what_the_checker_accepts() -> None:
    """Refused together: `compare` prints no risk, and a certificate of one, forged or found, does not pass."""
    refused = Setting.of(depth=1, C=0.5, margin=0.2)
    for value in compare(refused):
        assert value.risk_refusal is not None
        assert value.gap <= 1
    met = refused.but(margin=0.04)
    for policy in (each for each in POLICIES.values() if each.refuses(met) is None):
        assert list(Search(refused, policy).candidates("risk")) == []
        for found in Search(met, policy).candidates("risk"):
            forged = replace(found.certificate, setting=refused)  # whose covers are of a larger scale than they need be
            with pytest.raises(CertificateError, match=r"margin above 0\.0441"):
                check(forged)
    assert all(value.risk_refusal is None for value in compare(met))
    assert all(check(found.certificate) for found in Search(met, POLICIES["best"]).candidates("risk"))


def test_what_is_said_of_the_largest_margin_is_true_to_the_last_digit() -> None:
    """No margin is above the number said to be above all, and a gamma below the one advised is below the largest."""
    for plain in settings("said", 60):
        setting = plain.but(seq_len=min(plain.architecture.seq_len, 16), variance_floor=0.0)
        most = upper_float(margin_on_both_labels(setting))
        if not 1e-250 < most < 1e250:
            continue
        refusal = no_member(setting.but(margin=2 * most))
        assert refusal is not None
        (above,) = re.findall(r"has a margin above (\S+)", refusal.got)
        (below,) = re.findall(r"Take a gamma below (\S+),", refusal.fix)
        assert number(above) >= most * (1 - 1e-15)
        assert number(below) <= most
        assert no_member(setting.but(margin=number(below) * (1 - 1e-9))) is None


def number(text: str) -> float:
    """A number as people write it: 10^9."""
    base, power, exponent = text.partition("^")
    return float(base) ** int(exponent) if power else float(text)


def test_where_the_premise_is_not_asked() -> None:
    """A training error of 1, and a loss that is no ramp, suppose no margin."""
    asked = Setting.of(depth=1, margin=100.0)
    assert no_member(asked.but(train_error=1.0)) is None
    assert no_member(asked.but(lipschitz=2.0)) is None
    assert no_member(Setting.of(depth=1, margin=100.0, train_error=0.999)) is not None


def test_a_matrix_of_rank_zero_leaves_no_margin() -> None:
    norms = Norms(C=1.0, budgets={"readout": Budget(op=1.0, rank=0)})
    assert no_member(replace(Setting.of(depth=1), norms=norms)) is not None


def _behind(ends: Sequence[Layer], classes: int) -> Setting:
    """Vectors of length 2 and width 3, these layers, a read-out of norm 3 for so many classes.

    Soft caps go behind it.
    """
    caps = tuple(layer for layer in ends if isinstance(layer, SoftCap) and layer.d == classes)
    inner = tuple(layer for layer in ends if layer not in caps)
    layers = (*inner, Pool(), Linear("readout", 3, classes), *caps)
    architecture = Architecture(seq_len=1, input_radius=2.0, classes=classes, layers=layers)
    return Setting(architecture, Norms(C=3.0), Sample())


def _climbed(setting: Setting, rng: np.random.Generator) -> float:
    """The largest margin that random steps of weights and input come to."""
    architecture = setting.architecture
    network = Network(architecture.stages, setting.norms, architecture.seq_len, architecture.input_radius)

    def margin(weights: Parameters, x: Array) -> float:
        known = iter(network.known)
        for layer in architecture.stages:
            x = np.atleast_2d(network.apply(layer, weights, x, next(known)[1], project=False))
        return float(x[0, 0] if x.shape[1] == 1 else x[0, 0] - x[0, 1:].max())

    best = -np.inf
    for _ in range(4):
        weights, x = network.draw(Dice(rng)), 2.0 * direction(rng.standard_normal((1, 3)))[None]
        here = margin(weights, x)
        for step in range(400):
            size = 0.5 * 0.985**step
            other = {
                key: within(w + size * rng.standard_normal(w.shape), setting.norms.find(key[0], key[1]))
                for key, w in weights.items()
            }
            y = 2.0 * direction(x + size * rng.standard_normal(x.shape))[None]
            if (there := margin(other, y)) > here:
                weights, x, here = other, y, there
        best = max(best, here)
    return best


ENDS: dict[str, tuple[Callable[[int], tuple[Layer, ...]], float, float]] = {
    "capped logits": (lambda k: (SoftCap(k, 0.8),), 0.99, 0.85),
    "tanh": (lambda _: (Activation("tanh"),), 0.99, 0.85),
    "quick gelu": (lambda _: (Activation("quick_gelu"),), 0.99, 0.85),
    "capped rows": (lambda _: (SoftCap(3, 0.5),), 0.99, 0.85),
    "gated tanh": (lambda _: (GatedFeedForward(3, 4, "tanh"),), 0.7, 0.3),
}
"""Layers, and the part of the largest margin certified that random search comes to: with up to two classes, and with
five."""


@pytest.mark.parametrize("classes", [1, 2, 5])
@pytest.mark.parametrize("name", sorted(ENDS))
def test_layers_that_shorten_rows_leave_no_larger_margin(name: str, classes: int) -> None:
    """What bends rows bends margins: a gamma above what they reach would be a premise that nobody meets."""
    end, few, several = ENDS[name]
    setting = _behind(end(classes), classes)
    most = upper_float(margin_of_class(setting))
    found = _climbed(setting, np.random.default_rng(classes))
    assert found <= most * (1 + ROUNDING)
    assert found > (few if classes <= 2 else several) * most
    for factor, speaks in ((1.001, False), (0.999, True)):
        assert (no_member(setting.but(margin=factor * most)) is None) is speaks
