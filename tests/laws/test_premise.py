"""Every risk bound speaks of some network: a network of the class is built that has a margin above gamma (G0e).

All rows of its input are equal, every matrix has rank one and passes on the row it gets, every offset points the same
way. Where each layer reaches its radius so (`exact`), the largest margin certified is attained; elsewhere a gamma in a
small zone below it may be out of reach, which is counted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from boundcalc import Setting, compare
from boundcalc.base.errors import CertificateError, Refusal
from boundcalc.base.intervals import upper_float
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.search import Search
from boundcalc.formulas.theorems import POLICIES
from boundcalc.proof.checker import check
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Budget,
    Embedding,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Pool,
    Residual,
    Sample,
    SoftCap,
)
from boundcalc.setting.norms import Norms
from boundcalc.statements.premise import margin_of_class, margin_on_both_labels, no_member
from boundcalc.statements.slots import largest_margin
from boundcalc.testing.drawing import Array, Dice, Parameters, within
from tests.laws.settings import settings
from tests.soundness.network import Network

ROUNDING = 1e-9
FACTORS = (0.3, 0.7, 0.95, 0.999, 1.0, 1.001, 3.0)
"""gamma as a part of the largest margin certified."""
ZONE = 0.3
"""Share of the risks printed whose gamma lies between the margin built and the margin certified; most gammas tried here are
just below the latter."""

Decision = Callable[[Setting], Refusal | None]


class Witness:
    """A network of a setting's class with a large margin on an input of equal rows."""

    def __init__(self, setting: Setting) -> None:
        architecture = setting.architecture
        self.setting = setting
        self.network = Network(architecture.stages, setting.norms, architecture.seq_len, architecture.input_radius)
        self.known = iter(self.network.known)
        self.parameters: Parameters = {}
        self.start = self._input()
        self._through(architecture.stages, self.start, architecture.classes)

    @property
    def margin(self) -> float:
        """The margin of its output for the first label (1 for a scalar score), by the plain forward pass."""
        with np.errstate(over="ignore"):  # a row of zeros is projected by a factor beyond floats
            output = self.network.run(self.parameters, self.start)[0]
        return float(output[0] if len(output) == 1 else output[0] - output[1:].max())

    def _input(self) -> Array:
        architecture = self.setting.architecture
        first, rows = architecture.stages[0], architecture.seq_len
        if isinstance(first, Embedding) and first.vocabulary:
            return np.zeros((rows, 1))
        width = first.d_in if isinstance(first, Linear) else architecture.d
        return architecture.input_radius * one_hot(width) * np.ones((rows, 1))

    def _through(self, layers: Sequence[Layer], x: Array, classes: int, back: Array | None = None) -> Array:
        """The rows behind some layers, whose weights are chosen on the way; `back`: the direction a residual adds to."""
        for index, layer in enumerate(layers):
            last = index == len(layers) - 1
            if isinstance(layer, Residual):
                x = sum((self._through(branch, x, classes, direction(x)) for branch in layer.branches), start=0.0 * x)
                continue
            _, at, _ = next(self.known)
            wanted = back if last and back is not None else one_hot(width_of(layer))
            if isinstance(layer, Linear) and layer.kind == "readout" and classes > 1:
                wanted = -np.ones(classes) / (classes - 1)
                wanted[0] = 1.0
                wanted = direction(wanted[None])
            self._choose(layer, direction(x), wanted)
            x = np.atleast_2d(self.network.apply(layer, self.parameters, x, at, project=False))
        return x

    def _matrix(self, kind: str, block: int | None, head: int | None, u: Array, v: Array) -> None:
        budget = self.setting.norms.find(kind, block, head)
        flat = np.outer(u, v)
        alone = within(np.outer(u, one_hot(len(v))), budget)
        best = max((within(flat, budget), alone), key=lambda w: worth(u @ w))
        self.parameters[kind, block, head] = 0 * best if budget.rank == 0 else best

    def _vector(self, kind: str, block: int | None, head: int | None, v: Array) -> None:
        self.parameters[kind, block, head] = self.network.weights.vector(kind, block, head)[0] * v

    def _choose(self, layer: Layer, u: Array, v: Array) -> None:
        if isinstance(layer, Linear):
            self._matrix(layer.kind, layer.block, None, u, v)
            if layer.bias:
                self._vector(layer.bias, layer.block, None, v)
        elif isinstance(layer, GatedFeedForward):
            hidden = one_hot(layer.d_ff)
            self._matrix("W_1", layer.block, None, u, hidden)
            self._matrix("W_3", layer.block, None, u, hidden)
            self._matrix("W_2", layer.block, None, hidden, v)
        elif isinstance(layer, LayerNorm):
            if layer.gain:
                top = self.network.weights.gain(f"{layer.kind}.gain", layer.block)[0]
                self.parameters[f"{layer.kind}.gain", layer.block, None] = top * np.ones(layer.d)
            if layer.offset:
                centred = u - u.mean()
                self._vector(f"{layer.kind}.offset", layer.block, None, direction(centred[None]))
        elif isinstance(layer, Embedding):
            self._embed(layer)
        elif isinstance(layer, Attention):
            for head in range(layer.heads):
                self._head(layer, head, u)

    def _embed(self, layer: Embedding) -> None:
        row = one_hot(layer.d)
        weights, rows = self.network.weights, self.setting.architecture.seq_len
        for kind, size in (("embedding", layer.vocabulary), ("positions", rows * (layer.positions == "learned"))):
            if size:
                table = np.zeros((size, layer.d))
                if self.setting.norms.find(kind).rank != 0:
                    table[: 1 if kind == "embedding" else size] = weights.row(kind)[0] * row
                self.parameters[kind, None, None] = table
        if layer.positions == "fixed":
            self.parameters["fixed", None, None] = layer.position_radius * row * np.ones((rows, 1))

    def _head(self, layer: Attention, head: int, u: Array) -> None:
        shared, block = head // (layer.heads // layer.groups), layer.block
        self._matrix("W_V", block, shared, u, one_hot(layer.out))
        if layer.v_bias:
            self._vector("b_V", block, shared, one_hot(layer.out))
        norms = self.setting.norms
        if layer.qk == "split" or layer.scores not in layer.scores.read(norms, head):
            assert layer.d_head is not None
            for kind, index in (("Q", head), ("K", shared if layer.qk == "split" else head)):
                self._matrix(f"W_{kind}", block, index, u, one_hot(layer.d_head))
                if layer.qk_bias:
                    self._vector(f"b_{kind}", block, index, one_hot(layer.d_head))
            return
        left = np.append(u, 0.0) if layer.qk_bias else u
        right = left if layer.normaliser.name != "softmax" else u
        self._matrix("W_QK", block, head, left, right)


