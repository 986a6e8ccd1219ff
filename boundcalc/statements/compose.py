"""A0: from a setting to pieces - what must be covered, and how far its error carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Layer, Setting
from boundcalc.setting.layer import rows_used
from boundcalc.statements.layers import facts
from boundcalc.statements.slots import Context, Facts, Member, Slot, total
from boundcalc.statements.weights import Weights


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


class Lowered(NamedTuple):
    """A setting as pieces.

    Attributes:
        pieces: input to read-out.
        radius: sup of the loss' argument times its Lipschitz constant: the loss stays this close to its centre.
        amplification: how much the loss stretches errors of the input.
        uses: the statements of L the walk used.
    """

    pieces: tuple[Piece, ...]
    radius: Number
    amplification: Number
    uses: tuple[str, ...]


@dataclass(slots=True)
class _Stage:
    """A layer's facts, or the stages of a residual's branches."""

    block: int | None
    facts: Facts | None
    branches: list[list[_Stage]]


def lower(setting: Setting, ns: NumberSystem, *, published: frozenset[str] = frozenset()) -> Lowered:
    """The pieces of a setting: radii forward, amplification backward."""
    architecture = setting.architecture
    weights = Weights(ns, setting.norms)
    at = Context(weights, ns.number(architecture.input_radius), 1, architecture.seq_len, published)
    stages, radius = _forward(architecture.stages, at, 1)
    weights.check_all_read()
    lipschitz = loss_lipschitz(ns, setting)
    uses: dict[str, None] = {}
    gathered: list[tuple[str, Number, Slot]] = []
    amplification = _backward(stages, lipschitz, gathered, uses)
    names = Counter[str]()
    pieces: list[Piece] = []
    for name, amp, slot in reversed(gathered):
        names[name] += 1
        key = name if names[name] == 1 else f"{name}#{names[name]}"
        cap = None if slot.cap is None else amp * slot.cap
        pieces.append(Piece(key, amp * slot.sensitivity, cap, slot.members, slot.saturates))
    return Lowered(tuple(pieces), lipschitz * radius, amplification, tuple(uses))


def loss_lipschitz(ns: NumberSystem, setting: Setting) -> Number:
    """G0: 1/gamma for the ramp, sqrt(2)/gamma in |.|_2 of the logits, or the constant given."""
    sample = setting.sample
    if sample.lipschitz is not None:
        return ns.number(sample.lipschitz)
    if setting.architecture.classes > 1:
        return ns.sqrt(ns.number(2)) / ns.number(sample.margin)
    return 1 / ns.number(sample.margin)


def _forward(layers: Sequence[Layer], at: Context, rows: int) -> tuple[list[_Stage], Number]:
    stages: list[_Stage] = []
    radius = at.radius
    for layer, used in zip(layers, rows_used(layers, rows, at.seq_len), strict=True):
        here = replace(at, radius=radius, rows=used)
        if layer.branches:
            walked = [_forward(branch, here, used) for branch in layer.branches]
            stages.append(_Stage(None, None, [branch for branch, _ in walked]))
            radius = total([reach for _, reach in walked])
        else:
            fact = facts(layer, here)
            stages.append(_Stage(layer.where(), fact, []))
            radius = fact.radius
    return stages, radius


def _backward(
    stages: Sequence[_Stage], amplification: Number, gathered: list[tuple[str, Number, Slot]], uses: dict[str, None]
) -> Number:
    for stage in reversed(stages):
        if stage.facts is None:
            uses["L8"] = None
            for branch in reversed(stage.branches):
                _backward(branch, amplification, gathered, uses)
            amplification = amplification * _beside(stage.branches)
            continue
        uses.update(dict.fromkeys(stage.facts.uses))
        for slot in reversed(stage.facts.slots):
            name = slot.kind if stage.block is None else f"{slot.kind}[{stage.block}]"
            gathered.append((name, amplification, slot))
        amplification = amplification * stage.facts.lipschitz
    return amplification


def _stretch(stages: Sequence[_Stage]) -> Number:
    """How much some stages stretch errors of their input (a product, so that formulas stay factored)."""
    product: Number = 1
    for stage in reversed(stages):
        product = product * (_beside(stage.branches) if stage.facts is None else stage.facts.lipschitz)
    return product


def _beside(branches: Sequence[Sequence[_Stage]]) -> Number:
    """How much the sum of what branches make of the same rows is stretched."""
    return total([_stretch(branch) for branch in branches])
