"""E as a statement."""

from __future__ import annotations

from boundcalc.base.statement import Statement
from boundcalc.statements import general

GENERAL = (Statement("E", compute=general.log_count, applies=general.applies),)
