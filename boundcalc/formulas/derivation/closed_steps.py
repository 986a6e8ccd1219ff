"""The derivation of the closed form: A1 and A4, one-line chaining, the gap."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from random import Random

import sympy
from flint import arb

from boundcalc.base import symbols
from boundcalc.base.intervals import INTERVAL
from boundcalc.formulas.derivation.check import on_intervals, random_point
from boundcalc.formulas.derivation.covers import cover_steps
from boundcalc.formulas.derivation.network import block_step, error_step, layers_step, loss_step
from boundcalc.formulas.derivation.step import Identity, Relation, Step, Trial, Words, last_step
from boundcalc.formulas.symbolic.closed import CAPACITY, SAMPLES, ClosedForm, R
from boundcalc.formulas.symbolic.depth import PROBE, Progression, on_spheres
from boundcalc.formulas.symbolic.formula import Definition, Formula
from boundcalc.formulas.symbolic.pieces import Costed, block_of, costed, lowered
from boundcalc.formulas.symbolic.system import SYMPY, Expr, Order, same
from boundcalc.statements import gap

_Function = Callable[[dict[str, arb]], arb]

_COPIES = {"gap": SAMPLES, "capacity": SAMPLES, "sample_complexity": SAMPLES}
"""How often the sample is counted (1 for quantities of the sample alone)."""


def closed_steps(form: ClosedForm, quantity: str, formula: Formula) -> Step:
    """The tree of one of a closed form's quantities."""
    parts = {part.symbol.name: part for part in formula.where}
    inner = form if quantity != "covering_number" else form.of_readout
    steps = _network_steps(inner, _COPIES.get(quantity, 1), formula, parts)
    if quantity in ("gap", "rademacher", "sample_complexity"):
        steps.append(_chain_step(form, quantity, parts))
    if quantity in ("gap", "sample_complexity"):
        steps.append(_gap_step())
    if quantity == "sample_complexity":
        steps.append(_target_step())
    trials, identities = _final(form, quantity, formula)
    return last_step(formula, steps, trials=trials, identities=identities)


def _network_steps(form: ClosedForm, copies: int, formula: Formula, parts: dict[str, Definition]) -> list[Step]:
    """Up to log N(e) <= C_F/e^2."""
    norms = form.setting.norms
    if form.exact:
        pieces = form.pieces(copies)
        inside = [piece for piece in pieces if piece.block is not None]
        outside = [piece for piece in pieces if piece.block is None]
        steps = [layers_step(form.setting, form.order), error_step(form.setting, inside, outside, None, form.order)]
        steps.append(_covers([*cover_steps(inside, norms), *cover_steps(outside, norms)]))
        return [*steps, split_step()]
    pattern = form._pattern(copies)
    ratio = parts.get("r")
    steps = [loss_step(form.setting)]
    if ratio is not None:
        steps.append(block_step(form.setting, pattern.ratio, ratio, form.order))
    steps.append(error_step(form.setting, pattern.last, pattern.back, R, form.order))
    covers = list(cover_steps([*pattern.front, *pattern.first], norms, ", first block"))
    middle = cover_steps(pattern.middle, norms, ", a block of which $T$ rows are read")
    last = cover_steps(pattern.last, norms, ", the last block")
    if [step.relation for step in middle] == [step.relation for step in last]:
        covers += cover_steps(pattern.last, norms)
    else:
        covers += [*middle, *last]
    steps.append(_covers([*covers, *cover_steps(pattern.back, norms)]))
    return [*steps, split_step(), _sum_step(form, copies, pattern, formula, parts)]


def _covers(children: Sequence[Step]) -> Step:
    return Step(
        "covers of the pieces", ("A3",), "for each matrix the lemma whose budget is given", None, (), tuple(children)
    )


# -- A1


