"""A0: branches are walked one by one, so that nothing is said here but that G11 was proved for their sum."""

from __future__ import annotations

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.setting import Residual
from boundcalc.statements.slots import Context, Facts, LayerRule


def _facts(layer: Residual, at: Context) -> Facts:
    """None of its own."""
    del at
    raise Unsupported(
        Refusal("the facts of one layer", f"{layer.said()}, whose branches have theirs", "a primitive layer")
    )


RULE = LayerRule(Residual, _facts, noise=lambda layer: True)
