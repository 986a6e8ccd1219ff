"""One cover that serves every sample at one scale (G2, X5), as a formula in symbolic depth: nothing depends on T.

The error is split equally among the J pieces. Over the blocks the log counts are sums of p log(1 + a r^i), which have
no closed form; log(1 + a r^i) <= log(1 + a) + i log max(1, r) does, and is exact for one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import sympy

from boundcalc.base import symbols
from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.setting import Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.latent import excess_risk
from boundcalc.theorems.algebra import SYMPY, Expr, number
from boundcalc.theorems.closed import LEFT, Form, R
from boundcalc.theorems.formula import Definition, Formula, ordered
from boundcalc.theorems.pieces import Costed, Progression, allowed_by, progression

PIECES, _P, N_BLOCK, N_OUT, _TOTAL = (sympy.Symbol(name, positive=True) for name in ("J", "P", "N_b", "N_w", "N"))
_Y = sympy.Symbol("y", positive=True)


@dataclass(frozen=True)
class Volume:
    """The log count of one piece: p log(1 + stretch / eps), for eps in the loss; `kind` is that of its target."""

    key: str
    kind: str
    dimension: Expr
    stretch: Expr


@dataclass(frozen=True)
class UniformForm(Form):
    """One uniform cover for every piece, by one lemma; T plays no role."""

    quantities: ClassVar[tuple[str, ...]] = ("gap", "covering_number", "excess")
    setting: Setting
    lemma: str = "T4"

    @cached_property
    def gap(self) -> Formula:
        """X5: scale 1/m."""
        total, parts = self._count(1 / self.m)
        parts = [Definition(_TOTAL, total, "log count of the class", "N"), *parts]
        expr = gap.gap_uniform_single(SYMPY, 1 / self.m, _TOTAL, self.log_inverse_delta, self.m)
        return Formula("gap", expr, ordered(expr, parts), LEFT["gap"])

    @cached_property
    def excess(self) -> Formula:
        """X5: risk of an empirical minimiser above the best of the class, with probability 1 - 2 delta."""
        expr = excess_risk(SYMPY, self.gap.expr, self.log_inverse_delta, self.m)
        return replace(self.gap, name="excess", expr=expr, left=LEFT["excess"])

    @cached_property
    def covering_number(self) -> Formula:
        """Bound of log N(F, eps), eps in the read-out, on every sample at once."""
        total, parts = self.of_readout._count(symbols.eps)
        return Formula("covering_number", total, ordered(total, parts), LEFT["covering_number"])

    @cached_property
    def pattern(self) -> Progression:
        """The blocks as a progression."""
        return progression(self.setting, self.m, allowed_by(frozenset({self.lemma})))

    def volumes(self, pieces: Sequence[Costed]) -> list[Volume]:
        """Dimension and stretch of pieces."""
        lemma, volumes = LEMMAS[self.lemma], list[Volume]()
        for piece in pieces:
            for member in piece.piece.members:
                target = next(target for target in member.targets if target.kind in lemma.kinds)
                cost = lemma.closed(SYMPY, _Y, target, number(1))
                logs = [f for f in sympy.Mul.make_args(cost) if isinstance(f, sympy.log) and f.has(_Y)]
                if len(logs) != 1:
                    what = f"{self.lemma}, whose cost is not p log(1 + f y)"
                    raise Unsupported(Refusal("X5", what, "volumetric covers", "Choose T4."))
                stretch = sympy.expand(logs[0].args[0] - 1) / _Y * piece.gain * lemma.reach(target)
                volumes.append(Volume(piece.piece.key, target.kind, member.multiplicity * cost / logs[0], stretch))
        return volumes

    def _count(self, scale: Expr) -> tuple[Expr, list[Definition]]:
        """The log count at a scale of the loss, split equally."""
        pattern, depth = self.pattern, number(self.setting.architecture.depth)
        block, back = self.volumes(pattern.last), self.volumes(pattern.back)
        steep = sympy.Max(0, sympy.log(R))
        total = N_OUT + depth * N_BLOCK + _P * depth * (depth - 1) / 2 * steep
        pieces = len(block) * depth + len(back)
        return total, [
            Definition(N_OUT, log_count(back, scale), "log count of the read-out", "N_w"),
            Definition(N_BLOCK, log_count(block, scale), "log count of the last block", "N_b"),
            Definition(_P, sympy.Add(*(v.dimension for v in block)), "parameters of a block", "P"),
            Definition(PIECES, pieces, "pieces that share the error", "J"),
            Definition(R, pattern.ratio, "what one block multiplies earlier errors by", "r"),
        ]


def log_count(volumes: Sequence[Volume], scale: Expr) -> Expr:
    """The log count of pieces with equal shares of a scale of the loss."""
    return sympy.Add(*(v.dimension * sympy.log(1 + PIECES * v.stretch / scale) for v in volumes))
