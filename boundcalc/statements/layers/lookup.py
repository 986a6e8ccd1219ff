"""A7: the rule of heads that look their scores and values up."""

from __future__ import annotations

from boundcalc.setting import Lookup
from boundcalc.statements.slots import Context, Facts, LayerRule, Member, Slot, vector_target
from boundcalc.statements.targets import Points, Target


def _facts(layer: Lookup, at: Context) -> Facts:
    """A7: scores as numbers (T9, or noise on all of them), values as one vector (T8, T12), or noise on what is pooled.

    `heads` of values is the root of the sum over heads of the square of the longest part, so that |y| <= its sum over both
    tables; scores that err by e move y by 2 tanh(e/2) times that (S5, each head by its own part).
    """
    ns, one = at.ns, at.ns.number(1)
    tables = {weight.kind: weight for weight in layer.weights(at.seq_len)}
    values: list[Slot] = []
    radius = ns.number(0)
    for kind in ("token_values", "position_values"):
        longest, norms = at.weights.table(tables[kind])
        radius = radius + longest
        whole = vector_target(ns, "vector", tables[kind].parameters, norms.fro)
        pooled = Target("pooled", *tables[kind].shape, one, norms, Points(1))  # type: ignore[misc]
        values.append(Slot(kind, one, (Member(1, (whole, pooled)),)))
    scores: list[Slot] = []
    for kind in ("token_scores", "position_scores"):
        largest, norms = at.weights.table(tables[kind])
        each = vector_target(ns, "gain", tables[kind].parameters, largest)
        numbers = Target("numbers", *tables[kind].shape, one, norms, Points(0, 1))  # type: ignore[misc]
        scores.append(Slot(kind, radius, (Member(1, (each, numbers)),), 2 * radius, saturates=True))
    return Facts(radius, one, (*scores, *values), ("A7", "S5"))


RULE = LayerRule(Lookup, _facts, noise=lambda layer: True)