def split_step() -> Step:
    """A1, checked for three pieces with symbols for everything."""
    A = sympy.symbols("A_1:4", positive=True)
    kappa = sympy.symbols("kappa_1:4", positive=True)
    third = sympy.Rational(1, 3)
    eps = sympy.Symbol("epsilon", positive=True)

    def parts() -> list[Expr]:
        total = sum(((a * k**2) ** third for a, k in zip(A, kappa, strict=True)), sympy.S.Zero)
        return [eps * (a / k) ** third / total for a, k in zip(A, kappa, strict=True)]

    def value() -> tuple[Expr, Expr]:
        left = sum((a / e**2 for a, e in zip(A, parts(), strict=True)), sympy.S.Zero)
        total = sum(((a * k**2) ** third for a, k in zip(A, kappa, strict=True)), sympy.S.Zero)
        return left, total**3 / eps**2

    def budget() -> tuple[Expr, Expr]:
        return sum((k * e for k, e in zip(kappa, parts(), strict=True)), sympy.S.Zero), eps

    return Step(
        "the best split of the error",
        ("A1",),
        r"costs $A_j/\varepsilon_j^2$ and one constraint $\sum_j\kappa_j\varepsilon_j = \varepsilon$; $\varepsilon_j$ is in "
        r"proportion to $(A_j/\kappa_j)^{1/3}$",
        Relation(
            Words(r"\min\Big\{\sum_j A_j/\varepsilon_j^2:\sum_j\kappa_j\varepsilon_j=\varepsilon\Big\}"),
            "eq",
            Words(r"\Big(\sum_j (A_j\kappa_j^2)^{1/3}\Big)^3/\varepsilon^2"),
        ),
        trials=(_no_split_is_better,),
        identities=(value, budget),
    )


def _no_split_is_better(random: Random) -> tuple[arb, arb]:
    A = [arb(10 ** random.uniform(-2, 3)) for _ in range(5)]
    kappa = [arb(10 ** random.uniform(-2, 3)) for _ in range(5)]
    weights = [random.random() + 1e-3 for _ in range(5)]
    parts = [arb(w) / sum(weights) / k for w, k in zip(weights, kappa, strict=True)]
    best = sum(((a * k**2).root(3) for a, k in zip(A, kappa, strict=True)), arb(0)) ** 3
    return best, sum((a / e**2 for a, e in zip(A, parts, strict=True)), arb(0))


# -- A4


def _sum_step(
    form: ClosedForm, copies: int, pattern: Progression, formula: Formula, parts: dict[str, Definition]
) -> Step:
    """A4: weights of the blocks are in geometric progression, and the sum of one."""
    main = parts.get("C_F")

    def progression() -> tuple[Expr, Expr]:
        """Cubes of the weights of blocks 1 and 2 of a deeper network, against r^2."""
        deeper = on_spheres(form.setting).but(depth=PROBE + 1)
        pieces = costed(
            lowered(deeper, cap=True, plain=True, order=form.order)[0].pieces,
            copies * form._m,
            form.allowed,
            form.order,
        )
        ratio = sympy.S.One
        for earlier, later in zip(block_of(pieces, 1), block_of(pieces, 2), strict=True):
            ratio = _cube(earlier) / _cube(later)
            if not same(ratio, pattern.ratio**2):
                return ratio, pattern.ratio**2
        return sympy.factor_terms(ratio), sympy.factor_terms(pattern.ratio**2)

    total = parts.get("G")
    identities: list[Identity] = [progression]
    if total is not None and isinstance(total.expr, sympy.Piecewise):
        identities += [written_out(total, sympy.Rational(2, 3), depth) for depth in range(2, 6)]
        identities.append(at_ratio_one(total))
    where = tuple(part for name, part in parts.items() if name not in ("k", "r"))
    return Step(
        "the sum over the blocks",
        ("A4",),
        "one block multiplies the gains of all before it by $r$, so their terms in A1 by $r^{2/3}$; the sum is geometric",
        None if main is None else Relation(CAPACITY, "eq", main.expr),
        where,
        trials=() if main is None else _sum_written_out(form, copies, _capacity(main, formula)),
        identities=tuple(identities),
    )


def _capacity(main: Definition, formula: Formula) -> Formula:
    """C_F as a formula of its own."""
    return Formula("C_F", main.expr, tuple(part for part in formula.where if part.symbol.name not in ("k", "C_F")))


_BLOCKS, _MOST_BLOCKS = 3, 32


def _sum_written_out(form: ClosedForm, copies: int, capacity: Formula, power: Expr = sympy.S.Zero) -> tuple[Trial, ...]:
    """A1's sum over the pieces of a network of so many blocks, one by one, is at most C_F (times eps^power).

    A network whose depth is a number is written out whole, unless it is too deep: then there is no such check.
    """
    depth = form.setting.architecture.depth
    blocks = depth if isinstance(depth, int) else _BLOCKS
    if not form.exact and blocks > _MOST_BLOCKS:
        return ()

    @cache
    def made() -> tuple[Formula, _Function, _Function]:  # lowering takes longer than printing does
        each = form.pieces(copies) if form.exact else _written_out(form, copies, blocks)
        direct = Formula("direct", sympy.Add(*(piece.weight for piece in each)) ** 3 * symbols.eps**power)
        return direct, on_intervals(direct), on_intervals(capacity)

    def trial(random: Random) -> tuple[arb, arb]:
        direct, summed, closed = made()
        both = Formula("both", direct.expr + capacity.expanded)
        point = _ordered_point(random_point(both, random, {"depth": blocks}), form.order)
        return summed(point), closed(point)

    return (trial,)


