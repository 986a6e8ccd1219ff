"""L4: projection onto the ball."""

from __future__ import annotations

from boundcalc.base.intervals import INTERVAL, certainly_le
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Ball
from boundcalc.statements.layers import asked
from boundcalc.statements.slots import Context, Facts, LayerRule, Said, Values


def _facts(layer: Ball, at: Context) -> Facts:
    """L4."""
    return Facts(at.ns.minimum(at.radius, at.ns.number(layer.radius)), at.ns.number(1), (), ("L4",))


def _idle(layer: Ball, radius: Number) -> bool:
    """A projection does not act on rows that are in the ball."""
    return certainly_le(radius, INTERVAL.number(layer.radius))


def _value(ns: NumberSystem, beta: Number, radius: float) -> Values:
    fact = asked(ns, Ball(radius), beta)
    return {"radius": fact.radius, "lipschitz": fact.lipschitz}


RULE = LayerRule(
    Ball,
    _facts,
    noise=lambda layer: True,
    along=lambda layer, at: at.ns.number(1),
    idle=_idle,
    says=lambda: {"L4": Said(_value)},
)
