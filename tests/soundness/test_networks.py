"""Whole small networks against the levels of real certificates.

Every map of a network is replaced by another one within the eps its certificate gives it (or by zero, where the
certificate leaves it out): the loss may change by no more than the level's scale, whatever the weights and the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb

from boundcalc.base.errors import CertificateError, Unsupported
from boundcalc.base.numbers import FLOAT
from boundcalc.engine.search import Search
from boundcalc.layers.base import unknown_to_noise
from boundcalc.layers.facts import Facts, Slot, Target
from boundcalc.proof.certificate import Level
from boundcalc.proof.checker import check
from boundcalc.setting import (
    Activation,
    Architecture,
    Attention,
    Ball,
    Budget,
    GatedFeedForward,
    Layer,
    LayerNorm,
    Linear,
    Normaliser,
    Norms,
    Pool,
    Residual,
    Setting,
    SoftCap,
)
from boundcalc.setting.norms import place_named, place_of
from boundcalc.statements.network import Network as Walked
from boundcalc.statements.network import Stage, loss_lipschitz
from boundcalc.testing._drawing import Array, Dice, Parameters
from boundcalc.theorems import POLICIES
from tests.proof import samples
from tests.soundness.network import Network, merged, moved, rows

SLACK = 1 + 1e-6

TINY: dict[str, Any] = {"seq_len": 3, "d": 2, "heads": 1, "n_train": 10**5}
SMALL: dict[str, Any] = {"seq_len": 3, "d": 4, "heads": 2, "d_ff": 3, "n_train": 10**5, "eps": 1.0}

LINE = (
    Linear("A", 1, 1),
    Residual((Linear("B", 1, 1), Activation("relu"), Linear("D", 1, 1, bias="c"))),
    Activation("relu"),
    Ball(3.0),
    Pool(),
    Linear("readout", 1, 1),
)
"""One number through a residual: every error adds up."""

PARALLEL = (
    Linear("A", 1, 1),
    Residual((Linear("B", 1, 1), Activation("relu")), ((Linear("D", 1, 1, bias="c"), Activation("relu")),)),
    Activation("relu"),
    Ball(4.0),
    Pool(),
    Linear("readout", 1, 1),
)
"""One number through two branches that both read it."""


PAIR: dict[str, Any] = TINY | {"heads": 2}
FLOOR: dict[str, Any] = SMALL | {"eps": 1e-9}

SETTINGS: Mapping[str, Setting] = {
    "edelman2022": Setting.of(**TINY, depth=1, C=1.0),
    "edelman2022 deep": Setting.of(**TINY, depth=3, C=1.2),
    "edelman2022 heads": Setting.of(
        **PAIR,
        depth=2,
        norms=Norms(C=1.0, budgets={"W_V[0,1]": Budget(op=0.4), "W_QK": Budget(op=2.0), "W_1[1]": Budget(op=2.0)}),
    ),
    "edelman2022 mean": Setting.of(**TINY, depth=2, readout="mean", normaliser=Normaliser("sigmoid"), classes=3),
    "edelman2022 free": Setting.of(**TINY, depth=2, normalisation="none", normaliser=Normaliser("linear")),
    "bert": Setting.of("bert", **SMALL, depth=2, vocabulary=4, C=0.8),
    "bert product": Setting.of(
        "bert",
        **SMALL,
        depth=1,
        vocabulary=4,
        normaliser=Normaliser("softmax1"),
        norms=Norms(C=0.8, budgets={"W_Q": Budget(op=1.2), "W_K": Budget(op=1.5), "norm_ffn.gain": Budget(sup=1.5)}),
    ),
    "gpt2": Setting.of("gpt2", **SMALL, depth=2, vocabulary=4, C=0.8),
    "llama": Setting.of("llama", **SMALL, depth=2, vocabulary=4, kv_heads=1, C=0.9),
    "vit": Setting.of("vit", **SMALL, depth=1, d_patch=3, input_radius=1.5, classes=3, C=0.9),
    "line": Setting.of(layers=LINE, seq_len=1, n_train=10**5, norms=Norms(C=1.0, budgets={"B": Budget(op=0.5)})),
    "two branches": Setting.of(
        layers=PARALLEL, seq_len=1, n_train=10**5, norms=Norms(C=1.0, budgets={"B": Budget(op=0.5)})
    ),
    **{name: samples.SETTINGS[name] for name in ("parallel", "capped", "pooled", "normalised")},
    "floor": Setting.of("vit", **FLOOR, depth=1, d_patch=3, classes=2, C=0.9, variance_floor=0.5),
}


class Rival:
    """Networks of a setting, and how far others may be within a level of a certificate."""

    def __init__(self, setting: Setting, level: Level) -> None:
        self.setting, self.level, self.network = setting, level, Network.of(setting)
        self.slots: dict[str, Slot] = {}
        for layer, here in self.network.known:
            self.slots |= {place_named(slot.kind, layer.where()): slot for slot in here.slots}
        assert self.slots.keys() == level.covers.keys()

    def targets(self, name: str) -> list[Target]:
        """What the maps of a piece act on."""
        return [target for member in self.slots[name].members for target in member.targets]

    def near(self, dice: Dice, p: Parameters, names: Iterable[str] | None = None) -> Parameters:
        """Every map (or those of some pieces) replaced by another of the class, as the level allows."""
        others = self.network.draw(dice, whole=True)
        for name in names or self.level.covers:
            cover = self.level.covers[name]
            eps = math.inf if all(choice.lemma == "zero" for choice in cover.choices) else math.exp(cover.log_eps)
            p = moved(dice, p, others, name, self.targets(name), eps)
        return p

    def change(self, p: Parameters, near: Parameters, x: Array) -> float:
        """Change of the loss, over the scale of the level."""
        reached: list[float] = []
        before = self.network.run(p, x, check=reached)
        assert max(reached) <= SLACK
        shift = rows(self.network.run(near, x) - before)
        return shift * float(loss_lipschitz(FLOAT, self.setting)) / math.exp(self.level.log_scale)


def attack(rival: Rival, seed: int, steps: int) -> float:
    """The largest change over the scale: random restarts, then one thing at a time while it helps."""
    rng = np.random.default_rng(seed)
    best, state = -1.0, None
    for step in range(steps):
        dice = Dice(rng, aligned=bool(rng.random() < 0.6))
        if state is None or step < steps // 2:
            p = rival.network.draw(dice, whole=True)
            x, near = rival.network.inputs(dice), rival.near(dice, p)
        else:
            p, near, x = state
            if rng.integers(3) == 0:
                x = rival.network.inputs(dice)
            else:
                name = str(rng.choice(list(rival.level.covers)))
                place = place_of(name)[:2]
                near = near | {key: w for key, w in rival.near(dice, p, [name]).items() if key[:2] == place}
        if (change := rival.change(p, near, x)) > best:
            best, state = change, (p, near, x)
    return best


def levels(setting: Setting) -> list[Rival]:
    """Levels that the checker accepts, one per strategy: the coarsest or the finest.

    Of maps that meet in their class.
    """
    found: dict[tuple[str, bool], Rival] = {}
    for name in ("best", "closed"):
        search = Search(setting, POLICIES[name])
        for each in (*search.candidates("gap"), *search.candidates("risk")):
            certificate = each.certificate
            key = certificate.strategy, certificate.meeting
            if certificate.levels and key not in found:
                check(certificate)
                of = merged(setting) if certificate.meeting else setting
                assert isinstance(of, Setting)
                found[key] = Rival(of, certificate.levels[-1 if len(found) % 2 else 0])
    return sorted(found.values(), key=lambda rival: rival.setting is not setting)


def alone(rival: Rival, name: str, seed: int, draws: int) -> float:
    """One piece wrong by a tiny eps: the largest change of the loss over what the piece's gain allows."""
    rng = np.random.default_rng(seed)
    gain = {piece.key: float(piece.gain) for piece in Walked(rival.setting, FLOAT).pieces}[name]
    targets, scale, best = rival.targets(name), math.exp(rival.level.log_scale), 0.0
    for step in range(draws):
        dice = Dice(rng, aligned=step % 4 > 0)
        p, x = rival.network.draw(dice, whole=True), rival.network.inputs(dice)
        x = np.repeat(x[:1], len(x), axis=0) if rng.random() < 0.5 else x
        eps = float(rng.choice([1e-6, 0.05, 1.0])) * min(float(t.radius * t.norms.op) for t in targets)
        near = moved(dice, p, rival.network.draw(dice, whole=True), name, targets, eps)
        best = max(best, rival.change(p, near, x) * scale / (gain * eps))
    return best


