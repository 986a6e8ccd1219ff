"""The proofs of formulas about networks: the loss, a block, how errors add up, covers, and the gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import sympy

from boundcalc.base.errors import InvalidSetting
from boundcalc.layers.facts import Context
from boundcalc.setting import Norms, Setting
from boundcalc.statements import gap
from boundcalc.statements.covers import CoverLemma
from boundcalc.statements.covers.base import cover_uses
from boundcalc.statements.network import Visit, loss_lipschitz, walk
from boundcalc.statements.targets import MatrixNorms, Target
from boundcalc.statements.weights import Weights
from boundcalc.theorems.algebra import SYMPY, Expr, SympySystem
from boundcalc.theorems.closed import SAMPLES, ClosedForm, chain_line
from boundcalc.theorems.derivation import Row, Step
from boundcalc.theorems.formula import Definition, Formula
from boundcalc.theorems.pieces import Costed
from boundcalc.theorems.printing import latex
from boundcalc.theorems.uniform import UniformForm

_EPS = sympy.Symbol("epsilon", positive=True)
_LONGEST = 36


def steps_of(form: Any, quantity: str, formula: Formula) -> tuple[Step, ...]:
    """The proof of one of a form's quantities."""
    repeated = form.setting.architecture.layers is None
    inner = form.of_readout if quantity == "covering_number" and repeated else form
    parts = {part.symbol.name: part for part in formula.where}

    def named(*names: str) -> tuple[Definition, ...]:
        return tuple(parts[name] for name in names if name in parts)

    if isinstance(form, UniformForm):
        return _uniform_steps(inner, quantity, named)
    copies = SAMPLES if quantity == "gap" else 1
    if form.setting.architecture.layers is not None:
        pieces = form.pieces(copies)
        covers = Step("covers of the matrices", ("A3",), children=_covers(pieces, form.setting.norms))
        return _layers(form.setting), _errors(pieces, False), covers, _split(named("Lambda_s"))
    pattern = inner.pattern(copies)
    later, last = _covers(pattern.middle, form.setting.norms), _covers(pattern.last, form.setting.norms)
    if [step.rows for step in later] == [step.rows for step in last]:
        covers = later
    else:
        covers = (
            *(_of(step, "earlier blocks, all $T$ rows") for step in later),
            *(_of(step, "last block, one row") for step in last),
        )
    steps = [
        *([_loss(form.setting)] if quantity != "covering_number" else []),
        replace(_layers(form.setting), title="one block", parts=named("r"), text=_BLOCK),
        _errors([*pattern.back, *pattern.last], True),
        Step(
            "covers of the matrices",
            ("A3",),
            "Each matrix is covered by a lemma whose norm is bounded; $N$ is the number of points."
            + (f" They are counted on ${SAMPLES}m$ sequences, for the last step." if copies > 1 else ""),
            children=(*covers, *_covers(pattern.back, form.setting.norms)),
        ),
        _split(named("C_F", "S", "S_1", "S_T", "G", "Lambda_s1", "Lambda_sT")),
    ]
    return (*steps, *_chain(form, quantity, named("k")))


def _of(step: Step, where: str) -> Step:
    return replace(step, title=f"{step.title} ({where})")


# -- the network

_BLOCK = (
    r"The Lipschitz factors of the layers multiply, so a block multiplies errors of its input by at most $r$. In the "
    r"bounds below "
    r"every row has length at most 1, whatever $C$ is: a smaller norm only makes the sums smaller."
)


def _loss(setting: Setting) -> Step:
    words = (
        r"The ramp $\ell=\min\lbrace1,\max\lbrace0,1-yf(X)/\gamma\rbrace\rbrace$ lies between the indicators of "
        r"$yf(X)\le0$ and of "
        r"$yf(X)\le\gamma$, so $R(f)-\hat R_\gamma(f)\le\mathbb E\ell-\frac1m\sum_i\ell_i$. Its Lipschitz factor in "
        r"$f(X)$ is"
    )
    return Step("the loss", ("G0",), words, (Row(r"L_\ell", "eq", loss_lipschitz(SYMPY, setting)),))


