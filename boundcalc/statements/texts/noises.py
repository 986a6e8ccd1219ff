"""V as statements, with the costs of `statements.noises` attached."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.statements.noises import NOISES

NOISE = tuple(replace(law.statement, compute=law.sharp, applies=law.applies) for law in NOISES.values())