TIGHT: Mapping[str, set[str]] = {
    "edelman2022": {"W_V[0]", "W_1[0]", "readout"},
    "edelman2022 heads": {"readout"},
    "bert": {"norm_ffn.offset[1]", "b_pool", "b_readout"},
    "gpt2": {"norm_final.offset", "b_readout"},
    "vit": {"norm_final.offset", "b_readout"},
    "line": {"A", "B", "D", "c", "readout"},
    "two branches": {"A", "B", "D", "c", "readout"},
}
"""Pieces whose gain some attack comes within five per cent of."""


@pytest.mark.parametrize("name", SETTINGS)
def test_no_network_within_a_level_leaves_its_scale(name: str) -> None:
    setting = SETTINGS[name]
    found = levels(setting)
    assert len(found) >= 2
    for i, rival in enumerate(found):
        assert attack(rival, i, 30) <= SLACK


@pytest.mark.parametrize("name", SETTINGS)
def test_no_piece_costs_more_than_its_gain(name: str) -> None:
    rival = levels(SETTINGS[name])[0]
    tight = TIGHT.get(name, set())
    for piece in rival.slots:
        ratio = alone(rival, piece, 1, 160 if piece in tight else 12)
        assert ratio <= SLACK, piece
        assert piece not in tight or ratio > 0.95, piece


