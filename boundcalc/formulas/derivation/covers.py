"""Steps that cover the pieces: T and S, with what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from boundcalc.base.errors import InvalidSetting
from boundcalc.formulas.derivation.network import EPS, derived, log_count_of, named, spoken
from boundcalc.formulas.derivation.step import Relation, Step
from boundcalc.formulas.symbolic.pieces import Costed
from boundcalc.formulas.symbolic.system import Expr
from boundcalc.setting import Norms
from boundcalc.statements.covers import CoverLemma
from boundcalc.statements.covers.base import cover_uses as statement_uses
from boundcalc.statements.targets import MatrixNorms, Target

_NORM_NAMES = ("op", "fro", "two_one", "two_one_t", "one_one", "schatten")
"""The budgets that set the norms of a matrix, in their order there (the nuclear norm is a Schatten sum)."""


def _cover_uses(norms: Norms, kind: str, lemma: CoverLemma, target: Target) -> tuple[str, ...]:
    """What a cover rests on: S, T, T7 for a difference from a reference, and A5 where its norm follows from others."""
    used = statement_uses(lemma.name, target.kind, uniform=lemma.uniform)
    if target.kind not in ("map", "score", "query", "key"):
        return used
    limited = limited_norm(lemma, target)
    vector = target.kind == "map" and target.k == 1  # whose norms are all one
    if derived(norms, kind, *(("op", "fro", "two_one") if vector else (limited,))):
        used = (*used, "A5")
    with suppress(InvalidSetting):
        if norms.find(kind).distance is not None:
            used = (*used, "T7")
    return used


def limited_norm(lemma: CoverLemma, target: Target) -> str:
    """The name of the norm a lemma limits, asked of the lemma: every norm gets a value of its own to be known by."""
    marks = dict(enumerate(_NORM_NAMES, start=1))
    norms = MatrixNorms(*map(float, marks), rank=1)
    return marks.get(lemma.norm(replace(target, norms=norms)), "op")


def cover_steps(pieces: Sequence[Costed], norms: Norms, note: str = "") -> tuple[Step, ...]:
    """T and S: one step per piece, log N_j(eps) <= A_j/eps^2."""
    return tuple(_cover_step(piece, norms, note) for piece in pieces)


def _counted(points: Expr) -> str:
    size = spoken(points)
    return f"$N = {size[1:]} points" if size.startswith("$") else f"$N$ points, {size}"


def _cover_step(piece: Costed, norms: Norms, note: str) -> Step:
    uses: dict[str, None] = {}
    hypotheses: list[str] = []
    for options in piece.options:
        for option in options:
            kind = option.target.kind
            uses |= dict.fromkeys(_cover_uses(norms, piece.kind.partition("#")[0], option.lemma, option.target))
            counted = "" if option.lemma.uniform else f" on {_counted(option.points)}"
            hypotheses.append(f"{option.lemma.name} as a {kind}{counted}, reach {spoken(option.reach)}")
    several = "; the least counts" if len(hypotheses) > 1 else ""
    count = sum(member.multiplicity for member in piece.piece.members)
    copies = "" if count == 1 else f"; {spoken(count)} such maps"
    name = piece.kind if piece.block is not None else piece.piece.key
    title = f"{named(name)}{note if piece.block is not None else ''}"
    return Step(
        title,
        tuple(uses),
        "; ".join(hypotheses) + several + copies,
        Relation(log_count_of(name), "le", piece.coefficient / EPS**2),
    )
