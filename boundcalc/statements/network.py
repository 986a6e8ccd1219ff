"""A0: the one walk through a network, and its folds: gains backward for the search, errors forward for the checker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, TypeAlias

from flint import arb

from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.layers.base import place_named, rows_used
from boundcalc.layers.facts import Context, Facts, Member, Slot
from boundcalc.setting import Layer, Setting
from boundcalc.statements.weights import Weights


class Visit(NamedTuple):
    """A layer, where it stands, and what is claimed of it there."""

    layer: Layer
    at: Context
    facts: Facts


Steps: TypeAlias = "list[Visit | tuple[Steps, ...]]"
"""Layers from the input on; of a residual the steps of every branch."""


def claimed(layer: Layer, at: Context) -> Facts:
    """What a layer says of itself."""
    return layer.facts(at)


_Measure = Callable[[Layer, Context], Facts]


def walk(layers: Sequence[Layer], at: Context, measure: _Measure = claimed) -> tuple[Steps, Number]:
    """Every layer from the input on, and the radius of the last one's output.

    `at` is where the first layer stands, but that `at.rows` rows of the last one's output are read.
    """
    steps: Steps = []
    radius = at.radius
    for layer, rows in zip(layers, rows_used(layers, at.rows, at.seq_len), strict=True):
        here = replace(at, radius=radius, rows=rows)
        if layer.branches:
            walks = [walk(branch, here, measure) for branch in layer.branches]
            steps.append(tuple(branch for branch, _ in walks))
            radius = sum(end for _, end in walks)
        else:
            facts = measure(layer, here)
            steps.append(Visit(layer, here, facts))
            radius = facts.radius
            if isinstance(radius, arb):  # its upper end: the width of a ball would double with every layer
                radius = arb(radius.upper())
    return steps, radius


class Piece(NamedTuple):
    """Maps that one eps covers.

    Attributes:
        key: kind and block, as in a norms file: "W_QK[0]".
        gain: error of the loss per eps.
        cap: error of the loss however wrong the maps are, where that is known.
        members: the maps.
        saturates: whether an error of e, to first order, is at most cap tanh(e / cap) (S5).
    """

    key: str
    gain: Number
    cap: Number | None
    members: tuple[Member, ...]
    saturates: bool = False


class Stage(NamedTuple):
    """A layer's Lipschitz factor, and its slots by key."""

    lipschitz: Number
    slots: tuple[tuple[str, Slot], ...]


_Stages: TypeAlias = "list[Stage | tuple[_Stages, ...]]"
"""Every layer with slots of its own; of a residual the stages of every branch."""


class Network:
    """A setting's network in one number system, walked once.

    Attributes:
        lipschitz: L_l, the Lipschitz constant of the loss.
        radius: L_l R, how far the loss is from its centre at most.
        slots: what must be covered, by key, input to read-out.
        uses: the statements of L the walk used.
    """

    def __init__(
        self,
        setting: Setting,
        ns: NumberSystem,
        *,
        published: bool = False,
        measure: _Measure = claimed,
    ) -> None:
        """Walk the network; `published`: with published instead of sharp constants of L1 and L7."""
        architecture, weights = setting.architecture, Weights(ns, setting.norms)
        at = Context(weights, ns.number(architecture.input_radius), 1, architecture.seq_len, published)
        steps, radius = walk(architecture.stages, at, measure)
        weights.check_all_read()
        self.lipschitz = loss_lipschitz(ns, setting)
        self.radius = self.lipschitz * radius
        self.slots: dict[str, Slot] = {}
        self._zero, self._numbers, self._uses = ns.number(0), Counter[str](), dict[str, None]()
        self.stages = self._named(steps)
        self.uses = tuple(self._uses)

    def _named(self, steps: Steps) -> _Stages:
        """Stages of some steps; equal names of slots are numbered."""
        stages: _Stages = []
        for step in steps:
            if isinstance(step, Visit):
                slots = tuple((self._key(step.layer, slot), slot) for slot in step.facts.slots)
                self.slots.update(slots)
                self._uses.update(dict.fromkeys(step.facts.uses))
                stages.append(Stage(step.facts.lipschitz, slots))
            else:
                self._uses["L8"] = None
                stages.append(tuple(map(self._named, step)))
        return stages

    def _key(self, layer: Layer, slot: Slot) -> str:
        name = place_named(slot.kind, layer.where())
        self._numbers[name] += 1
        return name if self._numbers[name] == 1 else f"{name}#{self._numbers[name]}"

    def error(self, cover: Callable[[str, Slot], Number]) -> Number:
        """The error of the loss, given what the cover of each slot leaves in the output of its layer."""

        def behind(stages: _Stages, error: Number) -> Number:
            for stage in stages:
                if isinstance(stage, Stage):
                    error = stage.lipschitz * error
                    for key, slot in stage.slots:
                        error = error + cover(key, slot)
                else:
                    error = sum(behind(branch, error) for branch in stage)
            return error

        return self.lipschitz * behind(self.stages, self._zero)

    @cached_property
    def _backward(self) -> tuple[dict[str, Number], Number]:
        gains: dict[str, Number] = {}

        def before(stages: _Stages, gain: Number) -> Number:
            """The factor of some stages, apart from the gain of errors behind them, so that formulas stay factored."""
            stretch: Number = 1
            for stage in reversed(stages):
                if isinstance(stage, Stage):
                    gains.update(dict.fromkeys((key for key, _ in stage.slots), gain))
                    factor = stage.lipschitz
                else:
                    factor = sum(before(branch, gain) for branch in reversed(stage))
                gain, stretch = gain * factor, stretch * factor
            return stretch

        return gains, self.lipschitz * before(self.stages, self.lipschitz)

    @property
    def gains(self) -> dict[str, Number]:
        """Error of the loss per error in the output of each slot's layer."""
        return self._backward[0]

    @property
    def amplification(self) -> Number:
        """Error of the loss per error of the input."""
        return self._backward[1]

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """What must be covered, input to read-out, each with its gain."""
        return tuple(
            Piece(
                key,
                self.gains[key] * slot.sensitivity,
                None if slot.cap is None else self.gains[key] * slot.cap,
                slot.members,
                slot.saturates,
            )
            for key, slot in self.slots.items()
        )


def loss_lipschitz(ns: NumberSystem, setting: Setting) -> Number:
    """G0: 1/gamma for the ramp, sqrt(2)/gamma in |.|_2 of the logits, or the constant given."""
    sample = setting.sample
    if sample.lipschitz is not None:
        return ns.number(sample.lipschitz)
    classes = setting.architecture.classes
    return (ns.sqrt(ns.number(2)) if classes > 1 else 1) / ns.number(sample.margin)
