"""A0: the one walk through a network, and its folds: gains backward for the search, errors forward for the checker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from flint import arb

from boundcalc.base.system import Number, NumberSystem
from boundcalc.layers.base import place_named, rows_used
from boundcalc.layers.facts import Context, Facts, Member, Slot, total
from boundcalc.setting import Layer, Setting
from boundcalc.statements.weights import Weights


class Visit(NamedTuple):
    """A layer, where it stands, and what is claimed of it there."""

    layer: Layer
    at: Context
    facts: Facts


class Branch(Enum):
    """Where a residual's branches begin, where the next one reads the same rows, and where all their outputs add up."""

    OPENS = 0
    NEXT = 1
    CLOSES = 2


def claimed(layer: Layer, at: Context) -> Facts:
    """What a layer says of itself."""
    return layer.facts(at)


Walk = Generator[Visit | Branch, None, Number]
Measure = Callable[[Layer, Context], Facts]


def walk(layers: Sequence[Layer], at: Context, measure: Measure = claimed) -> Walk:
    """Every layer from the input on, with marks around branches; returns the radius of the last one's output.

    `at` is where the first layer stands, but that `at.rows` rows of the last one's output are read.
    """
    radius, width = at.radius, at.width
    for layer, rows in zip(layers, rows_used(layers, at.rows, at.seq_len), strict=True):
        here = replace(at, radius=radius, rows=rows, width=width)
        if layer.branches:
            radii: list[Number] = []
            for branch in layer.branches:
                yield Branch.NEXT if radii else Branch.OPENS
                radii.append((yield from walk(branch, here, measure)))
            yield Branch.CLOSES
            radius = total(radii)
        else:
            claim = measure(layer, here)
            yield Visit(layer, here, claim)
            radius = claim.radius
            if isinstance(radius, arb):  # its upper end: the width of a ball would double with every layer
                radius = arb(radius.upper())
        makes = layer.widths()[1]
        width = width if makes is None else makes
    return radius


def finish(steps: Walk) -> tuple[list[Visit | Branch], Number]:
    """All steps of a walk, and the radius of the last output."""
    done: list[Visit | Branch] = []
    while True:
        try:
            done.append(next(steps))
        except StopIteration as end:
            return done, end.value


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


class _Stage(NamedTuple):
    """A layer's Lipschitz factor, and its slots by key."""

    lipschitz: Number
    slots: tuple[tuple[str, Slot], ...]


class Network:
    """A setting's network in one number system, walked once.

    Attributes:
        lipschitz: L_l, the Lipschitz constant of the loss.
        radius: L_l R, how far the loss is from its centre at most.
        uses: the statements of L the walk used.
    """

    def __init__(
        self,
        setting: Setting,
        ns: NumberSystem,
        *,
        published: frozenset[str] = frozenset(),
        measure: Measure = claimed,
    ) -> None:
        """Walk the network; `published`: statements of L with published instead of sharp constants."""
        architecture, weights = setting.architecture, Weights(ns, setting.norms)
        at = Context(weights, ns.number(architecture.input_radius), 1, architecture.seq_len, published)
        steps, radius = finish(walk(architecture.stages, at, measure))
        weights.check_all_read()
        self.lipschitz = loss_lipschitz(ns, setting)
        self.radius = self.lipschitz * radius
        self._zero = ns.number(0)
        numbers = Counter[str]()
        self._steps: list[_Stage | Branch] = []
        uses: dict[str, None] = {}
        for step in steps:
            if isinstance(step, Branch):
                self._steps.append(step)
                uses["L8"] = None
                continue
            slots: list[tuple[str, Slot]] = []
            for slot in step.facts.slots:
                block = step.layer.where()
                name = place_named(slot.kind, block)
                numbers[name] += 1
                slots.append((name if numbers[name] == 1 else f"{name}#{numbers[name]}", slot))
            self._steps.append(_Stage(step.facts.lipschitz, tuple(slots)))
            uses.update(dict.fromkeys(step.facts.uses))
        self.uses = tuple(uses)
        self.slots = dict(pair for step in self._steps if isinstance(step, _Stage) for pair in step.slots)

    def error(self, cover: Callable[[str, Slot], Number]) -> Number:
        """The error of the loss, given what the cover of each slot leaves in the output of its layer."""
        error = self._zero
        beside: list[
            tuple[Number, Number]
        ] = []  # of open residuals: the error before, and the sum of finished branches
        for step in self._steps:
            if isinstance(step, _Stage):
                error = step.lipschitz * error
                for key, slot in step.slots:
                    error = error + cover(key, slot)
            elif step is Branch.OPENS:
                beside.append((error, self._zero))
            elif step is Branch.NEXT:
                before, finished = beside.pop()
                beside.append((before, finished + error))
                error = before
            else:
                error = beside.pop()[1] + error
        return self.lipschitz * error

    @cached_property
    def _backward(self) -> tuple[dict[str, Number], Number]:
        gains: dict[str, Number] = {}
        gain, stretch = self.lipschitz, 1  # of the loss, and of the branch alone, so that formulas stay factored
        outside: list[tuple[Number, Number, Number]] = []
        for step in reversed(self._steps):
            if isinstance(step, _Stage):
                gains.update(dict.fromkeys((key for key, _ in step.slots), gain))
                gain, stretch = gain * step.lipschitz, stretch * step.lipschitz
            elif step is Branch.CLOSES:
                outside.append((gain, stretch, None))
                stretch = 1
            else:
                behind, own, finished = outside.pop()
                finished = stretch if finished is None else stretch + finished
                if step is Branch.NEXT:
                    outside.append((behind, own, finished))
                    gain, stretch = behind, 1
                else:
                    gain, stretch = behind * finished, own * finished
        return gains, gain

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
