"""L1, L2, L7, L8, L11-L14 and S1-S5: what proofs know of attention heads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.system import Number
from boundcalc.layers.facts import Context, Facts, Member, Points, Slot, Target, vector_target

if TYPE_CHECKING:
    from boundcalc.layers.attention import Attention, Normaliser

_Cover = tuple[str, Number, tuple[Target, ...]]
"""What is trained, the error per eps of what is made of it, and the ways to cover it."""
_OF_VALUES = ("W_V", "b_V")
_GROUPED = ("W_K", "b_K", *_OF_VALUES)
"""Maps that grouped queries share."""


class _Scores(NamedTuple):
    """How the scores of one kind of head are made.

    Attributes:
        largest: the largest score before the temperature.
        slope: their error per error of a row.
        covers: of what is trained.
        sharp: the factor of |W_V| in a sharper Lipschitz factor of softmax heads (L7), where it holds.
        published: the Lipschitz factor's slope as the literature prints it (PUB), where it differs.
    """

    largest: Number
    slope: Number
    covers: tuple[_Cover, ...]
    sharp: Number | None = None
    published: Number | None = None


class _Head(NamedTuple):
    """One kind of head: how many, its Lipschitz factor, its longest output, its largest error, score and covers."""

    number: int
    lipschitz: Number
    radius: Number
    wrong: Number
    score: Number
    covers: tuple[_Cover, ...]


def facts(layer: Attention, at: Context) -> Facts:
    """L7, L8 and the score covers S1-S5."""
    heads, ns, softmax = _heads(layer, at), at.ns, layer.normaliser.name in ("softmax", "softmax1")

    def gather(values: Iterable[Number]) -> Number:
        """Errors of heads add up when outputs are summed; side by side they add as squares."""
        pairs = zip(heads, values, strict=True)
        if layer.combine == "concat":
            return ns.sqrt(sum(head.number * value**2 for head, value in pairs))
        return sum(head.number * value for head, value in pairs)

    slots: list[Slot] = []
    wrong = gather(head.wrong for head in heads)
    for index, (kind, _, targets) in enumerate(heads[0].covers):
        covers = [head.covers[index] for head in heads]
        grouped = layer.groups if kind in _GROUPED else layer.heads
        counts = (-(-head.number * grouped // layer.heads) for head in heads)  # distinct maps
        members = tuple(Member(count, cover[2]) for count, cover in zip(counts, covers, strict=True))
        if kind.endswith((".gain", "_offsets")):
            members = (Member(1, targets),)  # one for all heads
        bends = kind == "q" and softmax and not at.published  # modulus 2 tanh(e/2) (S5)
        cap = None if kind in _OF_VALUES else wrong
        slots.append(Slot(kind, gather(cover[1] for cover in covers), members, cap, bends))
    uses = {
        "L1": softmax,
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
    radius, lipschitz = gather(head.radius for head in heads), gather(head.lipschitz for head in heads)
    return Facts(radius, lipschitz, tuple(slots), tuple(name for name, holds in uses.items() if holds))


def _tau(layer: Attention, at: Context) -> Number:
    temperature = layer.normaliser.temperature
    if temperature is None and layer.qk == "split":
        return at.ns.sqrt(at.ns.number(layer.d_head or 1))
    return at.ns.number(1.0 if temperature is None else temperature)


def _groups(layer: Attention, at: Context) -> list[tuple[int | None, int]]:
    """(a representative head, how many heads have just its budgets), in the order of the first of each.

    Certificates list covers in this order.
    """
    norms = at.weights.norms
    kinds = [part.kind for weight in layer.weights(at.seq_len) for part in weight.all] if norms.headed else []
    places = [[norms.place(kind, layer.block, head) for kind in kinds] for head in range(layer.heads if kinds else 0)]
    own = [place for keys in places for place in keys if place and "," in place]
    if not own:
        return [(None, layer.heads)]
    if layer.groups != layer.heads or layer.qk_norm == "width":
        what = "heads that share keys, or whose queries are normalised together"
        raise Unsupported(Refusal(what, f"a budget for {own[0]} alone", "the same budgets for every head"))
    alike: dict[str, list[int]] = {}
    for head, keys in enumerate(places):
        alike.setdefault(repr([place and norms.budgets[place] for place in keys]), []).append(head)
    return [(members[0], len(members)) for members in alike.values()]


def _heads(layer: Attention, at: Context) -> list[_Head]:
    return [_head(layer, at, head, count) for head, count in _groups(layer, at)]


def _head(layer: Attention, at: Context, head: int | None, count: int) -> _Head:
    ns, b, tau, name = at.ns, at.radius, _tau(layer, at), layer.normaliser.name
    scores = {"joint": _joint, "split": _split, "fixed": _own_query}[layer.qk](layer, at, head)
    c, mass = _normaliser_constants(layer.normaliser, tau, scores.largest, at)
    matrix = at.weights.matrix("W_V", layer.block, head, layer.d, layer.out)
    points = Points((1 if layer.qk == "fixed" else at.rows) * (layer.heads // layer.groups))
    value = Target("map", layer.d, layer.out, mass * b, matrix.covered, points)  # on the pooled rows
    c_v = matrix.whole.op
    offset, covered = at.offset("b_V" if layer.v_bias else None, layer.block, head)
    inside = b * c_v if name == "softmax" else b * c_v + offset
    if at.published and scores.published is not None:
        printed = 2 * c if name == "custom" else 4 / tau
        lipschitz = c_v * mass + printed * inside * scores.published
    elif scores.sharp is not None and not at.published and layer.cap is None and _is_softmax(layer):
        lipschitz = c_v * scores.sharp
    else:
        lipschitz = c_v * mass + c * inside * scores.slope
    steep = c * inside  # the output's error per error of all scores
    covers = [(kind, steep * error, targets) for kind, error, targets in scores.covers]
    if layer.buckets is not None:
        near = at.weights.gain("score_offsets", layer.block)[1]
        covers.append(("score_offsets", steep, (vector_target(ns, "gain", layer.buckets * layer.heads, near),)))
    covers.append(("W_V", ns.number(1), (value,)))
    if layer.v_bias:
        covers.append(("b_V", mass, (vector_target(ns, "vector", layer.out, covered),)))
    return _Head(count, lipschitz, mass * (b * c_v + offset), 2 * mass * inside, scores.largest, tuple(covers))


def _normaliser_constants(
    normaliser: Normaliser, temperature: Number, score_radius: Number, at: Context
) -> tuple[Number, Number]:
    """L1 and L2: the l_inf -> l_1 constant c and the largest l_1 mass mu of a row of weights."""
    ns = at.ns
    one = ns.number(1)
    if normaliser.name in ("softmax", "softmax1"):
        return (ns.number(2) if at.published else one) / temperature, one
    if normaliser.name == "sigmoid":
        return one / (4 * temperature), one
    if normaliser.name == "linear":
        return one / temperature, score_radius / temperature
    return ns.number(normaliser.c or 0) / temperature, ns.number(normaliser.mu or 0)


def _is_softmax(layer: Attention) -> bool:
    """Whether weights are those of softmax, also with a key of score and value 0 that is always there."""
    name = layer.normaliser.name
    return name == "softmax" or (name == "softmax1" and not layer.qk_bias and not layer.v_bias)


def _joint(layer: Attention, at: Context, head: int | None) -> _Scores:
    ns, b = at.ns, at.radius
    augmented = ns.sqrt(b**2 + 1) if layer.qk_bias else b
    key_radius = augmented if layer.key_bias else b  # a key bias drops out where weights sum to 1 and nothing caps
    rows, columns = layer.scores.shape
    score = at.weights.scores(layer.scores, head, layer.d_head)
    reach, c_w, tau = augmented * key_radius, score.whole.op, _tau(layer, at)
    targets = (
        Target("score", rows, columns, reach, score.covered, Points(at.rows * at.seq_len)),
        Target("query", rows, columns, reach, score.covered, Points(at.rows)),
        Target("key", columns, rows, reach, score.covered, Points(at.seq_len)),
    )
    sharp = b**2 * c_w / tau + ns.sqrt(1 + (b * augmented * c_w / tau) ** 2)
    slope = (key_radius + augmented) * c_w
    return _Scores(reach * c_w, slope, (("W_QK", ns.number(1), targets),), sharp, augmented * c_w)


def _split(layer: Attention, at: Context, head: int | None) -> _Scores:
    """S4, and L13 where queries and keys are normalised."""
    q, k = _side(layer, at, "Q", head, at.rows), _side(layer, at, "K", head, at.seq_len)
    covers: list[_Cover] = []
    for mine, theirs in zip(q.covers, k.covers, strict=True):
        covers += [(mine[0], k.largest * mine[1], mine[2]), (theirs[0], q.largest * theirs[1], theirs[2])]
    return _Scores(q.largest * k.largest, q.slope * k.largest + q.largest * k.slope, tuple(covers))


def _side(layer: Attention, at: Context, name: str, head: int | None, points: int) -> _Scores:
    """Queries or keys, as if they were scores: their length, and their error per error of a row and per eps."""
    ns, b, width = at.ns, at.radius, layer.d_head or 1
    matrix = at.weights.matrix(f"W_{name}", layer.block, head, layer.d, width)
    offset, near = at.offset(f"b_{name}" if layer.qk_bias else None, layer.block, head)
    reach, slope, unit = b * matrix.whole.op + offset, matrix.whole.op, ns.number(1)
    gains: list[_Cover] = []
    if layer.qk_eps is not None:
        eps = ns.number(layer.qk_eps)
        kind, together = f"norm_{name}.gain", layer.normalised(layer.heads if name == "Q" else layer.groups)
        largest, covered = at.weights.gain(kind, layer.block)
        unit, longest = largest / ns.sqrt(eps), ns.sqrt(ns.number(together))
        reach = largest * reach * ns.sqrt(ns.number(together) / (reach**2 + width * eps))
        slope = slope * unit
        gains = [(kind, ns.number(1), (vector_target(ns, "gain", together, covered, longest),))]
    covers = [(f"W_{name}", unit, (Target("map", layer.d, width, b, matrix.covered, Points(points)),))]
    if layer.qk_bias:
        covers.append((f"b_{name}", unit, (vector_target(ns, "vector", width, near),)))
    return _Scores(reach, slope, (*covers, *gains))


def _own_query(layer: Attention, at: Context, head: int | None) -> _Scores:
    """S5: scores <q, x_t>/tau are one linear map with d weights; all rows of the output are the same."""
    ns, b = at.ns, at.radius
    query = at.weights.matrix("q", layer.block, head, layer.d, 1)
    length = query.whole.op
    target = Target("map", layer.d, 1, b, query.covered, Points(at.seq_len))
    sharp = ns.sqrt(1 + (b * length / _tau(layer, at)) ** 2)
    return _Scores(b * length, length, (("q", ns.number(1), (target,)),), sharp)
