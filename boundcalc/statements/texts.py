"""Every statement by name, in the words and the order of docs/theory.md; lemmas from outside by theirs.

What the library proves with does not import this: it is for readers (`boundcalc explain A1`, printed derivations).
"""

from __future__ import annotations

from boundcalc.base import theory
from boundcalc.base.statement import Statement
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.noises import NOISES

_LAWS = (*LEMMAS.values(), *NOISES.values())
STATEMENTS: dict[str, Statement] = {name: Statement(name) for name in theory.page()} | {
    law.name: Statement(law.name, text=law.text) for law in _LAWS if law.text
}
