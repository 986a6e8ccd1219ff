"""Covers that serve every sample at one scale (G2, X5), as formulas in symbolic depth: nothing depends on T.

The error is split equally among the J pieces. Over the blocks the log-counts are sums of p log(1 + a r^i), which have
no closed form; log(1 + a r^i) <= log(1 + a) + i log max(1, r) does, and is exact for one block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import sympy

from boundcalc.base import symbols
from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.formulas.symbolic.closed import ON_THE_SAMPLE, R
from boundcalc.formulas.symbolic.depth import Progression, progression
from boundcalc.formulas.symbolic.form import Form
from boundcalc.formulas.symbolic.formula import LEFT, Definition, Formula, ordered
from boundcalc.formulas.symbolic.pieces import Costed, allowed_by
from boundcalc.formulas.symbolic.system import SYMPY, Expr, number
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS
from boundcalc.statements.latent import excess_risk
from boundcalc.statements.targets import Target

_J, _P, _N_BLOCK, _N_OUT = (sympy.Symbol(name, positive=True) for name in ("J", "P", "N_b", "N_w"))
_V, _SCALE, _LOG, _POWER_SUM = (sympy.Symbol(name, positive=True) for name in ("V", "e_0", "ell", "G_p"))
_Y = sympy.Symbol("y", positive=True)


@dataclass(frozen=True)
class Volume:
    """The count of one piece: p log(1 + stretch / eps), for eps in the loss; `kind` is that of its target."""

    key: str
    lemma: str
    kind: str
    dimension: Expr
    stretch: Expr


@dataclass(frozen=True)
class UniformForm(Form):
    """One uniform cover for every piece; T plays no role.

    Attributes:
        lemmas: which lemma covers a kind of matrix; "*" for all others.
        rank: the rank that T5 may use, where the setting's widths do not say.
    """

    quantities: ClassVar[tuple[str, ...]] = ("gap", "covering_number", "excess")
    lemmas: Mapping[str, str] = field(default_factory=lambda: {"*": "T4"})
    rank: Expr | None = None

    # -- formulas

    @cached_property
    def gap(self) -> Formula:
        """X5: scale 1/m."""
        total, parts = self._count(1 / self._m, self._pattern)
        expr = gap.gap_uniform_single(SYMPY, 1 / self._m, total, sympy.log(1 / self._delta), self._m)
        return Formula("gap", expr, ordered(parts), LEFT["gap"], conditions=self.conditions)

    @cached_property
    def excess(self) -> Formula:
        """X5: risk of an empirical minimiser above the best of the class, with probability 1 - 2 delta."""
        formula = self.gap
        expr = excess_risk(SYMPY, formula.expr, sympy.log(1 / self._delta), self._m)
        return replace(formula, name="excess", expr=expr, latex_name=LEFT["excess"])

    @cached_property
    def covering_number(self) -> Formula:
        """Bound of log N(F, eps), eps in the read-out, on every sample at once."""
        inner, name = self.of_readout, "covering_number"
        total, parts = inner._count(symbols.eps, inner._pattern)
        return Formula(name, total, ordered(parts), LEFT[name], conditions=self.conditions)

    # -- parts

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """What the formulas assume, in words."""
        return (*ON_THE_SAMPLE, *self._pattern.conditions)

    @cached_property
    def _pattern(self) -> Progression:
        found = progression(self.setting, self._m, allowed_by(frozenset({"T4"})))
        if found.front or found.first or not found.smooth:
            odd = [*found.front, *found.first, *found.middle][0].piece.key
            raise Unsupported(
                Refusal(
                    "X5 in symbolic depth",
                    f"the piece {odd}, which does not follow the blocks' progression",
                    "equal blocks from the input on",
                    "Use preset edelman, or `boundcalc eval --bound parameters` with the depth as a number.",
                )
            )
        return found

    def volumes(self, pieces: Sequence[Costed]) -> list[Volume]:
        """Dimension and stretch of pieces, by the lemma chosen for their kind."""
        found: list[Volume] = []
        for piece in pieces:
            name = self.lemmas.get(piece.kind, self.lemmas["*"])
            for member in piece.piece.members:
                target = self._target(name, member.targets)
                dimension, factor = self._shape(name, target)
                reach = LEMMAS[name].reach(target)
                size, stretch = member.multiplicity * dimension, factor * piece.gain * reach
                found.append(Volume(piece.piece.key, name, target.kind, size, stretch))
        return found

    def _target(self, name: str, targets: Sequence[Target]) -> Target:
        lemma = LEMMAS[name]
        target = next((target for target in targets if target.kind in lemma.kinds), None)
        if target is None:
            raise Unsupported(Refusal(name, f"a {targets[0].kind}", f"a {' or '.join(sorted(lemma.kinds))}"))
        if name == "T5" and self.rank is not None:
            return replace(target, norms=replace(target.norms, rank=self.rank))
        return target

    @staticmethod
    def _shape(name: str, target: Target) -> tuple[Expr, Expr]:
        """(p, f) of a lemma's closed cost p log(1 + f y)."""
        cost = LEMMAS[name].closed(SYMPY, _Y, target, number(1))
        logs = [factor for factor in sympy.Mul.make_args(cost) if isinstance(factor, sympy.log) and factor.has(_Y)]
        if len(logs) != 1:
            raise Unsupported(
                Refusal(
                    "X5", f"{name}, whose cost is not p log(1 + f y)", "volumetric covers", "Choose T4, T5 or T8-T10."
                )
            )
        return cost / logs[0], sympy.expand(logs[0].args[0] - 1) / _Y

    def _count(self, scale: Expr, pattern: Progression) -> tuple[Expr, list[Definition]]:
        """The log count at a scale of the loss, split equally."""
        depth, block = number(self.setting.architecture.depth), self.volumes(pattern.last)
        steep = sympy.Max(0, sympy.log(R))
        total = _N_OUT + depth * _N_BLOCK + _P * depth * (depth - 1) / 2 * steep
        back, *rest = self._shared(scale, pattern)
        parts = [
            back,
            Definition(_N_BLOCK, _log_count(block, scale), "log count of the last block", "N_b"),
            Definition(_P, sympy.Add(*(v.dimension for v in block)), "parameters of a block", "P"),
            *rest,
        ]
        return total, parts

    def _shared(self, scale: Expr, pattern: Progression) -> list[Definition]:
        """The parts of any count at a scale of the loss."""
        pieces = len(pattern.last) * number(self.setting.architecture.depth) + len(pattern.back)
        out = _log_count(self.volumes(pattern.back), scale)
        return [
            Definition(_N_OUT, out, "log count of what follows the blocks", "N_w"),
            Definition(_J, pieces, "pieces that share the error", "J"),
            Definition(R, pattern.ratio, "what one block multiplies earlier errors by", "r"),
        ]


def _log_count(volumes: Sequence[Volume], scale: Expr) -> Expr:
    """Of J pieces with equal shares of a scale of the loss."""
    return sympy.Add(*(v.dimension * sympy.log(1 + _J * v.stretch / scale) for v in volumes))