def _layers(setting: Setting) -> Step:
    """L: the Lipschitz factors of the layers (of one block, where blocks repeat)."""
    if setting.architecture.layers is None:
        setting = setting.but(depth=1)
    ns = SympySystem(relaxed=True)
    at = Context(
        Weights(ns, setting.norms), ns.number(setting.architecture.input_radius), 1, setting.architecture.seq_len
    )
    rows: dict[str, Row] = {}
    uses: dict[str, None] = {"A0": None}
    for visit in walk(setting.architecture.stages, at):
        if not isinstance(visit, Visit) or not visit.facts.uses:  # a pool neither stretches nor enlarges
            continue
        uses |= dict.fromkeys(name for name in visit.facts.uses if not name.startswith(("S", "T")))
        layer = visit.layer
        if layer.where() is not None or setting.architecture.layers is not None:
            title = getattr(layer, "kind", "") or getattr(layer, "name", "") or layer.title or layer.label
            if visit.facts.lipschitz != 1:
                rows[title] = Row(rf"\mathrm{{Lip}}({_symbol(title)})", "le", visit.facts.lipschitz)
    words = "radii and Lipschitz factors, from the input on; a projection and ReLU have factor 1."
    return Step("the layers", tuple(uses), words, tuple(rows.values()))


def _errors(pieces: Sequence[Costed], repeated: bool) -> Step:
    """A0: errors of the loss, one eps per piece."""
    words = (
        r"Cover layer by layer, the later ones at the finitely many approximate inputs. If matrix $j$ is covered at "
        r"$\varepsilon_j$, the "
        r"error of the result is at most $\sum_j\kappa_j\varepsilon_j$, with"
    )
    if repeated:
        words = (
            words.removesuffix(", with")
            + r". In the last block and the read-out the $\kappa_j$ are as follows; for each block before "
        )
        words += "the last they are multiplied by $r$ once more."
    return Step(
        "errors add up", ("A0",), words, tuple(Row(rf"\kappa_{{{_symbol(p.kind)}}}", "eq", p.gain) for p in pieces)
    )


def _symbol(kind: str) -> str:
    """A piece's name in LaTeX: W_QK as a matrix, a word as a word."""
    letter, _, index = kind.partition("_")
    if kind == "readout":
        return "w"
    if len(letter) == 1 and index.isalnum():
        return f"{letter}_{{{index}}}"
    return rf"\text{{{kind.replace('_', ' ').replace('#', ' ')}}}"


# -- covers


def _covers(pieces: Sequence[Costed], norms: Norms) -> tuple[Step, ...]:
    """T and S: log N_j(eps) <= A_j/eps^2, a step per piece."""
    return tuple(_cover(piece, norms) for piece in pieces)


def _cover(piece: Costed, norms: Norms) -> Step:
    uses: dict[str, None] = {}
    ways: list[str] = []
    for option in (option for options in piece.options for option in options):
        uses |= dict.fromkeys(_uses(norms, piece.kind.partition("#")[0], option.lemma, option.target))
        counted = "" if option.lemma.uniform else f" at $N={_short(option.points)}$ points"
        ways.append(
            f"{option.lemma.name} (as a {option.target.kind}){counted}, radius times norm ${_short(option.reach)}$"
        )
    count = sum(member.multiplicity for member in piece.piece.members)
    text = "By " + "; or by ".join(ways) + ("; the smaller counts" if len(ways) > 1 else "")
    text += "." if count == 1 else f". There are ${latex(sympy.sympify(count))}$ such matrices."
    row = Row(rf"\log N_{{{_symbol(piece.kind)}}}(\varepsilon)", "le", piece.coefficient / _EPS**2)
    return Step(f"${_symbol(piece.kind)}$", tuple(uses), text, (row,))


def _short(expr: Expr) -> str:
    return latex(expr) if len(str(expr)) < _LONGEST else r"\ldots"


def _uses(norms: Norms, kind: str, lemma: CoverLemma, target: Target) -> tuple[str, ...]:
    """What a cover is based on: S, T, T7 for a difference from a reference, A5 where a norm follows."""
    used = cover_uses(lemma.name, target.kind, uniform=lemma.uniform)
    if target.kind not in ("map", "score", "query", "key"):
        return used
    fields = ("op", "fro", "two_one") if target.kind == "map" and target.k == 1 else (limited_norm(lemma, target),)
    with suppress(InvalidSetting):
        budget = norms.find(kind)
        if all(getattr(budget.distance or budget, field) is None for field in fields):
            used = (*used, "A5")
        if budget.distance is not None:
            used = (*used, "T7")
    return used


def limited_norm(lemma: CoverLemma, target: Target) -> str:
    """The name of the norm a lemma limits: every norm gets a value of its own to be known by."""
    names = ("op", "fro", "two_one", "two_one_t", "one_one", "schatten")
    norms = MatrixNorms(*(float(i) for i in range(1, 7)), rank=1)
    return dict(enumerate(names, 1)).get(lemma.norm(replace(target, norms=norms)), "op")


