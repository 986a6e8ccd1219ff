"""A as statements: how covers of layers become a cover of a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from boundcalc.base.errors import Refusal
from boundcalc.base.statement import Statement
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Budget, Setting
from boundcalc.statements.capacity import capacity
from boundcalc.statements.covers import ALWAYS, COUNTING, LEMMAS
from boundcalc.statements.network import Network
from boundcalc.statements.targets import MatrixNorms, matrix_norms, product


def _network_error(ns: NumberSystem, setting: Setting, eps: Mapping[str, float]) -> Mapping[str, Number]:
    """A0: radius of the loss, how much it stretches errors of the input, and its error for one eps per piece."""
    lowered = Network(setting, ns)
    error = ns.number(0)
    for piece in lowered.pieces:
        error = error + piece.gain * ns.number(eps[piece.key])
    return {"radius": lowered.radius, "amplification": lowered.amplification, "error": error}


def _least_split(ns: NumberSystem, coefficients: Sequence[Number], gains: Sequence[Number]) -> Number:
    """A1: min of sum A_j/eps_j^2 subject to sum k_j eps_j = 1."""
    roots = ns.number(0)
    for a, k in zip(coefficients, gains, strict=True):
        roots = roots + _cube_root(ns, a * k**2)
    return roots**3


def _cube_root(ns: NumberSystem, x: Number) -> Number:
    return ns.exp(ns.log(x) / 3)


def _split_count(
    ns: NumberSystem, counts: Sequence[Number], gains: Sequence[Number], parts: Sequence[Number]
) -> Number:
    """A2: log-counts add, whatever the split; `_split_fits` says whether the split is one."""
    del gains, parts
    total = ns.number(0)
    for count in counts:
        total = total + count
    return total


def _split_fits(gains: Sequence[float], parts: Sequence[float], eps: float) -> Refusal | None:
    """A2: whether sum k_j eps_j stays below eps, with room for rounding."""
    spent = sum(k * part for k, part in zip(gains, parts, strict=True))
    if spent <= eps * (1 - 1e-12):
        return None
    return Refusal("A2", f"errors that add up to {spent:.6g}", f"at most {eps:.6g}")


def _least_lemma(ns: NumberSystem, *counts: Number) -> Number:
    """A3: the least of several valid log-counts of one piece."""
    return ns.minimum(*counts)


def _network_capacity(ns: NumberSystem, setting: Setting, samples: int) -> Number:
    """A4: C_F with log N(e) <= C_F/e^2 for the losses, on so many samples; pieces by the closed covers, split by A1."""
    return capacity(ns, Network(setting, ns), ns.number(samples), [LEMMAS[name] for name in sorted(COUNTING | ALWAYS)])


def _follows(ns: NumberSystem, budget: Budget, d: int, k: int, rank: int | None = None) -> Mapping[str, Number]:
    norms = matrix_norms(ns, budget, d, k, rank)
    if norms is None:
        raise ValueError("nothing follows from an empty budget; see `applies`")
    names = ("op", "fro", "two_one", "two_one_t", "one_one", "rank")
    return {name: getattr(norms, name) for name in names}


def _product(ns: NumberSystem, a: Mapping[str, Number], b: Mapping[str, Number]) -> Mapping[str, Number]:
    """A6: norms of AB from op, fro, two_one, two_one_t, one_one and nuclear of A and of B."""
    found = product(ns, MatrixNorms(**a, rank=1), MatrixNorms(**b, rank=1))
    return {name: getattr(found, name) for name in ("op", "fro", "two_one", "two_one_t", "nuclear")}


def _looked_up(
    ns: NumberSystem, token: Number, position: Number, eps: Number, token_error: Number, position_error: Number
) -> Mapping[str, Number]:
    """A7: radius of the heads' outputs, and their error, from longest values, an error of scores and those of values."""
    radius = token + position
    half = ns.exp(eps)
    bent = 2 * (half - 1) / (half + 1)
    return {"radius": radius, "error": bent * radius + token_error + position_error}


def _sets_a_norm(budget: Budget) -> Refusal | None:
    names = ("op", "fro", "two_one", "two_one_t", "one_one", "schatten")
    if any(getattr(budget, name) is not None for name in names):
        return None
    return Refusal("A5", "a budget without a norm", "at least one of op, F, 21, 11, Sp")


def _is_preset(setting: Setting) -> Refusal | None:
    style = setting.architecture.style
    if setting.architecture.layers is None and style == "edelman":
        return None
    return Refusal(
        "the printed form of A4", f"style {style!r}", "style 'edelman'", "The value itself takes any setting."
    )


COMPOSITION = (
    Statement("A0", compute=_network_error),
    Statement("A1", compute=_least_split),
    Statement("A2", compute=_split_count, applies=_split_fits),
    Statement("A3", compute=_least_lemma),
    Statement("A4", compute=_network_capacity, applies=_is_preset),
    Statement("A5", compute=_follows, applies=_sets_a_norm),
    Statement("A6", compute=_product),
    Statement("A7", compute=_looked_up),
)