def one_hot(width: int) -> Array:
    return np.eye(1, width)[0]


def direction(x: Array) -> Array:
    size = float(np.linalg.norm(x[0]))
    return x[0] / size if size > 0 else one_hot(len(x[0]))


def width_of(layer: Layer) -> int:
    return layer.d_out if isinstance(layer, Linear) else layer.d if isinstance(layer, GatedFeedForward) else 1


def worth(row: Array) -> float:
    """What a row is worth: its margin at the read-out, its length before."""
    return float(np.linalg.norm(row)) if len(row) == 1 or row.min() >= 0 else float(row[0] - row[1:].max())


def exact(setting: Setting) -> bool:
    """Whether every layer reaches its radius on the way of the witness."""
    a = setting.architecture
    return (
        a.activation != "tanh"
        and a.normalisation in ("ball", "rmsnorm", "none")
        and a.normaliser.name != "linear"
        and (a.normaliser.name in ("softmax", "custom") or not (a.causal or a.rope))  # these make the rows differ
        and a.classes == 1
        and not a.pooler
        and not any(budget.one_one is not None or budget.rank == 0 for budget in setting.norms.budgets.values())
    )


def cases(seed: str, number: int) -> list[Setting]:
    """Random settings, of few rows, with gammas around the largest margin certified; half of them of exact layers."""
    rng = random.Random(seed)
    found: list[Setting] = []
    for index, plain in enumerate(settings(seed, number)):
        setting = plain.but(seq_len=min(plain.architecture.seq_len, 16), variance_floor=0.0)
        if index % 2:
            setting = setting.but(normalisation=rng.choice(("ball", "rmsnorm", "none")), classes=1)
        most = upper_float(margin_of_class(setting))
        gamma = rng.choice(FACTORS) * most
        if 1e-250 < gamma < 1e250:
            found.append(setting.but(margin=gamma))
    return found


def without_member(decide: Decision, seed: str, number: int) -> tuple[list[Setting], float]:
    """(exact settings with a risk printed and no witness, share of other such settings among all printed)."""
    none: list[Setting] = []
    printed = out_of_reach = 0
    for setting in cases(seed, number):
        if decide(setting) is not None:
            continue
        printed += 1
        if Witness(setting).margin > setting.sample.margin * (1 - ROUNDING):
            continue
        if exact(setting):
            none.append(setting)
        out_of_reach += 1
    assert printed > number / 4
    return none, out_of_reach / printed


def test_every_risk_printed_has_a_member() -> None:
    none, share = without_member(no_member, "premise", 400)
    assert none == []
    assert share < ZONE


def test_the_law_sees_risks_of_nobody() -> None:
    none, share = without_member(lambda _: None, "premise", 200)
    assert len(none) > 5
    assert share > 1.5 * ZONE


def test_no_network_has_more_than_the_largest_margin() -> None:
    tight = 0
    for setting in cases("largest margin", 200):
        most = upper_float(margin_of_class(setting))
        built = Witness(setting).margin
        assert built <= most * (1 + ROUNDING)
        tight += built > most * (1 - ROUNDING)
    assert tight > 40


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
        assert list(Search(refused, policy).risks()) == []
        for found in Search(met, policy).risks():
            forged = replace(found.certificate, setting=refused)  # whose covers are of a larger scale than they need be
            with pytest.raises(CertificateError, match=r"margin above 0\.0441"):
                check(forged)
    assert all(value.risk_refusal is None for value in compare(met))
    assert all(check(found.certificate) for found in Search(met, POLICIES["best"]).risks())


def test_what_is_said_of_the_largest_margin_is_true_to_the_last_digit() -> None:
    """No margin is above the number said to be above all, and a gamma below the one advised is below the largest."""
    for setting in cases("said", 60):
        most = upper_float(margin_on_both_labels(setting))
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
    """Vectors of length 2 and width 3, these layers, a read-out of norm 3 for so many classes; soft caps go behind it."""
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
"""Layers, and the part of the largest margin certified that random search comes to: with up to two classes, and with five."""


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
