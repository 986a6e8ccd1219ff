"""L1, L2, L7, L8, L11-L14 and S1-S5: one attention layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.system import Number
from boundcalc.setting import Attention, Normaliser
from boundcalc.statements.slots import Context, Facts, Member, Slot, total, vector_target
from boundcalc.statements.targets import Points, Target
from boundcalc.statements.weights import Matrix


def normaliser_constants(
    normaliser: Normaliser, temperature: Number, score_radius: Number, at: Context
) -> tuple[Number, Number]:
    """L1 and L2: the l_inf -> l_1 constant c and the largest l_1 mass mu of a row of weights."""
    ns = at.ns
    one = ns.number(1)
    if normaliser.name in ("softmax", "softmax1"):
        return (ns.number(2) if "L1" in at.published else one) / temperature, one
    if normaliser.name == "sigmoid":
        return one / (4 * temperature), one
    if normaliser.name == "linear":
        return one / temperature, score_radius / temperature
    if normaliser.c is None or normaliser.mu is None:
        raise TypeError("a custom normaliser without (c, mu) should not have passed validation")
    return ns.number(normaliser.c) / temperature, ns.number(normaliser.mu)


@dataclass(frozen=True, slots=True)
class _Head:
    """One kind of head: how many, its lipschitz factor, value radius and covers."""

    count: int
    lipschitz: Number
    value_radius: Number
    inside: Number
    """What a shift of the weights moves: the values without an offset that a conserved mass carries along."""
    score_error: Number
    """Output error per unit of uniform score error."""
    mass: Number
    scores: tuple[tuple[str, Number, Target | tuple[Target, ...]], ...]
    """(kind, score error per eps, targets)."""
    value: Target
    offset: Number | None


def attention(layer: Attention, at: Context) -> Facts:
    """L7, L8 and the score covers S1-S5."""
    build = {"joint": _joint_head, "split": _split_head, "fixed": _fixed_head}[layer.qk]
    heads = [build(layer, at, group, count) for group, count in head_groups(layer, at)]
    ns = at.ns

    def gather(values: Sequence[Number]) -> Number:
        """Errors of heads add up when outputs are summed; side by side they add as squares."""
        if layer.combine == "concat":
            return ns.sqrt(total([head.count * value**2 for head, value in zip(heads, values, strict=True)]))
        return total([head.count * value for head, value in zip(heads, values, strict=True)])

    slots: list[Slot] = []
    wrong = gather([2 * head.mass * head.inside for head in heads])
    for index, (kind, _, _) in enumerate(heads[0].scores):
        parts = [head.scores[index] for head in heads]
        sensitivity = gather([head.score_error * part[1] for head, part in zip(heads, parts, strict=True)])
        shared = kind in ("W_K", "b_K")
        members = tuple(
            Member(_shared(head.count, layer, shared), _as_tuple(part[2]))
            for head, part in zip(heads, parts, strict=True)
        )
        if kind.endswith(".gain"):
            members = (Member(1, _as_tuple(parts[0][2])),)  # one for all heads
        slots.append(Slot(kind, sensitivity, members, wrong, saturates=kind == "q" and _bends(layer, at)))
    if layer.buckets is not None:
        covered = at.weights.gain("score_offsets", layer.block)[1]
        table = vector_target(ns, "gain", layer.buckets * layer.heads, covered)
        steep = gather([head.score_error for head in heads])
        slots.append(Slot("score_offsets", steep, (Member(1, (table,)),), wrong))
    ones = gather([ns.number(1) for _ in heads])
    values = tuple(Member(_shared(head.count, layer, shared=True), (head.value,)) for head in heads)
    slots.append(Slot("W_V", ones, values))
    if layer.v_bias:
        masses = gather([head.mass for head in heads])
        offsets = tuple(
            Member(_shared(head.count, layer, shared=True), (vector_target(ns, "vector", layer.out, head.offset),))
            for head in heads
        )
        slots.append(Slot("b_V", masses, offsets))
    radius = gather([head.mass * head.value_radius for head in heads])
    uses = {
        "L1": layer.normaliser.name in ("softmax", "softmax1"),
        "L2": True,
        "L7": True,
        "L8": layer.heads != 1,
        "L11": layer.offsets != "none",
        "L12": layer.cap is not None,
        "L13": layer.qk_norm != "none",
        "L14": layer.offsets == "learned",
        "T9": layer.qk_norm != "none" or layer.offsets == "learned",
        "S4": layer.qk == "split",  # how a joint score matrix is covered (S1-S3) is the search's to say
        "S5": layer.qk == "fixed",
    }
    used = tuple(name for name, holds in uses.items() if holds)
    return Facts(radius, gather([head.lipschitz for head in heads]), tuple(slots), used)


def _bends(layer: Attention, at: Context) -> bool:
    """Whether the weights are softmax's, with its exact modulus 2 tanh(e/2) (S5)."""
    return layer.normaliser.name in ("softmax", "softmax1") and "L1" not in at.published


