"""Steps about the network: the loss, the layers of a block, how errors add up, and the covers of its matrices."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from boundcalc.base.errors import InvalidSetting
from boundcalc.formulas.derivation.step import Relation, Step, Words
from boundcalc.formulas.symbolic.depth import PROBE, on_spheres
from boundcalc.formulas.symbolic.formula import Definition
from boundcalc.formulas.symbolic.pieces import Costed
from boundcalc.formulas.symbolic.printing import latex
from boundcalc.formulas.symbolic.system import SYMPY, Expr, Order, SympySystem
from boundcalc.setting import Norms, Setting
from boundcalc.statements.network import Visit, loss_lipschitz, walk
from boundcalc.statements.slots import Context
from boundcalc.statements.weights import Weights

EPS = sympy.Symbol("epsilon", positive=True)


def loss_step(setting: Setting) -> Step:
    """G0."""
    constant = loss_lipschitz(SYMPY, setting)
    note, uses = "the loss is Lipschitz in the read-out, as given", tuple[str, ...]()
    if setting.sample.lipschitz is None:
        uses = ("G0",)
        note = r"the ramp loss falls from 1 to 0 while the margin grows from 0 to $\gamma$"
    return Step(
        "the loss",
        uses,
        note,
        Relation(Words(r"L_\ell"), "eq", constant),
    )


# -- layers


def _visits(setting: Setting, order: Order) -> list[Visit]:
    """Every layer, input to read-out."""
    architecture, ns = setting.architecture, SympySystem(cap=True, plain=True, order=order)
    at = Context(Weights(ns, setting.norms), ns.number(architecture.input_radius), 1, architecture.seq_len)
    return [step for step in walk(architecture.stages, at) if isinstance(step, Visit)]


def block_step(setting: Setting, ratio: Expr, definition: Definition, order: Order = ()) -> Step:
    """L: the layers of one block, and the factor r by which it multiplies errors of its input."""
    small = on_spheres(setting).but(depth=PROBE)
    children: dict[str, Step] = {}
    for visit in _visits(small, order):
        if visit.layer.where() in (None, 1):
            step = _layer_step(visit, setting.norms)
            if step is not None:
                children.setdefault(f"{step.title}{step.relation}", step)

    uses = ("A0", "L8") if setting.architecture.residual else ("A0",)
    return Step(
        "one block",
        uses,
        "the Lipschitz factors of the layers of a block multiply (a residual adds 1 to its branch's)",
        Relation(definition.symbol, "eq", definition.expr) if ratio.free_symbols else None,
        (definition,),
        tuple(children.values()),
    )


def layers_step(setting: Setting, order: Order = ()) -> Step:
    """L: the layers of a network that is not made of blocks."""
    found = [_layer_step(visit, setting.norms) for visit in _visits(setting, order)]
    return Step(
        "the layers",
        (),
        "radii and Lipschitz factors, from the input on",
        children=tuple(step for step in found if step is not None),
    )


def _layer_step(visit: Visit, norms: Norms) -> Step | None:
    """The Lipschitz factor of a layer, where it says anything."""
    layer = visit.layer
    if not visit.facts.uses:  # a pool: neither stretches nor enlarges
        return None
    title = layer.title or named(layer.label)
    if kind := getattr(layer, "kind", None):
        title = f"{title} ({named(kind)})"
    elif function := getattr(layer, "name", ""):
        title = f"{title} (`{function}`)"
    uses = tuple(name for name in visit.facts.uses if not name.startswith(("S", "T")))
    if any(derived(norms, weight.kind, "op") for weight in layer.weights(1) if weight.role == "matrix"):
        uses = (*uses, "A5")
    return Step(
        title,
        uses,
        f"input rows have norm at most {spoken(visit.at.radius)}",
        Relation(Words(r"\mathrm{Lip}"), "le", visit.facts.lipschitz),
    )


def derived(norms: Norms, kind: str, *fields: str) -> bool:
    """Whether none of some norms of a matrix is given by itself, so that it follows from others (A5)."""
    try:
        budget = norms.find(kind)
    except InvalidSetting:  # a score matrix given by its two factors
        return True
    part = budget.distance or budget
    return all(getattr(part, field) is None for field in fields)


# -- errors


def error_step(last: Sequence[Costed], back: Sequence[Costed], ratio: sympy.Symbol | None) -> Step:
    """A0: errors of the loss, one eps per piece."""
    gains = [(piece.piece.key, piece.gain) for piece in back] + [(piece.kind, piece.gain) for piece in last]
    parts = tuple(
        Definition(
            sympy.Symbol(f"kappa_{name}", positive=True),
            gain,
            rf"error of the loss per $\varepsilon$ of {named(name)}",
            rf"\kappa_{{{_index(name)}}}",
        )
        for name, gain in gains
    )
    note = "covers are taken layer by layer, the later ones at the finitely many approximate inputs"
    if ratio is not None:
        note += r"; in earlier blocks every $\kappa$ is multiplied by $r$ per block that follows"
    return Step(
        "errors add up",
        ("A0",),
        note,
        Relation(
            Words(r"\sup_f|\ell(f)-\ell(\hat f)|"),
            "le",
            Words(r"\sum_j\kappa_j\varepsilon_j"),
        ),
        parts,
    )


def _matrix(key: str) -> str:
    """LaTeX of a piece's key, where it is that of a matrix or a vector, such as W_QK."""
    letter, _, index = key.partition("_")
    if len(letter) != 1 or not index.isalnum():
        return ""
    return f"{letter}_{{{index}}}" if len(index) == 1 or index.isupper() else rf"{letter}_{{\text{{{index}}}}}"


def named(key: str) -> str:
    """A piece's key in prose: a matrix as mathematics, a word as it is, other names as code."""
    matrix = _matrix(key)
    return f"${matrix}$" if matrix else key if key.isalpha() else f"`{key}`"


def _index(key: str) -> str:
    """A piece's key as an index."""
    escaped = key.replace("_", r"\_").replace("#", r"\#")
    return _matrix(key) or rf"\text{{{escaped}}}"


def log_count_of(key: str) -> Words:
    """The log count of a piece."""
    return Words(rf"\log N_{{{_index(key)}}}(\varepsilon)")


_LONGEST = 36


def spoken(expr: Expr) -> str:
    """A size in prose, where it is short enough."""
    return f"${latex(expr)}$" if len(str(expr)) < _LONGEST else "a size that the budgets fix"
