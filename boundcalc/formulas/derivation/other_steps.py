"""Derivations of the other theorems: one uniform cover (X5), spectra (T6), general attention (E), finite classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from random import Random

import sympy
from flint import arb

from boundcalc.base import symbols
from boundcalc.base.intervals import INTERVAL
from boundcalc.formulas.derivation.check import on_intervals, random_point
from boundcalc.formulas.derivation.closed_steps import at_ratio_one, split_step, written_out
from boundcalc.formulas.derivation.network import EPS, block_step, error_step, log_count_of, loss_step, named
from boundcalc.formulas.derivation.step import Relation, Step, Trial, Words, last_step
from boundcalc.formulas.symbolic.closed import R
from boundcalc.formulas.symbolic.depth import on_spheres
from boundcalc.formulas.symbolic.formula import Formula
from boundcalc.formulas.symbolic.pieces import allowed_by, costed, lowered
from boundcalc.formulas.symbolic.system import SYMPY, Expr
from boundcalc.formulas.symbolic.uniform import SpectrumForm, UniformForm, Volume
from boundcalc.statements import gap
from boundcalc.statements.covers import LEMMAS, T6
from boundcalc.statements.covers.base import cover_uses
from boundcalc.statements.gap import sparse_class_size
from boundcalc.statements.general import GeneralAttention, choose_share, log_count
from boundcalc.statements.targets import MatrixNorms, Points, Target

# -- X5


def uniform_steps(form: UniformForm, quantity: str, formula: Formula) -> Step:
    """One uniform cover at one scale."""
    parts = {part.symbol.name: part for part in formula.where}
    pattern = form._pattern
    steps = [
        loss_step(form.setting),
        block_step(form.setting, pattern.ratio, parts["r"]),
        error_step(form.setting, pattern.last, pattern.back, R),
        Step(
            "covers of the pieces",
            (),
            "every lemma is uniform: one cover serves every sample, and no points are counted",
            children=tuple(_volume_step(volume) for volume in form.volumes([*pattern.last, *pattern.back])),
        ),
        _equal_split(formula),
        Step(
            "the sum over the blocks",
            ("A0",),
            "the block with $i$ blocks after it has its gains multiplied by $r^i$; the sum of $i$ over $D$ blocks is "
            "$D(D-1)/2$",
            Relation(
                Words(r"\log(1+a r^i)"),
                "le",
                Words(r"\log(1+a)+i\log^+r"),
            ),
            tuple(parts[name] for name in ("N_b", "N_w", "P") if name in parts),
            trials=(_log_of_product, _count_written_out(form, quantity)),
            identities=(_sum_of_integers,),
        ),
    ]
    check = None
    if quantity != "covering_number":
        steps.append(_one_scale("1/m"))
        total = next(iter(form._count(1 / form._m, pattern)))
        check = gap.gap_uniform_single(SYMPY, 1 / form._m, total, sympy.log(1 / form._delta), form._m)
    if quantity == "excess":
        steps.append(_excess(form))
        check = None if check is None else check + gap.deviation(SYMPY, sympy.log(1 / form._delta), form._m)
    trials = (_count_written_out(form, quantity, formula),) if quantity == "covering_number" else ()
    return last_step(formula, steps, check, trials)


_BLOCKS = 3


def _count_written_out(form: UniformForm, quantity: str, formula: Formula | None = None) -> Trial:
    """The counts of the pieces of a network of three blocks, one by one, add up to at most the formula's."""
    inner, scale = form, 1 / form._m
    if quantity == "covering_number":
        inner, scale = form.of_readout, symbols.eps

    @cache
    def made() -> tuple[Formula, Formula]:
        network = on_spheres(inner.setting).but(depth=_BLOCKS)
        pieces = lowered(network, cap=True, plain=True)[0].pieces
        volumes = inner.volumes(costed(pieces, form._m, allowed_by(frozenset({"T4"}))))
        each = (v.dimension * sympy.log(1 + len(pieces) * v.stretch / scale) for v in volumes)
        total, parts = inner._count(scale, inner._pattern)
        return Formula("direct", sympy.Add(*each)), formula or Formula("count", total, tuple(parts))

    def trial(random: Random) -> tuple[arb, arb]:
        direct, count = made()
        point = random_point(Formula("both", direct.expr + count.expanded), random, {"depth": _BLOCKS})
        return on_intervals(direct)(point), on_intervals(count)(point)

    return trial


def _volume_step(volume: Volume) -> Step:
    """T4 and kin."""
    after = volume.dimension * sympy.log(1 + volume.stretch / EPS)
    name = volume.key.partition("[")[0]
    return Step(
        named(name),
        cover_uses(volume.lemma, volume.kind, uniform=True),
        r"$\varepsilon$ is the error of the loss that this piece may make",
        Relation(log_count_of(name), "le", after),
        trials=(_covers_a_line(volume.lemma),),
    )


