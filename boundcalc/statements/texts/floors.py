"""F and R1 as statements: floors under every bound of the gap, or of the risk."""

from __future__ import annotations

from boundcalc.base.errors import Refusal
from boundcalc.base.statement import Statement
from boundcalc.setting import Setting
from boundcalc.statements.floors.base import refusal
from boundcalc.statements.floors.counting import sphere, tail, two_values
from boundcalc.statements.floors.unseen import risk_floor


def _applies(setting: Setting) -> Refusal | None:
    why = refusal(setting)
    return None if why is None else Refusal("a floor", "this setting", why)


FLOORS = (
    Statement("F0", compute=tail, applies=_applies),
    Statement("F1", compute=two_values, applies=_applies),
    Statement("F2", compute=sphere, applies=_applies),
    Statement("R1", compute=risk_floor, applies=_applies),
)
