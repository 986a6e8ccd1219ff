"""The derivation of the closed form: A1 and A4, one-line chaining, the gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy
from flint import arb

from boundcalc.formulas.derivation.covers import cover_steps
from boundcalc.formulas.derivation.network import block_step, error_step, layers_step, loss_step
from boundcalc.formulas.derivation.step import Relation, Step, Words, last_step
from boundcalc.formulas.symbolic.closed import CAPACITY, SAMPLES, ClosedForm, R
from boundcalc.formulas.symbolic.formula import Definition, Formula
from boundcalc.formulas.symbolic.system import SYMPY
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
    return last_step(formula, steps)


def _network_steps(form: ClosedForm, copies: int, formula: Formula, parts: dict[str, Definition]) -> list[Step]:
    """Up to log N(e) <= C_F/e^2."""
    norms = form.setting.norms
    if form.exact:
        pieces = form.pieces(copies)
        inside = [piece for piece in pieces if piece.block is not None]
        outside = [piece for piece in pieces if piece.block is None]
        steps = [layers_step(form.setting, form.order), error_step(inside, outside, None)]
        steps.append(_covers([*cover_steps(inside, norms), *cover_steps(outside, norms)]))
        return [*steps, split_step()]
    pattern = form._pattern(copies)
    ratio = parts.get("r")
    steps = [loss_step(form.setting)]
    if ratio is not None:
        steps.append(block_step(form.setting, pattern.ratio, ratio, form.order))
    steps.append(error_step(pattern.last, pattern.back, R))
    covers = list(cover_steps([*pattern.front, *pattern.first], norms, ", first block"))
    middle = cover_steps(pattern.middle, norms, ", a block of which $T$ rows are read")
    last = cover_steps(pattern.last, norms, ", the last block")
    if [step.relation for step in middle] == [step.relation for step in last]:
        covers += cover_steps(pattern.last, norms)
    else:
        covers += [*middle, *last]
    steps.append(_covers([*covers, *cover_steps(pattern.back, norms)]))
    return [*steps, split_step(), _sum_step(parts)]


def _covers(children: Sequence[Step]) -> Step:
    return Step(
        "covers of the pieces", ("A3",), "for each matrix the lemma whose budget is given", None, (), tuple(children)
    )


# -- A1


def split_step() -> Step:
    """A1."""
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
    )


# -- A4


def _sum_step(parts: dict[str, Definition]) -> Step:
    """A4: weights of the blocks are in geometric progression, and the sum of one."""
    main = parts.get("C_F")

    where = tuple(part for name, part in parts.items() if name not in ("k", "r"))
    return Step(
        "the sum over the blocks",
        ("A4",),
        "one block multiplies the gains of all before it by $r$, so their terms in A1 by $r^{2/3}$; the sum is geometric",
        None if main is None else Relation(CAPACITY, "eq", main.expr),
        where,
    )


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
    )


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
        where=(Definition(u, 2 * sympy.Symbol("k", positive=True), "twice the scale of the chain", "u"),),
    )
