"""Steps about the network: the loss, the layers of a block, how errors add up, and the covers of its matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from random import Random
from typing import Any, NamedTuple

import sympy
from flint import arb

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.intervals import INTERVAL
from boundcalc.formulas.derivation.check import norm, random_vector
from boundcalc.formulas.derivation.step import Relation, Step, Trial, Words
from boundcalc.formulas.symbolic.code import interval_function
from boundcalc.formulas.symbolic.depth import PROBE, on_spheres
from boundcalc.formulas.symbolic.formula import Definition, Formula
from boundcalc.formulas.symbolic.pieces import Costed, lowered
from boundcalc.formulas.symbolic.printing import latex
from boundcalc.formulas.symbolic.system import SYMPY, Expr, Order, SympySystem
from boundcalc.setting import Layer, Norms, Setting
from boundcalc.setting.layer import rows_used
from boundcalc.statements.compose import loss_lipschitz
from boundcalc.statements.layers import facts
from boundcalc.statements.layers.activation import ACTIVATION_LIPSCHITZ
from boundcalc.statements.slots import Context, Facts, total
from boundcalc.statements.weights import Weights

EPS = sympy.Symbol("epsilon", positive=True)


def loss_step(setting: Setting) -> Step:
    """G0."""
    constant = loss_lipschitz(SYMPY, setting)
    trials: tuple[Trial, ...] = ()
    note, uses = "the loss is Lipschitz in the read-out, as given", tuple[str, ...]()
    if setting.sample.lipschitz is None:
        uses = ("G0",)
        note = r"the ramp loss falls from 1 to 0 while the margin grows from 0 to $\gamma$"
        trials = (_ramp(setting, constant),)
    return Step(
        "the loss",
        uses,
        note,
        Relation(Words(r"L_\ell"), "eq", constant),
        trials=trials,
    )


def _ramp(setting: Setting, constant: Expr) -> Trial:
    """The loss of two read-outs, often between the kinks, against the constant times their distance."""
    margin, classes = setting.sample.margin, setting.architecture.classes
    formula = Formula("L_l", constant)
    value = interval_function(formula)

    def ramp(scores: Sequence[arb], gamma: arb) -> arb:
        least = scores[0] if len(scores) == 1 else scores[0] - INTERVAL.maximum(*scores[1:])
        return INTERVAL.minimum(arb(1), INTERVAL.maximum(arb(0), 1 - least / gamma))

    def trial(random: Random) -> tuple[arb, arb]:
        gamma = random.uniform(0.1, 3) if formula.inputs else float(margin)
        u = [arb(random.uniform(0.3, 0.7) * gamma)] + [arb(-random.uniform(0, 9) * gamma) for _ in range(classes - 1)]
        if classes > 1:
            u[1] = arb(0)
        step = arb(random.choice((random.uniform(-0.1, 0.1), random.uniform(-5, 5))) * gamma)
        v = [u[0] + step, *u[1:]] if classes == 1 else [u[0] + step, u[1] - step, *u[2:]]
        apart = norm([x - y for x, y in zip(u, v, strict=True)])
        return abs(ramp(u, arb(gamma)) - ramp(v, arb(gamma))), value(*[arb(gamma)] * len(formula.inputs)) * apart

    return trial


# -- layers


class _Visit(NamedTuple):
    """A layer met on the way through the network, and the radius of its input."""

    layer: Layer
    facts: Facts
    radius: Expr


def _forward(setting: Setting, ns: SympySystem, eps: Iterator[Expr]) -> tuple[list[_Visit], Expr]:
    """Every layer, input to read-out, and the read-out's error: err <- Lip err + sum of sensitivity eps, one per slot."""
    architecture = setting.architecture
    at = Context(Weights(ns, setting.norms), ns.number(architecture.input_radius), 1, architecture.seq_len)
    visits: list[_Visit] = []

    def through(layers: Sequence[Layer], radius: Expr, error: Expr, rows: Any) -> tuple[Expr, Expr]:
        for layer, used in zip(layers, rows_used(layers, rows, at.seq_len), strict=True):
            if layer.branches:
                walked = [through(branch, radius, error, used) for branch in layer.branches]
                radius, error = total([reach for reach, _ in walked]), total([made for _, made in walked])
                continue
            found = facts(layer, replace(at, radius=radius, rows=used))
            visits.append(_Visit(layer, found, radius))
            error = found.lipschitz * error
            for slot in found.slots:
                error = error + slot.sensitivity * next(eps)
            radius = found.radius
        return radius, error

    return visits, through(architecture.stages, at.radius, sympy.S.Zero, 1)[1]


def _visits(setting: Setting, order: Order) -> list[_Visit]:
    return _forward(setting, SympySystem(cap=True, plain=True, order=order), repeat(sympy.S.Zero))[0]


