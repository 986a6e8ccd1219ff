"""Every statement of the calculus by name: T, V, L, S, A, G, K, F, P, E and X; `STATEMENTS` is the registry.

What the library proves with does not import this: it is for readers (`boundcalc explain A1`, printed derivations) and
for programs that want a statement's value by itself.
"""

from __future__ import annotations

from boundcalc.base.statement import Statement
from boundcalc.statements.latent import LATENT
from boundcalc.statements.texts.comparison import COMPARISON
from boundcalc.statements.texts.composition import COMPOSITION
from boundcalc.statements.texts.covers import COVERS
from boundcalc.statements.texts.floors import FLOORS
from boundcalc.statements.texts.gap import GAP
from boundcalc.statements.texts.general import GENERAL
from boundcalc.statements.texts.layers import LAYERS, SCORES
from boundcalc.statements.texts.noises import NOISE
from boundcalc.statements.texts.posthoc import POSTHOC

ALL: tuple[Statement, ...] = (
    *COVERS,
    *NOISE,
    *LAYERS,
    *SCORES,
    *COMPOSITION,
    *GAP,
    *COMPARISON,
    *FLOORS,
    *POSTHOC,
    *GENERAL,
    *LATENT,
)

STATEMENTS: dict[str, Statement] = {statement.name: statement for statement in ALL}
"""Every statement by name, in the order of docs/theory.md."""
