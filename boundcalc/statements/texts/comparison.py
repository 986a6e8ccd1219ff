"""K as statements: the gap, and the risk, by Gaussian comparison."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.statement import Statement
from boundcalc.setting import Setting
from boundcalc.statements.comparison import network
from boundcalc.statements.comparison.closed import closed, risk
from boundcalc.statements.comparison.sharp import sharp


def _applies(setting: Setting) -> Refusal | None:
    why = network.refusal(setting)
    return None if why is None else Refusal("theorem K", "this setting", why.removeprefix("theorem K needs "))


COMPARISON = (
    Statement("K1", compute=closed, applies=_applies),
    Statement("K2", compute=sharp, applies=_applies),
    Statement("K3", compute=risk, applies=_applies),
)
