"""Symbolic depth: the blocks of a Transformer as a geometric progression (A4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.formulas.symbolic.pieces import Allowed, Costed, block_of, costed, lowered
from boundcalc.formulas.symbolic.printing import latex
from boundcalc.formulas.symbolic.system import Expr, Order, same
from boundcalc.setting import Setting

PROBE = 4
"""Blocks that are lowered to see the pattern: a first, two in the middle and a last one."""


@dataclass(frozen=True)
class Progression:
    """The pieces of any depth D.

    Attributes:
        front: pieces before the first block, as they are at `PROBE` blocks; times ratio per further block.
        first: the first block where it differs from the middle ones, as it is at `PROBE` blocks.
        middle: a middle block, with the gains of the last but one block.
        last: the last block.
        back: pieces after the last block.
        ratio: r, what one block multiplies the gains of everything before it by.
        smooth: whether the last block's gains continue the progression, so that the middle gains are r times those.
        capped: radii that were replaced by the ball's, as (radius, ball).
    """

    front: tuple[Costed, ...]
    first: tuple[Costed, ...]
    middle: tuple[Costed, ...]
    last: tuple[Costed, ...]
    back: tuple[Costed, ...]
    ratio: Expr
    smooth: bool
    capped: tuple[tuple[Expr, Expr], ...]

    @property
    def conditions(self) -> tuple[str, ...]:
        """What is assumed of radii, in words."""
        if not self.capped:
            return ()
        met = " and ".join(rf"${latex(radius)}\ge {latex(ball)}$" for radius, ball in self.capped)
        return (f"activations are taken to fill their ball, which they do when {met}",)

    @property
    def least_depth(self) -> int:
        """The least depth at which the pattern holds."""
        return 2 if self.first or self.front or not self.smooth else 1


def progression(setting: Setting, samples: Expr, allowed: Allowed, order: Order = ()) -> Progression:
    """The pattern of a setting's blocks; refuses one whose gains do not form a geometric progression."""
    if setting.architecture.layers is not None:
        raise _refusal("an explicit list of layers", "layers", "a depth")
    low, ns = lowered(on_spheres(setting).but(depth=PROBE), cap=True, plain=True, order=order)
    pieces = costed(low.pieces, samples, allowed, order)
    start = next(i for i, piece in enumerate(pieces) if piece.block is not None)
    stop = max(i for i, piece in enumerate(pieces) if piece.block is not None) + 1
    blocks = [block_of(pieces, index) for index in range(PROBE)]
    ratio = _ratio(blocks[1], blocks[2])
    if ratio is None:
        odd = _odd_one(blocks[1], blocks[2])
        raise _refusal(f"the piece {odd} changes from block to block by more than a factor", odd, "repeating blocks")
    smooth = _ratio(blocks[2], blocks[3], costs=False) == ratio
    regular = _ratio(blocks[0], blocks[1]) == ratio
    return Progression(
        tuple(pieces[:start]),
        () if regular else tuple(blocks[0]),
        tuple(blocks[2]),
        tuple(blocks[3]),
        tuple(pieces[stop:]),
        ratio,
        smooth,
        tuple(dict.fromkeys(ns.capped)),
    )


def on_spheres(setting: Setting) -> Setting:
    """A setting whose normalised rows have the largest radius L5 allows, sqrt(d), whatever came before; lip unchanged.

    With epsilon counted as variance floor the rule of L5 gives just that.
    """
    architecture = setting.architecture
    if architecture.normalisation not in ("layernorm", "rmsnorm"):
        return setting
    return setting.but(eps=0.0, variance_floor=architecture.variance_floor + architecture.eps)


def _refusal(got: str, piece: str, needs: str) -> Unsupported:
    fix = "Give the depth as a number (--depth 12), or use preset edelman, whose blocks all have radius 1."
    return Unsupported(Refusal(f"the closed form in symbolic depth (piece {piece})", got, needs, fix))


def _ratio(block: Sequence[Costed], after: Sequence[Costed], *, costs: bool = True) -> Expr | None:
    """What the gains of one block are multiples of the next one's by, when one factor serves all its pieces."""
    if [piece.kind for piece in block] != [piece.kind for piece in after]:
        return None
    ratios = [_quotient(a, b) for a, b in zip(block, after, strict=True)]
    if any(not same(ratio, ratios[0]) for ratio in ratios[1:]):
        return None
    if costs and any(not same(a.coefficient, b.coefficient) for a, b in zip(block, after, strict=True)):
        return None
    return ratios[0]


def _quotient(a: Costed, b: Costed) -> Expr:
    return sympy.factor_terms(sympy.factor_terms(a.gain) / sympy.factor_terms(b.gain))


def _odd_one(block: Sequence[Costed], after: Sequence[Costed]) -> str:
    first = _quotient(block[-1], after[-1])
    for a, b in zip(block, after, strict=True):
        if not same(a.coefficient, b.coefficient) or not same(_quotient(a, b), first):
            return b.piece.key
    return after[0].piece.key