def _covers_a_line(name: str) -> Trial:
    """In dimension 1 x 1 the class is an interval, which needs ceil(1/x) balls of radius x."""

    def trial(random: Random) -> tuple[arb, arb]:
        one = arb(1)
        target = Target("map", 1, 1, one, MatrixNorms(one, one, one, one, one, one, 1), Points(1))
        y = random.uniform(1, 1000)
        return INTERVAL.ceil(arb(y)).log(), LEMMAS[name].closed(INTERVAL, arb(y), target, one)

    return trial


def _log_of_product(random: Random) -> tuple[arb, arb]:
    a, r, i = arb(10 ** random.uniform(-6, 6)), arb(10 ** random.uniform(-2, 3)), random.randint(0, 30)
    return (a * r**i).log1p(), a.log1p() + i * INTERVAL.maximum(arb(0), r.log())


def _sum_of_integers() -> tuple[Expr, Expr]:
    i, depth = sympy.Symbol("i", integer=True), symbols.depth
    return sympy.summation(i, (i, 0, depth - 1)), depth * (depth - 1) / 2


def _equal_split(formula: Formula) -> Step:
    parts = tuple(part for part in formula.where if part.symbol.name == "J")
    return Step(
        "an equal split of the error",
        ("A2",),
        "$J$ pieces, each of which may make an error of $e/J$",
        Relation(
            Words(r"\textstyle\sum_j\kappa_j\varepsilon_j"),
            "eq",
            Words("J(e/J)=e"),
        ),
        parts,
    )


def _one_scale(scale: str) -> Step:
    right = Words(r"2e+\sqrt{\frac{\log N(e)+\log(1/\delta)}{2m}}")
    return Step(
        "one cover at one scale",
        ("G2",),
        f"the covers are uniform, so Hoeffding's inequality for every centre is enough; the scale is $e = {scale}$",
        Relation(Words(r"\mathrm{gap}"), "le", right),
    )


def _excess(form: UniformForm) -> Step:
    deviation = gap.deviation(SYMPY, sympy.log(1 / form._delta), form._m)
    return Step(
        "an empirical minimiser",
        ("X5",),
        "its training error is at most that of the best of the class, whose own deviation is Hoeffding's; probability "
        r"$1-2\delta$",
        Relation(Words(r"\mathrm{excess}"), "le", Words(r"\mathrm{gap}") if deviation is None else deviation),
    )


# -- T6


def spectrum_steps(form: SpectrumForm, quantity: str, formula: Formula) -> Step:
    """T6 for the blocks, T4 for the read-out."""
    parts = {part.symbol.name: part for part in formula.where}
    base = form._volumes
    pattern = base._pattern
    p, d = form.power, symbols.d
    spectral = form.total * (2 / EPS) ** p * 2 * d * sympy.log(1 + 8 * symbols.C / EPS)
    total = parts.get("G_p")
    identities = (
        () if total is None else (*(written_out(total, p, depth) for depth in range(2, 5)), at_ratio_one(total))
    )
    steps = [
        loss_step(form.setting),
        block_step(form.setting, pattern.ratio, parts["r"]),
        error_step(form.setting, pattern.last, pattern.back, R),
        Step(
            r"a $d\times d$ matrix whose singular values have $p$-th powers that sum to at most $S_p$",
            ("S3", "T6"),
            r"scores as maps of the query rows; $t = 1/2$; the rank kept is at most its bound, and $1+4(2y-1)\le 1+8y$",
            Relation(Words(r"\log N(\varepsilon)"), "le", spectral),
            trials=(_schatten,),
        ),
        *(_volume_step(volume) for volume in base.volumes(pattern.back)),
        _equal_split(formula),
        Step(
            "the sum over the blocks",
            ("A0",),
            "$p$-th powers of the gains are in geometric progression with ratio $r^p$; the logarithm is at most that of "
            "the first",
            None,
            tuple(part for name, part in parts.items() if name in ("V", "ell", "G_p", "N_w")),
            identities=identities,
        ),
    ]
    if quantity == "gap":
        steps.append(_one_scale("(V/m)^{1/(p+2)}"))
    return last_step(formula, steps)


def _schatten(random: Random) -> tuple[arb, arb]:
    """T6's closed count against the form that sums in closed form."""
    size, p = random.randint(2, 64), random.uniform(0.1, 2)
    total, one = random.uniform(1, size), arb(1)
    norms = MatrixNorms(one, one, one, one, one, size * one, size, (arb(p), arb(total)))
    target = Target("map", size, size, one, norms, Points(1))
    y = arb(10 ** random.uniform(0.01, 6))
    right = arb(total) * (2 * y) ** arb(p) * 2 * size * (1 + 8 * y).log()
    return T6.closed(INTERVAL, y, target, one), right


