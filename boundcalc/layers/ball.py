"""L4: projection onto the ball."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.schema import Positive
from boundcalc.base.system import Number
from boundcalc.layers.base import Proved, Weightless, register_layer
from boundcalc.layers.facts import Context, Facts
from boundcalc.layers.forward import Arrays, Forward


@register_layer
@dataclass(frozen=True, slots=True)
class Ball(Weightless):
    """Projection of every row onto the l2 ball."""

    label: ClassVar[str] = "ball"
    title: ClassVar[str] = "projection onto the ball"
    noise_fields: ClassVar[Proved] = {}

    radius: Positive = 1.0

    def facts(self, at: Context) -> Facts:
        return Facts(at.ns.minimum(at.radius, at.ns.number(self.radius)), at.ns.number(1), (), ("L4",))

    def idle(self, radius: Number) -> bool:
        return certainly_le(radius, INTERVAL.number(self.radius))

    def along(self, at: Context) -> Number | None:
        return at.ns.number(1)

    def forward(self, x: Any, weights: Arrays, run: Forward) -> Any:
        """Its gradient at the origin is that of the identity."""
        size = (x**2).sum(-1, keepdims=True)
        outside = size > self.radius**2
        return run.xp.where(outside, x * (self.radius / run.xp.sqrt(run.xp.where(outside, size, 1.0))), x)
