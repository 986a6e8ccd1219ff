"""L4: projection onto the ball."""

from __future__ import annotations

from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.numbers import Number
from boundcalc.setting import Ball
from boundcalc.statements.slots import Context, Facts, LayerRule


def _facts(layer: Ball, at: Context) -> Facts:
    """L4."""
    return Facts(at.ns.minimum(at.radius, at.ns.number(layer.radius)), at.ns.number(1), (), ("L4",))


def _idle(layer: Ball, radius: Number) -> bool:
    """A projection does not act on rows that are in the ball."""
    return certainly_le(radius, INTERVAL.number(layer.radius))


RULE = LayerRule(Ball, _facts, noise=lambda layer: True, idle=_idle)