# -- from covers to the gap


def _split(parts: tuple[Definition, ...]) -> Step:
    words = (
        r"Costs $A_j/\varepsilon_j^2$ under one constraint $\sum_j\kappa_j\varepsilon_j=e$ are smallest for "
        r"$\varepsilon_j$ in proportion "
        r"to $(A_j/\kappa_j)^{1/3}$, where they sum to $\big(\sum_j(A_j\kappa_j^2)^{1/3}\big)^3/e^2=C_F/e^2$."
    )
    if len(parts) > 1:
        words += r" A block earlier multiplies its terms of this sum by $r^{2/3}$, so the sum over blocks is geometric."
    return Step("the best split of the error", ("A1",), words, (), parts)


def _chain(form: ClosedForm, quantity: str, parts: tuple[Definition, ...]) -> list[Step]:
    if quantity == "covering_number":
        return []
    factor = sympy.S(2) if quantity == "rademacher" else gap.chain_factor(SYMPY, gap.CLOSED_GHOSTS, uniform=False)
    line = chain_line(factor, form.m)[0]
    words = (
        r"Scales $e_j=e^{-(t+1)j/n}/2$ for $j<n$, $t=\log(1/(2k))$, with the best whole $n$ turn the sum of links into "
        r"one line; for $k\ge1/2$ the right side is above 1, the range of the loss."
    )
    links = r"2e_J+\phi\sum_je_{j-1}\sqrt{2\log N_j/m}"
    steps = [Step("chaining in one line", ("G1", "G2"), words, (Row(links, "le", line),), parts)]
    if quantity == "gap":
        words = (
            rf"With {gap.CLOSED_GHOSTS} ghost samples per example $\phi={SAMPLES}/{gap.CLOSED_GHOSTS}$, the covers are "
            rf"those of ${SAMPLES}m$ sequences, and McDiarmid's inequality bounds the deviation by "
            rf"$\sqrt{{\log(1/\delta)/(2m)}}$."
        )
        steps.append(Step("from covers to the gap", ("G2",), words))
    return steps


def _uniform_steps(form: UniformForm, quantity: str, named: Callable[..., tuple[Definition, ...]]) -> tuple[Step, ...]:
    """One uniform cover at one scale."""
    pattern = form.pattern
    volumes = form.volumes([*pattern.last, *pattern.back])
    counts = tuple(
        Row(
            rf"\log N_{{{_symbol(v.key.partition('[')[0])}}}(\varepsilon)",
            "le",
            v.dimension * sympy.log(1 + v.stretch / _EPS),
        )
        for v in volumes
    )
    uses = dict.fromkeys(name for v in volumes for name in cover_uses(form.lemma, v.kind, uniform=True))
    scale = {"covering_number": r"\varepsilon"}.get(quantity, "1/m")
    steps = [
        *([_loss(form.setting)] if quantity != "covering_number" else []),
        replace(_layers(form.setting), title="one block", parts=named("r"), text=_BLOCK),
        _errors([*pattern.back, *pattern.last], True),
        Step(
            "covers of the matrices",
            tuple(uses),
            r"One cover serves every sample, so no points are counted. With $\varepsilon$ the error of the loss that a "
            r"matrix may make,",
            counts,
        ),
        Step(
            "an equal split of the error",
            ("A2",),
            rf"Each of the $J$ matrices may make an error of $1/J$ of the scale ${scale}$. The block with $i$ blocks "
            rf"after it has its gains "
            r"multiplied by $r^i$, and $\log(1+ar^i)\le\log(1+a)+i\max\lbrace0,\log r\rbrace$; the sum of $i$ over the "
            r"blocks is $D(D-1)/2$.",
            (),
            named("N", "N_w", "N_b", "J", "P"),
        ),
    ]
    if quantity != "covering_number":
        single = Row("R(f)-\\hat R_\\gamma(f)", "le", r"2e+\sqrt{\frac{\log N(e)+\log(1/\delta)}{2m}}")
        words = "The covers are uniform, so Hoeffding's inequality for every centre is enough; the scale is $e=1/m$."
        steps.append(Step("one cover at one scale", ("G1", "G2"), words, (single,)))
    if quantity == "excess":
        words = (
            r"The training loss of $\hat f$ is at most that of the best of the class, whose own deviation is at most "
        )
        words += r"$\sqrt{\log(1/\delta)/(2m)}$ by Hoeffding's inequality."
        steps.append(Step("an empirical minimiser", ("X5",), words))
    return tuple(steps)
