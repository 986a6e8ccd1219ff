"""T10: rows of tables."""

from __future__ import annotations

from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting import Embedding
from boundcalc.statements.slots import Context, Facts, LayerRule, Member, Slot
from boundcalc.statements.targets import MatrixNorms, Points, Target


def _facts(layer: Embedding, at: Context) -> Facts:
    """T10."""
    ns, one = at.ns, at.ns.number(1)
    slots: list[Slot] = []
    radius = at.radius
    if layer.vocabulary:
        row, covered = at.weights.row("embedding")
        radius = row
        points = Points(at.seq_len, layer.vocabulary)
        slots.append(Slot("embedding", one, (Member(1, _table(ns, layer.vocabulary, layer.d, covered, points, at)),)))
    if layer.positions == "fixed":
        radius = radius + ns.number(layer.position_radius)
    elif layer.positions == "learned":
        row, covered = at.weights.row("positions")
        radius = radius + row
        points = Points(at.seq_len, at.seq_len)
        norms = MatrixNorms(covered, covered, covered, covered, covered, covered, layer.d)
        slots.append(Slot("positions", one, (Member(1, (Target("table", at.seq_len, layer.d, one, norms, points),)),)))
    if layer.segments:
        row, covered = at.weights.row("segments")
        radius = radius + row
        points = Points(at.seq_len, layer.segments)
        norms = MatrixNorms(covered, covered, covered, covered, covered, covered, layer.d)
        table = Target("table", layer.segments, layer.d, one, norms, points)
        slots.append(Slot("segments", one, (Member(1, (table,)),)))
    return Facts(radius, one, tuple(slots), ("T10",))


def _table(ns: NumberSystem, rows: int, d: int, covered: Number, points: Points, at: Context) -> tuple[Target, ...]:
    norms = MatrixNorms(covered, covered, covered, covered, covered, covered, d)
    table = Target("table", rows, d, ns.number(1), norms, points)
    budget = at.weights.budget("embedding")
    part = budget.distance or budget
    if part.two_one is None and part.fro is None:
        return (table,)
    matrix = at.weights.matrix("embedding", None, None, rows, d)
    return table, Target("map", rows, d, ns.number(1), matrix.covered, points)


RULE = LayerRule(Embedding, _facts, noise=lambda layer: True)
