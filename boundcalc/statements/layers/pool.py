"""One row of many."""

from __future__ import annotations

from boundcalc.setting import Pool
from boundcalc.statements.slots import Context, Facts, LayerRule


def _facts(layer: Pool, at: Context) -> Facts:
    """Selecting or averaging rows neither stretches nor enlarges."""
    del layer
    return Facts(at.radius, at.ns.number(1))


RULE = LayerRule(Pool, _facts, noise=lambda layer: True, along=lambda layer, at: at.ns.number(1))
