"""The network of a setting in intervals, walked once: what no certificate can change.

The checker walks forward, carrying the radius of the activations, and keeps what covering needs: how much each layer
stretches an error that reaches it, and which maps must be covered there. The search walks backward and works in floats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from flint import arb

from boundcalc.base.intervals import INTERVAL
from boundcalc.setting import Layer, Setting
from boundcalc.setting.layer import rows_used
from boundcalc.statements.compose import loss_lipschitz
from boundcalc.statements.layers import facts
from boundcalc.statements.slots import PUBLISHED, Context, Slot
from boundcalc.statements.weights import Weights


class _Piece(NamedTuple):
    """Maps to be covered; what their cover leaves adds to the error."""

    key: str
    slot: Slot


class _Branch(Enum):
    """Where a residual's branches begin, where the next one reads the same rows, and where all their errors add up."""

    OPENS = 0
    NEXT = 1
    CLOSES = 2


class Network:
    """Radii, Lipschitz factors and pieces of a setting's network, in the order of the layers.

    Attributes:
        reach: L_l R, how far the loss is from its centre at most.
        lipschitz: L_l, the Lipschitz constant of the loss.
        uses: the statements of L the walk used.
    """

    def __init__(self, setting: Setting, *, published: bool) -> None:
        """Walk the network of a setting, with the published constants of L or the sharp ones."""
        architecture = setting.architecture
        self._weights = Weights(INTERVAL, setting.norms)
        self._seq_len = architecture.seq_len
        self._published = PUBLISHED if published else frozenset[str]()
        self._steps: list[arb | _Piece | _Branch] = []  # an interval stretches the error that reaches it
        self._names = Counter[str]()
        uses: dict[str, None] = {}
        radius = self._through(architecture.stages, arb(architecture.input_radius), 1, uses)
        self._weights.check_all_read()
        self.uses = tuple(uses)
        self.lipschitz: arb = loss_lipschitz(INTERVAL, setting)
        self.reach: arb = self.lipschitz * radius

    def _through(self, layers: Sequence[Layer], radius: arb, rows: int, uses: dict[str, None]) -> arb:
        """Radius after some layers of which so many output rows are read."""
        for layer, used in zip(layers, rows_used(layers, rows, self._seq_len), strict=True):
            if layer.branches:
                uses["L8"] = None
                reaches: list[arb] = []
                for branch in layer.branches:
                    self._steps.append(_Branch.NEXT if reaches else _Branch.OPENS)
                    reaches.append(self._through(branch, radius, used, uses))
                self._steps.append(_Branch.CLOSES)
                radius = sum(reaches, start=arb(0))
                continue
            here = facts(layer, Context(self._weights, radius, used, self._seq_len, self._published))
            uses.update(dict.fromkeys(here.uses))
            self._steps.append(here.lipschitz)
            block = layer.where()
            for slot in here.slots:
                name = slot.kind if block is None else f"{slot.kind}[{block}]"
                self._names[name] += 1
                key = name if self._names[name] == 1 else f"{name}#{self._names[name]}"
                self._steps.append(_Piece(key, slot))
            radius = here.radius
        return radius

    def slots(self) -> Iterator[tuple[str, Slot]]:
        """Every piece, in the order of the layers."""
        for step in self._steps:
            if isinstance(step, _Piece):
                yield step.key, step.slot

    def error(self, cover: Callable[[str, Slot], arb]) -> arb:
        """The error of the loss, given what the cover of each piece leaves in the output of its layer (A0)."""
        error = arb(0)
        beside: list[tuple[arb, arb]] = []  # of open residuals: the error before, and the sum of finished branches
        for step in self._steps:
            if isinstance(step, _Piece):
                error = error + cover(step.key, step.slot)
            elif isinstance(step, arb):
                error = step * error
            elif step is _Branch.OPENS:
                beside.append((error, arb(0)))
            elif step is _Branch.NEXT:
                before, total = beside.pop()
                beside.append((before, total + error))
                error = before
            else:
                error = beside.pop()[1] + error
        return self.lipschitz * error

    def amplification(self) -> dict[str, arb]:
        """How much the loss stretches an error in the output of each piece's layer, for readers."""
        gains: dict[str, arb] = {}
        gain = self.lipschitz
        outside: list[tuple[arb, arb]] = []
        for step in reversed(self._steps):
            if isinstance(step, _Piece):
                gains[step.key] = gain
            elif isinstance(step, arb):
                gain = gain * step
            elif step is _Branch.CLOSES:
                outside.append((gain, arb(0)))
            elif step is _Branch.NEXT:
                behind, total = outside.pop()
                outside.append((behind, total + gain))
                gain = behind
            else:
                gain = outside.pop()[1] + gain
        return gains
