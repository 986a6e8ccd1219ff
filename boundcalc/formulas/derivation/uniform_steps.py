"""The derivation of one uniform cover (X5)."""

from __future__ import annotations

import sympy

from boundcalc.formulas.derivation.network import EPS, block_step, error_step, log_count_of, loss_step, named
from boundcalc.formulas.derivation.step import Relation, Step, Words, last_step
from boundcalc.formulas.symbolic.closed import R
from boundcalc.formulas.symbolic.formula import Formula
from boundcalc.formulas.symbolic.system import SYMPY
from boundcalc.formulas.symbolic.uniform import UniformForm, Volume
from boundcalc.statements import gap
from boundcalc.statements.covers.base import cover_uses

# -- X5


def uniform_steps(form: UniformForm, quantity: str, formula: Formula) -> Step:
    """One uniform cover at one scale."""
    parts = {part.symbol.name: part for part in formula.where}
    pattern = form._pattern
    steps = [
        loss_step(form.setting),
        block_step(form.setting, pattern.ratio, parts["r"]),
        error_step(pattern.last, pattern.back, R),
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
        ),
    ]
    if quantity != "covering_number":
        steps.append(_one_scale("1/m"))
    if quantity == "excess":
        steps.append(_excess(form))
    return last_step(formula, steps)


def _volume_step(volume: Volume) -> Step:
    """T4 and kin."""
    after = volume.dimension * sympy.log(1 + volume.stretch / EPS)
    name = volume.key.partition("[")[0]
    return Step(
        named(name),
        cover_uses(volume.lemma, volume.kind, uniform=True),
        r"$\varepsilon$ is the error of the loss that this piece may make",
        Relation(log_count_of(name), "le", after),
    )


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
