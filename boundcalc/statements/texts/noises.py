"""V as statements, with the costs of `statements.noises` attached."""

from __future__ import annotations

from boundcalc.base.statement import Statement
from boundcalc.statements.layers.hidden import summed_move
from boundcalc.statements.noises import NOISES

_LAWS = tuple(Statement(law.name, law.sharp, applies=law.applies, text=law.text) for law in NOISES.values())
NOISE = (*_LAWS, Statement("V4", compute=summed_move))