def _as_tuple(targets: Target | tuple[Target, ...]) -> tuple[Target, ...]:
    return targets if isinstance(targets, tuple) else (targets,)


def _shared(count: int, layer: Attention, shared: bool) -> int:
    """How many distinct maps serve so many query heads (grouped queries share keys and values)."""
    return -(-count * layer.groups // layer.heads) if shared else count


def head_groups(layer: Attention, at: Context) -> list[tuple[int | None, int]]:
    """(a representative head, how many heads have just its budgets), in the order of the first of each.

    Certificates list covers in this order.
    """
    norms = at.weights.norms
    weights = [each for weight in layer.weights(at.seq_len) for each in weight.all]

    def places(head: int) -> list[str | None]:
        return [norms.place(each.kind, layer.block, head) for each in weights]

    own = (
        [place for head in range(layer.heads) for place in places(head) if place and "," in place]
        if norms.headed
        else []
    )
    if not own:
        return [(None, layer.heads)]
    if layer.groups != layer.heads or layer.qk_norm == "width":
        what = "grouped queries" if layer.groups != layer.heads else "queries and keys of all heads normalised together"
        raise Unsupported(Refusal(what, f"a budget for {own[0]} alone", "the same budgets for every head"))

    def signature(head: int) -> str:
        return repr([place and norms.budgets[place] for place in places(head)])

    alike: dict[str, list[int]] = {}
    for head in range(layer.heads):
        alike.setdefault(signature(head), []).append(head)
    return [(members[0], len(members)) for members in alike.values()]


def _value(layer: Attention, at: Context, head: int | None, mass: Number) -> tuple[Matrix, Target]:
    """The value map, covered on the pooled rows (radius mu b; the query heads of a group share it)."""
    matrix = at.weights.matrix("W_V", layer.block, head, layer.d, layer.out)
    points = Points(at.rows * (layer.heads // layer.groups))
    return matrix, Target("map", layer.d, layer.out, mass * at.radius, matrix.covered, points)


def _temperature(layer: Attention, at: Context) -> Number:
    given = layer.normaliser.temperature
    if given is None and layer.qk == "split":
        assert layer.d_head is not None  # noqa: S101 - validated by Attention
        return at.ns.sqrt(at.ns.number(layer.d_head))
    return at.ns.number(1.0 if given is None else given)


def _joint_head(layer: Attention, at: Context, head: int | None, count: int) -> _Head:
    ns, b = at.ns, at.radius
    tau = _temperature(layer, at)
    conserved, softmax1 = layer.normaliser.name == "softmax", layer.normaliser.name == "softmax1"
    augmented = ns.sqrt(b**2 + 1) if layer.qk_bias else b
    key_radius = augmented if layer.key_bias else b  # a key bias drops out where weights sum to 1 and nothing caps
    rows, columns = layer.scores.shape
    score = at.weights.scores(layer.scores, head, layer.d_head)
    reach = augmented * key_radius
    c, mass = normaliser_constants(layer.normaliser, tau, reach * score.whole.op, at)
    value, value_target = _value(layer, at, head, mass)
    c_v, c_w = value.whole.op, score.whole.op
    offset, offset_covered = at.weights.vector("b_V", layer.block, head) if layer.v_bias else (ns.number(0), None)
    inside = b * c_v if conserved else b * c_v + offset  # what a shift of the weights moves
    if "L7" in at.published:
        spread = 2 * c if layer.normaliser.name == "custom" else 4 / tau
        lipschitz = c_v * mass + spread * inside * augmented * c_w
    elif layer.cap is None and (conserved or (softmax1 and not layer.qk_bias and not layer.v_bias)):
        direct = b**2 * c_w / tau
        lipschitz = c_v * (direct + ns.sqrt(1 + (b * augmented * c_w / tau) ** 2))
    else:
        lipschitz = c_v * mass + c * inside * (key_radius + augmented) * c_w
    n_q, keys = at.rows, at.seq_len
    targets = (
        Target("score", rows, columns, reach, score.covered, Points(n_q * keys)),
        Target("query", rows, columns, reach, score.covered, Points(n_q)),
        Target("key", columns, rows, reach, score.covered, Points(keys)),
    )
    return _Head(
        count,
        lipschitz,
        b * c_v + offset,
        inside,
        c * inside,
        mass,
        (("W_QK", ns.number(1), targets),),
        value_target,
        offset_covered,
    )


class _Side(NamedTuple):
    """Queries or keys of a head.

    Attributes:
        reach: their largest l2 norm.
        slope: their error per error of a row.
        unit: their error per error of the linear map.
        covers: (kind, own error per eps, target) of what is trained.
    """

    reach: Number
    slope: Number
    unit: Number
    covers: tuple[tuple[str, Number, Target], ...]


def _side(layer: Attention, at: Context, name: str, head: int | None, points: int) -> _Side:
    """S4, and L13 where they are normalised."""
    ns, b, width = at.ns, at.radius, layer.d_head
    assert width is not None  # noqa: S101 - validated by Attention
    matrix = at.weights.matrix(f"W_{name}", layer.block, head, layer.d, width)
    reach, slope, unit = b * matrix.whole.op, matrix.whole.op, ns.number(1)
    offset = None
    if layer.qk_bias:
        size, offset = at.weights.vector(f"b_{name}", layer.block, head)
        reach = reach + size
    gains: list[tuple[str, Number, Target]] = []
    if layer.qk_eps is not None:
        eps = ns.number(layer.qk_eps)
        kind, together = f"norm_{name}.gain", layer.normalised(layer.heads if name == "Q" else layer.groups)
        largest, covered = at.weights.gain(kind, layer.block)
        unit = largest / ns.sqrt(eps)
        reach = largest * reach * ns.sqrt(ns.number(together) / (reach**2 + width * eps))
        slope = slope * unit
        gains = [(kind, ns.number(1), vector_target(ns, "gain", together, covered, ns.sqrt(ns.number(together))))]
    covers = [(f"W_{name}", unit, Target("map", layer.d, width, b, matrix.covered, Points(points)))]
    if offset is not None:
        covers.append((f"b_{name}", unit, vector_target(ns, "vector", width, offset)))
    return _Side(reach, slope, unit, (*covers, *gains))


def _split_head(layer: Attention, at: Context, head: int | None, count: int) -> _Head:
    ns, b = at.ns, at.radius
    tau = _temperature(layer, at)
    q = _side(layer, at, "Q", head, at.rows)
    k = _side(layer, at, "K", head, at.seq_len)
    offset, offset_covered = at.weights.vector("b_V", layer.block, head) if layer.v_bias else (ns.number(0), None)
    c, mass = normaliser_constants(layer.normaliser, tau, q.reach * k.reach, at)
    value, value_target = _value(layer, at, head, mass)
    inside = b * value.whole.op if layer.normaliser.name == "softmax" else b * value.whole.op + offset
    lipschitz = value.whole.op * mass + c * inside * (q.slope * k.reach + q.reach * k.slope)
    scores: list[tuple[str, Number, Target]] = []
    for mine, theirs in zip(q.covers, k.covers, strict=True):
        scores += [(mine[0], k.reach * mine[1], mine[2]), (theirs[0], q.reach * theirs[1], theirs[2])]
    value_radius = b * value.whole.op + offset
    return _Head(count, lipschitz, value_radius, inside, c * inside, mass, tuple(scores), value_target, offset_covered)


def _fixed_head(layer: Attention, at: Context, head: int | None, count: int) -> _Head:
    """S5: scores <q, x_t>/tau are one linear map with d weights; all rows of the output are the same."""
    ns, b = at.ns, at.radius
    tau = _temperature(layer, at)
    query = at.weights.matrix("q", layer.block, head, layer.d, 1)
    length = query.whole.op
    c, mass = normaliser_constants(layer.normaliser, tau, b * length, at)
    value, value_target = _value(layer, replace(at, rows=1), head, mass)
    c_v = value.whole.op
    offset, offset_covered = at.weights.vector("b_V", layer.block, head) if layer.v_bias else (ns.number(0), None)
    name = layer.normaliser.name
    inside = b * c_v if name == "softmax" else b * c_v + offset
    sharp = layer.cap is None and (name == "softmax" or (name == "softmax1" and not layer.v_bias))
    if sharp and "L7" not in at.published:
        lipschitz = c_v * ns.sqrt(1 + (b * length / tau) ** 2)
    else:
        lipschitz = c_v * mass + c * inside * length
    target = Target("map", layer.d, 1, b, query.covered, Points(at.seq_len))
    scores: tuple[tuple[str, Number, Target | tuple[Target, ...]], ...] = (("q", ns.number(1), target),)
    return _Head(count, lipschitz, b * c_v + offset, inside, c * inside, mass, scores, value_target, offset_covered)