# -- E


def _general_steps(formula: Formula) -> Step:
    """E at A1's split."""
    A_s, A_in = symbols.A_s, symbols.A_in
    score = A_s / (EPS / (symbols.c_n * symbols.L_out * symbols.B_in)) ** 2
    feature = A_in / (EPS / (symbols.mu * symbols.L_out)) ** 2
    steps = [
        Step(
            "errors of the scores",
            ("L1", "L2", "E"),
            r"a score error of $e$ moves the weights by $c_0e$ in $\ell_1$, and each unit of weight carries a feature of norm "
            r"$B_{\mathrm{in}}$",
            Relation(Words(r"\log N_{\text{score}}(\varepsilon)"), "le", score),
        ),
        Step(
            "errors of the features",
            ("E",),
            r"a row of weights has $\ell_1$ mass at most $\mu$",
            Relation(Words(r"\log N_{\text{in}}(\varepsilon)"), "le", feature),
        ),
        split_step(),
        Step(
            "the infimum over the split",
            ("E", "A1"),
            "costs $A/e^2$ and two pieces",
            Relation(Words(formula.latex_name), "le", formula.expr),
            trials=(_general(formula),),
        ),
    ]
    return last_step(formula, steps)


def _general(formula: Formula) -> Trial:
    """The formula is at most E at any split, and reached: at the one a search finds both agree to a millionth."""
    function = on_intervals(formula)

    def trial(random: Random) -> tuple[arb, arb]:
        point = random_point(formula, random)
        value = {name: float(x) for name, x in point.items()}
        attention = GeneralAttention(
            score=lambda ns, eps: ns.number(value["A_s"]) / eps**2,
            feature=lambda ns, eps: ns.number(value["A_in"]) / eps**2,
            lipschitz_out=value["L_out"],
            bound_in=value["B_in"],
            c=value["c_n"],
            mu=value["mu"],
            uniform=False,
        )
        eps = value["epsilon"]
        found = log_count(INTERVAL, attention, arb(eps), choose_share(attention, eps))
        return abs(function(point) - found), found * arb("1e-6")

    return trial


# -- G8


def _finite_steps(formula: Formula) -> Step:
    """A finite class."""
    part = formula.where[0]
    steps = [
        Step(
            "how many functions",
            ("G8",),
            r"$\binom Ts$ supports, $\binom Ts\le(eT/s)^s$, and $2^{2^s}$ functions on each",
            Relation(part.symbol, "le", part.expr),
            (part,),
            trials=(_binomial(Formula("log|F|", part.expr)),),
        ),
    ]
    if formula.name != "covering_number":
        right = Words(r"\sqrt{(\log|\mathcal F|+\log(1/\delta))/(2m)}")
        steps.append(
            Step(
                "Hoeffding and a union bound",
                ("G8",),
                r"every function's deviation exceeds $t$ with probability at most $\exp(-2mt^2)$",
                Relation(Words(r"\mathrm{gap}"), "le", right),
            )
        )
    if formula.name == "covering_number":
        s, T = symbols.s, symbols.T
        supports, functions = s * (1 + sympy.log(T) - sympy.log(s)), 2**s * sympy.log(2)
        expanded = sympy.expand_log(formula.expanded, force=True)
        same = (lambda: (expanded, supports + functions),)
        return last_step(formula, steps, trials=(_binomial(formula),), identities=same)
    count = part.symbol + sympy.log(1 / symbols.delta)
    if formula.name == "gap":
        return last_step(formula, steps, gap.deviation(SYMPY, count, symbols.m))
    return last_step(formula, steps, trials=(_deviation_is_the_target(formula, count),))


def _deviation_is_the_target(formula: Formula, count: Expr) -> Trial:
    """At the sample size of the formula the deviation is the target itself."""
    size, logs = on_intervals(formula), on_intervals(Formula("logs", count, formula.where))

    def trial(random: Random) -> tuple[arb, arb]:
        point = random_point(formula, random)
        found = gap.deviation(INTERVAL, logs(point), size(point))
        return abs(found - point["target"]), point["target"] * arb("1e-12")

    return trial


def _binomial(formula: Formula) -> Trial:
    function = on_intervals(formula)

    def trial(random: Random) -> tuple[arb, arb]:
        point = random_point(formula, random)
        s = random.randint(1, 6)
        point |= {"s": arb(s), "T": arb(random.randint(s, 10**5))}
        return sparse_class_size(INTERVAL, s, point["T"]), function(point)

    return trial


STEPS: Mapping[str, Callable[[Formula], Step]] = {
    "edelman2022_attention": _general_steps,
    "sparse_boolean": _finite_steps,
}
