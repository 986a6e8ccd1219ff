"""Every statement of the calculus by name: T, L, S, A, G, P1, PUB, E and X; `STATEMENTS` is the registry.

What the library proves with does not import this: it is for readers (`boundcalc explain T2`, printed derivations) and
for programs that want a statement's value by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from boundcalc.base.statement import Statement
from boundcalc.statements.texts.composition import COMPOSITION
from boundcalc.statements.texts.covers import COVERS
from boundcalc.statements.texts.gap import GAP
from boundcalc.statements.texts.general import GENERAL
from boundcalc.statements.texts.latent import LATENT
from boundcalc.statements.texts.layers import LAYERS, SCORES
from boundcalc.statements.texts.posthoc import POSTHOC

ALL: tuple[Statement, ...] = (*COVERS, *LAYERS, *SCORES, *COMPOSITION, *GAP, *POSTHOC, *GENERAL, *LATENT)

STATEMENTS: dict[str, Statement] = {statement.name: statement for statement in ALL}
"""Every statement by name, in the order of docs/theory.md."""


def cover_uses(lemma: str, kind: str, *, uniform: bool) -> tuple[str, ...]:
    """What a cover of a target of some kind rests on: the lemma, and for a bilinear score how it is seen."""
    if kind == "score":
        return "S1", lemma
    if kind in ("query", "key"):
        return "S3" if uniform else "S2", lemma
    return (lemma,)


STRATEGY_USES: Mapping[str, tuple[str, ...]] = {
    "chain": ("G0", "G1", "G2"),
    "ghost-chain": ("G0", "G1", "G2"),
    "uniform-chain": ("G0", "G2"),
    "uniform-single": ("G0", "G2"),
    "closed": ("G0", "A1", "A4", "G1", "G2"),
    "published": ("G0", "A1", "PUB"),
    "uniform-margin": ("G0", "G0e", "G3"),
    "ghost-realizable": ("G0", "G0e", "G4"),
    "ghost": ("G0", "G0e", "G5"),
}
"""The statements a certificate's strategy rests on, beside those of its covers and layers."""