def _written_out(form: ClosedForm, copies: int, blocks: int) -> list[Costed]:
    """The pieces of a network of so many blocks."""
    network = on_spheres(form.setting).but(depth=blocks)
    pieces = lowered(network, cap=True, plain=True, order=form.order)[0].pieces
    return costed(pieces, copies * form._m, form.allowed, form.order)


def _ordered_point(point: dict[str, arb], order: Order) -> dict[str, arb]:
    """The same point with ordered symbols in their order."""
    names = [symbol.name for symbol in order if symbol.name in point]
    values = sorted((point[name] for name in names), key=float)
    return point | dict(zip(names, values, strict=True))


def _cube(piece: Costed) -> Expr:
    return sympy.factor_terms(piece.coefficient) * sympy.factor_terms(piece.gain) ** 2


def _cases(total: Definition, depth: int) -> tuple[Expr, Expr]:
    """(value, number of terms) of a geometric sum at one depth."""
    (count, _), (value, _) = total.expr.args
    at = {symbol: depth for symbol in count.free_symbols}
    return value.subs(at), count.subs(at)


def written_out(total: Definition, step: Expr, depth: int) -> Identity:
    """A geometric sum in ratio r^step against its terms, written out."""

    def identity() -> tuple[Expr, Expr]:
        value, count = _cases(total, depth)
        first = 0 if value.subs(R, sympy.Rational(1, 10**30)).subs(symbols.p, 1).evalf(20) > 0.5 else 1
        return value, sympy.Add(*(R ** (step * i) for i in range(first, first + int(count))))

    return identity


def at_ratio_one(total: Definition) -> Identity:
    """The branch r = 1 is the limit of the other one."""

    def identity() -> tuple[Expr, Expr]:
        value, count = _cases(total, 7)
        return sympy.limit(value.subs(symbols.p, 1), R, 1), count

    return identity


# -- G

_CHAIN = r"2e_J+\phi\sum_j e_{j-1}\sqrt{2\log N_j/m}"


def _chain_step(form: ClosedForm, quantity: str, parts: dict[str, Definition]) -> Step:
    """G1 in one line."""
    factor = sympy.S(2) if quantity == "rademacher" else gap.chain_factor(SYMPY, gap.CLOSED_GHOSTS, uniform=False)
    scale = parts.get("k")
    k = sympy.Symbol("k", positive=True)
    per_root = factor / 2 * sympy.E * sympy.sqrt(2 / form._m)
    line = gap.chain_closed(SYMPY, (k / per_root) ** 2, factor, form._m)
    note = (
        r"scales $e_j = e^{-(t+1)j/n}/2$ for $j < n$, $t = \log(1/(2k))$, with the best whole $n$; for $k\ge 1/2$ the "
        "right side is above 1, the range of the loss"
    )
    return Step(
        "chaining in one line",
        ("G1",),
        note,
        Relation(
            Words(_CHAIN),
            "le",
            line,
        ),
        () if scale is None else (scale,),
        trials=(_chain_trial(factor),),
    )


def _chain_trial(factor: Expr) -> Trial:
    def trial(random: Random) -> tuple[arb, arb]:
        m, phi = arb(10**6), arb(int(factor.p)) / int(factor.q)
        k = arb(10 ** random.uniform(-6, 0.2))
        capacity = (k / (phi / 2 * arb(1).exp())) ** 2 * m / 2
        best = arb(1)
        t = max(0.0, -math.log(2 * float(k)))
        for levels in range(1, 60):
            scales = [(-arb(t + 1) * j / levels).exp() / 2 for j in range(levels)]
            counts = [capacity / scale**2 for scale in scales[1:]]
            links = gap.chain_sum(INTERVAL, scales, counts, m)
            best = INTERVAL.minimum(best, 2 * scales[-1] + phi * links)
        return best, gap.chain_closed(INTERVAL, capacity, phi, m)

    return trial