def test_the_attack_uses_most_of_a_level_where_errors_add_up() -> None:
    """More than half of the scale is used on a line, so a factor lowered by half is noticed below."""
    assert max(attack(rival, 1, 150) for rival in levels(SETTINGS["line"])) > 0.6
    assert attack(levels(SETTINGS["edelman2022"])[0], 1, 150) > 0.4


def test_a_lower_lipschitz_factor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were linear maps said to stretch half as much, certificates would pass that networks break."""
    honest = Linear.facts

    def halved(layer: Linear, at: Any) -> Facts:
        fact = honest(layer, at)
        return replace(fact, lipschitz=fact.lipschitz / 2)

    monkeypatch.setattr(Linear, "facts", halved)
    assert max(attack(rival, 1, 150) for rival in levels(SETTINGS["line"])) > SLACK


def backward_over(edit: Callable[[Any], Any]) -> property:
    """Gains of a network whose residuals were edited first."""
    honest = Walked._backward.func

    def backward(walked: Walked) -> Any:
        stages = [stage if isinstance(stage, Stage) else edit(stage) for stage in walked.stages]
        return honest(SimpleNamespace(stages=stages, lipschitz=walked.lipschitz))

    return property(backward)


def without_the_skip(branches: tuple[Any, ...]) -> tuple[Any, ...]:
    """Errors travel through a residual's branch alone, and half of them."""
    return (*branches[1:-1], [*branches[-1], Stage(0.5, ())])


def without_the_third(branches: tuple[Any, ...]) -> tuple[Any, ...]:
    """Of an error before a residual nothing goes through its last branch."""
    return (*branches[:-1], [Stage(arb(0), ()), *branches[-1]])


@pytest.mark.parametrize(("name", "edit"), [("line", without_the_skip), ("two branches", without_the_third)])
def test_a_branch_left_out_is_noticed(name: str, edit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece would seem to cost less than it does.

    The checker, which walks the other way, refuses what is found so.
    """
    rival = levels(SETTINGS[name])[0]
    assert alone(rival, "A", 1, 150) <= SLACK
    monkeypatch.setattr(Walked, "_backward", backward_over(edit))
    assert alone(rival, "A", 1, 150) > SLACK
    with pytest.raises(CertificateError, match="larger error"):
        levels(SETTINGS[name])


@pytest.mark.parametrize(
    "layer",
    [
        Attention(4, d_head=2, qk="split", qk_norm="head", qk_eps=0.1),
        Attention(4, offsets="learned", buckets=3),
        Attention(4, offsets="fixed"),
        Attention(4, cap=1.0),
        GatedFeedForward(4, 5, bias=True),
        LayerNorm("norm", 4, around_one=True),
        SoftCap(4, 1.0),
    ],
    ids=repr,
)
def test_noise_is_not_said_to_hide_what_it_was_not_proved_for(layer: Layer) -> None:
    assert unknown_to_noise(ended(Attention(4)).architecture.stages) is None
    assert unknown_to_noise(ended(layer).architecture.stages) == repr(layer.label)


def ended(layer: Layer, **budgets: Budget) -> Setting:
    """A layer on rows of width 4, and a read-out."""
    layers = (layer, Pool(), Linear("readout", 4, 1))
    return Setting(Architecture(layers=layers, seq_len=3), Norms(C=1.0, budgets=budgets))


def test_heads_that_are_normalised_together_have_the_same_budgets() -> None:
    layer = Attention(4, 2, d_head=2, d_value=2, qk="split", combine="concat", qk_norm="width", qk_eps=0.1, block=0)
    own = {"W_Q[0,1]": Budget(op=0.5)}
    with pytest.raises(Unsupported, match="the same budgets for every head"):
        Walked(ended(layer, **own), FLOAT)
    Walked(ended(replace(layer, qk_norm="head"), **own), FLOAT)
