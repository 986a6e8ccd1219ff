"""The network that theorems about deep attention are stated for: its assumptions in words, and with symbols for numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boundcalc.setting import Setting

SAMPLE = ("$m$ sequences are drawn independently", "every budget is fixed before the sample is drawn")
ROWS = (
    r"rows of the input have $\ell_2$ norm at most 1, and activations are projected onto the unit ball twice per block"
)
_RAMP = r"the loss is the ramp at margin $\gamma$ (any $[0, 1]$ loss that is $1/\gamma$-Lipschitz will do)"
_READ_OUT = "the output is read from one row ([CLS])"
DEEP = (*SAMPLE, ROWS, f"ReLU between the projections; {_READ_OUT}", _RAMP)
"""Assumptions of a theorem that says itself which norms are bounded."""
NETWORK = (*SAMPLE, ROWS, f"ReLU between the projections; spectral norms at most $C$; {_READ_OUT}", _RAMP)
LIPSCHITZ = ("L1", "L2", "L3", "L4", "L6", "L7", "L8")
"""What says how its layers stretch errors."""
HIDDEN = "hidden in the paper's constant"


def with_symbols(preset: str = "edelman", **sizes: Any) -> Setting:
    """A preset, of these sizes, whose depth, length, budgets and sample are symbols."""
    from boundcalc.base import symbols as s
    from boundcalc.setting import Setting

    return Setting.of(preset, C=s.C, depth=s.depth, seq_len=s.T, n_train=s.m, delta=s.delta, margin=s.gamma, **sizes)


def network() -> Setting:
    """The preset edelman with every number a symbol."""
    from boundcalc.base import symbols as s

    return with_symbols(d=s.d, heads=s.heads)