def _gap_step() -> Step:
    """G2 with ghosts."""
    return Step(
        "from covers to the gap",
        ("G2",),
        rf"{gap.CLOSED_GHOSTS} ghost samples per sample: $\phi = 1 + 1/{gap.CLOSED_GHOSTS} = {SAMPLES}/{gap.CLOSED_GHOSTS}$, "
        rf"covers counted on ${SAMPLES}m$ sequences; McDiarmid's inequality for the deviation",
        Relation(Words(r"\mathrm{gap}"), "le", Words(_CHAIN + r"+\sqrt{\log(1/\delta)/(2m)}")),
    )


def _target_step() -> Step:
    """Half the target to the chain, half to the deviation."""
    t, u = sympy.Symbol("t", positive=True), sympy.Symbol("u", positive=True)
    offset = SYMPY.number(gap.CLOSED_OFFSET)
    return Step(
        "solving for the sample size",
        (),
        r"half of the target for the chain $2k(\dots) = u(\dots)$, half for the deviation; $C_F$ grows like $\log m$, so "
        "the right side is taken at the $m$ that is tried",
        Relation(
            Words(rf"u({gap.CLOSED_OFFSET}+\log(1/u))\le t\ \text{{ at }}\ u"),
            "eq",
            t / (2 * (offset + sympy.log(1 / t))),
        ),
        trials=(_target_trial,),
        where=(Definition(u, 2 * sympy.Symbol("k", positive=True), "twice the scale of the chain", "u"),),
    )


def _target_trial(random: Random) -> tuple[arb, arb]:
    t, offset = arb(10 ** random.uniform(-6, -0.302)), INTERVAL.number(gap.CLOSED_OFFSET)
    u = t / (2 * (offset - t.log()))
    return u * (offset - u.log()), t


def _final(form: ClosedForm, quantity: str, formula: Formula) -> tuple[tuple[Trial, ...], tuple[Identity, ...]]:
    """The formula against the calculus' own functions, at the same C_F or at the sum that C_F stands for."""
    k = next((part.expr for part in formula.where if part.symbol.name == "k"), None)
    m, inverse = form._m, sympy.log(1 / form._delta)
    if quantity in ("gap", "rademacher") and k is not None:
        line = gap.gap_closed(SYMPY, CAPACITY, inverse, m)
        if quantity == "rademacher":
            line = gap.chain_closed(SYMPY, CAPACITY, sympy.S(2), m) / 2
        return (), (lambda: (formula.expr.subs(sympy.Symbol("k", positive=True), k), line),)
    if quantity == "sample_complexity":
        return (_enough(form, formula), _no_more_than_enough(form, formula)), ()
    copies = _COPIES.get(quantity, 1)
    of_loss = quantity != "covering_number" or any(symbol.name == "L_s" for symbol in formula.inputs)
    return _sum_written_out(
        form if of_loss else form.of_readout, copies, formula, sympy.S(-2 if quantity == "covering_number" else 0)
    ), ()


def _at_capacity(form: ClosedForm, formula: Formula, random: Random) -> tuple[arb, arb, arb, arb]:
    """(sample size of the formula, C_F, target, log(1/delta)) at a random point."""
    plain = Formula("m", formula.expr)
    point = random_point(plain, random, {"target": 10 ** random.uniform(-4, -0.5), "C_F": 10 ** random.uniform(-3, 6)})
    delta: arb = point["delta"] if "delta" in point else INTERVAL.number(form.setting.sample.delta)
    return on_intervals(plain)(point), point["C_F"], point["target"], (1 / delta).log()


def _enough(form: ClosedForm, formula: Formula) -> Trial:
    """The gap's own line at the sample size of the formula is at most the target."""

    def trial(random: Random) -> tuple[arb, arb]:
        m, capacity, target, inverse = _at_capacity(form, formula, random)
        return gap.gap_closed(INTERVAL, capacity, inverse, m), target

    return trial


def _no_more_than_enough(form: ClosedForm, formula: Formula) -> Trial:
    """The formula is the larger of the sizes at which the scale and the deviation are what they are said to be."""

    def trial(random: Random) -> tuple[arb, arb]:
        m, capacity, target, inverse = _at_capacity(form, formula, random)
        half = target / 2
        u = half / (2 * (INTERVAL.number(gap.CLOSED_OFFSET) - half.log()))
        root = gap.chain_factor(INTERVAL, gap.CLOSED_GHOSTS, uniform=False) * arb(1).exp() * (2 * capacity).sqrt()
        least = INTERVAL.maximum((root / u) ** 2, inverse / 2 / half**2)
        # equal in mathematics: both directions at once
        return abs(m - least), least * arb("1e-12")

    return trial
