"""What every piece costs, symbolically: log N_j(eps) <= A_j / eps^2 with A_j named as papers would."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import sympy

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.formulas.symbolic.functions import factor
from boundcalc.formulas.symbolic.system import SYMPY, Expr, Order, SympySystem, known_le, undominated
from boundcalc.setting import Setting
from boundcalc.statements.covers import ALWAYS, LEMMAS, Counting, CoverLemma
from boundcalc.statements.network import Network, Piece
from boundcalc.statements.slots import Member
from boundcalc.statements.targets import Target

THIRD = sympy.Rational(1, 3)
Allowed = Callable[[CoverLemma], bool]


@dataclass(frozen=True)
class _Option:
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
        options: per member, the ways left after those that never are the least.
    """

    piece: Piece
    kind: str
    block: int | None
    coefficient: Expr
    options: tuple[tuple[_Option, ...], ...]

    @property
    def gain(self) -> Expr:
        """Error of the loss per eps."""
        return self.piece.gain

    @property
    def weight(self) -> Expr:
        """(A gain^2)^(1/3), the piece's part of A1's sum."""
        return (self.coefficient * self.gain**2) ** THIRD


_KEY = re.compile(r"(?P<kind>[\w.]+)(\[(?P<block>\d+)\])?(?P<again>#\d+)?")


def lowered(setting: Setting, *, cap: bool, plain: bool = False, order: Order = ()) -> tuple[Network, SympySystem]:
    """A setting's pieces as expressions; refuses sizes between which its symbols do not decide."""
    ns = SympySystem(cap=cap, plain=plain, order=order)
    try:
        return Network(setting, ns), ns
    except TypeError as error:
        if "truth value" not in str(error) and "expression to float" not in str(error):
            raise
        refusal = Refusal(
            "the symbolic lowering", "sizes d or heads that it cannot compare or divide as symbols", "sizes it can"
        )
        raise Unsupported(
            replace(
                refusal, fix="Give d and heads as numbers (--d 768 --heads 12); C, T, m and depth may stay symbols."
            )
        ) from None


def costed(pieces: Sequence[Piece], samples: Expr, allowed: Allowed, order: Order = ()) -> list[Costed]:
    """Every piece with its coefficient, on so many samples."""
    return [_costed(piece, samples, allowed, order) for piece in pieces]


def _costed(piece: Piece, samples: Expr, allowed: Allowed, order: Order) -> Costed:
    match = _KEY.fullmatch(piece.key)
    if match is None:
        raise InvalidSetting(f"a piece's key is like W_V[3], got {piece.key!r}")
    total = sympy.S.Zero
    options: list[tuple[_Option, ...]] = []
    for member in piece.members:
        left = _options(piece.key, member, samples, allowed, order)
        options.append(left)
        total = total + member.multiplicity * _least(left)
    block = match["block"]
    return Costed(
        piece,
        match["kind"] + (match["again"] or ""),
        None if block is None else int(block),
        sympy.factor_terms(total),
        tuple(options),
    )


def _options(key: str, member: Member, samples: Expr, allowed: Allowed, order: Order) -> tuple[_Option, ...]:
    found: list[_Option] = []
    for target in member.targets:
        for lemma in LEMMAS.values():
            if allowed(lemma) and lemma.applies(target) is None:
                n = points(target, samples)
                found.append(_Option(lemma, target, n, factor(lemma, target, n), lemma.reach(target)))
    if not found:
        names = ", ".join(name for name, lemma in LEMMAS.items() if allowed(lemma))
        kind = member.targets[0].kind
        others = ", ".join(name for name, lemma in LEMMAS.items() if kind in lemma.kinds)
        raise Unsupported(
            Refusal(
                "the closed form",
                f"the piece {key} (a {kind}), which none of {names} covers",
                "a cover of every piece",
                f"Lemmas that cover a {kind}: {others}. `boundcalc eval` finds a number for any mixture of them.",
            )
        )
    return tuple(undominated(found, lambda a, b: _dominates(a, b, order)))


def points(target: Target, samples: Expr) -> Expr:
    """N, how many points of a target so many samples show."""
    shown = sympy.sympify(target.points.per_sample * samples)
    return shown if target.points.cap is None else SYMPY.minimum(shown, target.points.cap)


def _dominates(a: _Option, b: _Option, order: Order) -> bool:
    """Whether option a never costs more than option b: counts grow with the reach, the points and their coordinates."""
    if not known_le(a.reach, b.reach, order):
        return False
    first, second = a.lemma, b.lemma
    if isinstance(first, Counting) and isinstance(second, Counting):
        one, other = sympy.sympify(first.coordinates(a.target)), sympy.sympify(second.coordinates(b.target))
        if first is second:
            return known_le(a.points, b.points) and known_le(one, other)
        if first.plain:  # whose factor is log(2N + 1); the other's is at least that of its own N
            return known_le(a.points * one, b.points * other)
    return known_le(a.factor, b.factor)


def _least(options: Sequence[_Option]) -> Expr:
    """The least coefficient; a reach that all options share stands before the minimum."""
    shared = options[0].reach
    if all(option.reach == shared for option in options):
        return shared**2 * _minimum([option.factor for option in options])
    return _minimum([option.factor * option.reach**2 for option in options])


def _minimum(values: Sequence[Expr]) -> Expr:
    return values[0] if len(values) == 1 else sympy.Min(*values)


def allowed_by(names: frozenset[str]) -> Allowed:
    """The lemmas of a policy, with those that offsets, gains and tables need in any case."""
    return lambda lemma: lemma.name in names or lemma.name in ALWAYS


def block_of(pieces: Sequence[Costed], block: int) -> list[Costed]:
    """The pieces of one block."""
    return [piece for piece in pieces if piece.block == block]