def block_step(setting: Setting, ratio: Expr, definition: Definition, order: Order = ()) -> Step:
    """L: the layers of one block, and the factor r by which it multiplies errors of its input."""
    small = on_spheres(setting).but(depth=PROBE)
    children: dict[str, Step] = {}
    for visit in _visits(small, order):
        if visit.layer.where() in (None, 1):
            step = _layer_step(visit, setting.norms)
            if step is not None:
                children.setdefault(f"{step.title}{step.relation}", step)

    def amplifications() -> tuple[Expr, Expr]:
        deeper = lowered(small, cap=True, plain=True, order=order)[0].amplification
        before = lowered(on_spheres(setting).but(depth=PROBE - 1), cap=True, plain=True, order=order)[0].amplification
        return deeper / before, ratio

    uses = ("A0", "L8") if setting.architecture.residual else ("A0",)
    return Step(
        "one block",
        uses,
        "the Lipschitz factors of the layers of a block multiply (a residual adds 1 to its branch's)",
        Relation(definition.symbol, "eq", definition.expr) if ratio.free_symbols else None,
        (definition,),
        tuple(children.values()),
        identities=(amplifications,),
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


def _layer_step(visit: _Visit, norms: Norms) -> Step | None:
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
    found = (_TRIALS[name](layer) for name in uses if name in _TRIALS)
    trials = tuple(trial for trial in found if trial is not None)
    if any(derived(norms, weight.kind, "op") for weight in layer.weights(1) if weight.role == "matrix"):
        uses = (*uses, "A5")
        trials = (*trials, norms_in_order)
    return Step(
        title,
        uses,
        f"input rows have norm at most {spoken(visit.radius)}",
        Relation(Words(r"\mathrm{Lip}"), "le", visit.facts.lipschitz),
        trials=trials,
    )


def _softmax(random: Random) -> tuple[arb, arb]:
    """L1 at random scores."""
    u, v = ([arb(random.gauss(0, 2)) for _ in range(5)] for _ in range(2))

    def weights(x: list[arb]) -> list[arb]:
        powers = [value.exp() for value in x]
        total = sum(powers, arb(0))
        return [power / total for power in powers]

    left = sum((abs(a - b) for a, b in zip(weights(u), weights(v), strict=True)), arb(0))
    return left, INTERVAL.maximum(*(abs(a - b) for a, b in zip(u, v, strict=True)))


def _sharper_head(random: Random) -> tuple[arb, arb]:
    """L7: the sharp constant is at most the plain one."""
    kap = arb(10 ** random.uniform(-3, 3))
    return kap + (1 + kap**2).sqrt(), 1 + 2 * kap


def _projection(random: Random) -> tuple[arb, arb]:
    """L4 at random points."""
    x, y = random_vector(random), random_vector(random)

    def projected(z: list[arb]) -> list[arb]:
        size = INTERVAL.maximum(arb(1), norm(z))
        return [value / size for value in z]

    left = norm([a - b for a, b in zip(projected(x), projected(y), strict=True)])
    return left, norm([a - b for a, b in zip(x, y, strict=True)])


def _linear(random: Random) -> tuple[arb, arb]:
    """L6 with the Frobenius norm, which is at least the spectral one."""
    rows = [random_vector(random) for _ in range(3)]
    x = random_vector(random)
    image = [sum((x[i] * rows[i][j] for i in range(3)), arb(0)) for j in range(3)]
    return norm(image), norm(x) * norm([value for row in rows for value in row])


_FUNCTIONS: Mapping[str, Callable[[arb], arb]] = {
    "relu": lambda x: INTERVAL.maximum(arb(0), x),
    "tanh": lambda x: x.tanh(),
    "silu": lambda x: x / (1 + (-x).exp()),
}


def _entrywise(layer: Layer) -> Trial | None:
    """L3, where the layer is an activation that is written here."""
    name = getattr(layer, "name", "")
    function = _FUNCTIONS.get(name)
    if function is None:
        return None

    def trial(random: Random) -> tuple[arb, arb]:
        x, y = arb(random.gauss(0, 3)), arb(random.gauss(0, 3))
        return abs(function(x) - function(y)), arb(ACTIVATION_LIPSCHITZ[name]) * abs(x - y)

    return trial


_TRIALS: Mapping[str, Callable[[Layer], Trial | None]] = {
    "L1": lambda _: _softmax,
    "L3": _entrywise,
    "L4": lambda _: _projection,
    "L6": lambda _: _linear,
    "L7": lambda _: _sharper_head,
}
"""Trials of the statements that layers rest on."""


def derived(norms: Norms, kind: str, *fields: str) -> bool:
    """Whether none of some norms of a matrix is given by itself, so that it follows from others (A5)."""
    try:
        budget = norms.find(kind)
    except InvalidSetting:  # a score matrix given by its two factors
        return True
    part = budget.distance or budget
    return all(getattr(part, field) is None for field in fields)


def norms_in_order(random: Random) -> tuple[arb, arb]:
    """A5: |xW| <= |W|_F <= |W|_21 <= |W|_11 at a random matrix and a unit vector: the first against the last's next."""
    rows = [random_vector(random) for _ in range(3)]
    columns = [[row[j] for row in rows] for j in range(3)]
    entries = [value for row in rows for value in row]
    norms = [norm(entries), sum((norm(c) for c in columns), arb(0)), sum((abs(v) for v in entries), arb(0))]
    which = random.randrange(2)
    return norms[which], norms[which + 1]


# -- errors


def error_step(
    setting: Setting,
    last: Sequence[Costed],
    back: Sequence[Costed],
    ratio: sympy.Symbol | None,
    order: Order = (),
) -> Step:
    """A0: errors of the loss, one eps per piece."""
    small = on_spheres(setting) if ratio is not None else setting
    if ratio is not None:
        small = small.but(depth=2)

    def forward_is_backward() -> tuple[Expr, Expr]:
        low, ns = lowered(small, cap=True, plain=True, order=order)
        eps = [sympy.Symbol(f"eps_{i}", positive=True) for i in range(len(low.pieces))]
        backward = sympy.Add(*(piece.gain * each for piece, each in zip(low.pieces, eps, strict=True)))
        return loss_lipschitz(ns, small) * _forward(small, ns, iter(eps))[1], backward

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
        identities=(forward_is_backward,),
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
