"""Every statement by name, in the words and the order of docs/theory.md; lemmas from outside by theirs.

What the library proves with does not import this: it is for readers (`boundcalc explain A1`, printed derivations).
"""

from __future__ import annotations

from boundcalc.base.theory import Entry, page, parse
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.noises import NOISES

_LAWS = (*LEMMAS.values(), *NOISES.values())
STATEMENTS: dict[str, Entry] = page() | {law.name: parse(law.text)[law.name] for law in _LAWS if law.text}
