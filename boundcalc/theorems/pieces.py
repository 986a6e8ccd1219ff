"""What must be covered in a network of symbolic depth: its pieces, what each costs, and how errors grow per block."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.layers.facts import Member
from boundcalc.setting import Setting
from boundcalc.statements.covers import ALWAYS, LEMMAS, Counting, CoverLemma
from boundcalc.statements.network import Network, Piece
from boundcalc.statements.targets import Target
from boundcalc.theorems.algebra import SYMPY, Expr, SympySystem, cover_constant, known_le, same, undominated

Allowed = Callable[[CoverLemma], bool]


def allowed_by(names: frozenset[str]) -> Allowed:
    """The lemmas of a policy, with those that offsets, gains and tables need in any case."""
    return lambda lemma: lemma.name in names or lemma.name in ALWAYS


@dataclass(frozen=True)
class Option:
    """One way to cover one map: a lemma on one of its targets; A = factor * reach^2 at gain 1."""

    lemma: CoverLemma
    target: Target
    points: Expr
    factor: Expr
    reach: Expr


@dataclass(frozen=True)
class Costed:
    """A piece with its coefficient.

    Attributes:
        piece: what must be covered.
        kind: its key without the block, as in a norms file.
        block: its block, or None.
        coefficient: A, so that its log count at eps is at most A/eps^2.
        options: per member, the ways left after those that never are the smallest.
    """

    piece: Piece
    kind: str
    block: int | None
    coefficient: Expr
    options: tuple[tuple[Option, ...], ...]

    @property
    def gain(self) -> Expr:
        """Error of the loss per eps."""
        return self.piece.gain


_KEY = re.compile(r"(?P<kind>[\w.]+)(\[(?P<block>\d+)\])?(?P<again>#\d+)?")


def pieces_of(setting: Setting, samples: Expr, allowed: Allowed) -> list[Costed]:
    """The pieces of a setting as expressions, covered on so many samples."""
    try:
        pieces = Network(setting, SympySystem(relaxed=True)).pieces
    except TypeError as error:
        if "truth value" not in str(error) and "expression to float" not in str(error):
            raise
        what = "sizes d or heads that it cannot compare or divide as symbols"
        fix = "Give d and heads as numbers (--set d=768 --heads 12); C, T, m and depth may stay symbols."
        raise Unsupported(Refusal("the formula of this network", what, "sizes it can", fix)) from None
    return [_costed(piece, samples, allowed) for piece in pieces]


def _costed(piece: Piece, samples: Expr, allowed: Allowed) -> Costed:
    match = _KEY.fullmatch(piece.key)
    if match is None:
        raise InvalidSetting(f"a piece's key is like W_V[3], got {piece.key!r}")
    options = tuple(_options(piece.key, member, samples, allowed) for member in piece.members)
    total = sympy.Add(*(m.multiplicity * _least(left) for m, left in zip(piece.members, options, strict=True)))
    block = None if match["block"] is None else int(match["block"])
    return Costed(piece, match["kind"] + (match["again"] or ""), block, sympy.factor_terms(total), options)


def _options(key: str, member: Member, samples: Expr, allowed: Allowed) -> tuple[Option, ...]:
    options: list[Option] = []
    for target in member.targets:
        for lemma in LEMMAS.values():
            if allowed(lemma) and lemma.applies(target) is None:
                shown = sympy.sympify(target.points.per_sample * samples)
                points = shown if target.points.cap is None else SYMPY.minimum(shown, target.points.cap)
                options.append(
                    Option(lemma, target, points, cover_constant(lemma, target, points), lemma.reach(target))
                )
    if not options:
        kind = member.targets[0].kind
        others = ", ".join(name for name, lemma in LEMMAS.items() if kind in lemma.kinds)
        fix = f"Lemmas that cover a {kind}: {others}. `boundcalc eval` finds a number for any mixture of them."
        raise Unsupported(Refusal("the closed form", f"the piece {key} (a {kind})", "a cover of every piece", fix))
    return tuple(undominated(options, _dominates))


def _dominates(a: Option, b: Option) -> bool:
    """Whether option a never costs more than option b: counts grow with the reach, the points and their coordinates."""
    if not known_le(a.reach, b.reach):
        return False
    first, second = a.lemma, b.lemma
    if isinstance(first, Counting) and isinstance(second, Counting):
        one, other = sympy.sympify(first.coordinates(a.target)), sympy.sympify(second.coordinates(b.target))
        if first is second:
            return known_le(a.points, b.points) and known_le(one, other)
        if first.plain:  # whose factor is log(2N + 1); the other's is at least that of its own N
            return known_le(a.points * one, b.points * other)
    return known_le(a.factor, b.factor)


def _least(options: Sequence[Option]) -> Expr:
    """The smallest coefficient; a reach that all options share stands before the minimum."""
    shared = options[0].reach
    if all(option.reach == shared for option in options):
        factors = [option.factor for option in options]
        return shared**2 * (factors[0] if len(factors) == 1 else sympy.Min(*factors))
    return sympy.Min(*(option.factor * option.reach**2 for option in options))


# -- symbolic depth

_PROBE = 3
"""Blocks that are lowered to see the pattern: a first, a middle and a last one."""


@dataclass(frozen=True)
class Progression:
    """The pieces of any depth.

    Attributes:
        middle: a block before the last one, with its coefficients.
        last: the last block.
        back: pieces after the last block.
        ratio: r, what one block multiplies the gains of everything before it by.
    """

    middle: tuple[Costed, ...]
    last: tuple[Costed, ...]
    back: tuple[Costed, ...]
    ratio: Expr


def progression(setting: Setting, samples: Expr, allowed: Allowed) -> Progression:
    """The pattern of a setting's blocks; refuses gains that are no geometric progression from the input on."""
    architecture = setting.architecture
    if architecture.layers is not None:
        raise _no_progression("an explicit list of layers")
    if architecture.normalisation not in ("ball", "none") or architecture.vocabulary or architecture.d_patch:
        raise _no_progression(f"normalisation {architecture.normalisation}, or an embedding before the first block")
    pieces = pieces_of(setting.but(depth=_PROBE), samples, allowed)
    first, middle, last = ([piece for piece in pieces if piece.block == block] for block in range(_PROBE))
    back = [piece for piece in pieces if piece.block is None]
    if pieces[: len(first)] != first:
        raise _no_progression(f"the matrix {pieces[0].piece.key} before the first block")
    ratio = _ratio(middle, last)
    alike = all(same(a.coefficient, b.coefficient) for a, b in zip(first, middle, strict=True))
    if ratio is None or not alike or _ratio(first, middle) != ratio:
        raise _no_progression("blocks whose errors do not grow by one factor")
    return Progression(tuple(middle), tuple(last), tuple(back), ratio)


def _no_progression(what: str) -> Unsupported:
    fix = "`boundcalc eval --bound closed` gives a number, with the depth as a number; formulas are of preset edelman."
    return Unsupported(Refusal("the closed form in symbolic depth", what, "equal blocks from the input on", fix))


def _ratio(block: Sequence[Costed], after: Sequence[Costed]) -> Expr | None:
    """What the gains of one block are multiples of the next one's by, when one factor serves all its pieces."""
    if [piece.kind for piece in block] != [piece.kind for piece in after]:
        return None
    ratios = [
        sympy.factor_terms(sympy.factor_terms(a.gain) / sympy.factor_terms(b.gain))
        for a, b in zip(block, after, strict=True)
    ]
    return ratios[0] if all(same(ratio, ratios[0]) for ratio in ratios[1:]) else None
