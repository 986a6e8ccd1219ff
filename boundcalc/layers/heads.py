"""L1, L2, L7, L8, L11-L14 and S1-S5: what proofs know of attention heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from boundcalc.base.errors import Refusal, Unsupported
from boundcalc.base.numbers import Number
from boundcalc.layers.facts import Context, Facts, Member, Points, Slot, Target, one_slot

if TYPE_CHECKING:
    from boundcalc.layers.attention import Attention, Normaliser
    from boundcalc.layers.base import Weight

_GROUPED = ("W_K", "b_K", "W_V", "b_V")
"""Maps that grouped queries share."""
_Kinds: TypeAlias = "Mapping[str, Weight]"
"""The weights of a layer by their names."""


class _Scores(NamedTuple):
    """How the scores of one kind of head are made, before the temperature.

    `by_query` and `by_key`: their error per error of the row that asks and of the rows that are asked.
    """

    largest: Number
    by_query: Number
    by_key: Number
    slots: tuple[Slot, ...]


def facts(layer: Attention, at: Context) -> Facts:
    """L7, L8: errors of heads add up when outputs are summed; side by side they add as squares."""
    ns, softmax, groups = at.ns, layer.normaliser.name in ("softmax", "softmax1"), _groups(layer, at)
    weights = {weight.kind: weight for weight in layer.weights(at.seq_len)}
    heads = [_head(layer, at, head, weights) for head, _ in groups]
    numbers = [number for _, number in groups]

    def gather(values: Sequence[Number]) -> Number:
        pairs = zip(numbers, values, strict=True)
        if layer.combine == "concat":
            return ns.sqrt(sum(number * value**2 for number, value in pairs))
        return sum(number * value for number, value in pairs)

    slots: list[Slot] = []
    for same in zip(*(head.slots for head in heads), strict=True):
        first, own = same[0], layer.groups if same[0].kind in _GROUPED else layer.heads
        maps = zip(numbers, same, strict=True)  # distinct ones: fewer than heads where these share them
        members = tuple(Member(-(-number * own // layer.heads), slot.members[0].targets) for number, slot in maps)
        if first.kind.endswith((".gain", "_offsets")):
            members = first.members  # one for all heads
        bends = first.kind == "q" and softmax and not at.published  # modulus 2 tanh(e/2) (S5)
        cap = None if first.cap is None else gather([slot.cap for slot in same])
        slots.append(Slot(first.kind, gather([slot.sensitivity for slot in same]), members, cap, bends))
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
    radius, lipschitz = gather([head.radius for head in heads]), gather([head.lipschitz for head in heads])
    return Facts(radius, lipschitz, tuple(slots), tuple(name for name, holds in uses.items() if holds))


def _tau(layer: Attention, at: Context) -> Number:
    """What scores are divided by."""
    if layer.normaliser.temperature is None and layer.qk == "split":
        return at.ns.sqrt(at.ns.number(layer.d_head or 1))
    return at.ns.number(layer.temperature)


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


def _head(layer: Attention, at: Context, head: int | None, weights: _Kinds) -> Facts:
    """L7 and the score covers S1-S5 of one head; errors of scores are capped."""
    ns, b, tau, name = at.ns, at.radius, _tau(layer, at), layer.normaliser.name
    scores = {"joint": _joint, "split": _split, "fixed": _own_query}[layer.qk](layer, at, head, weights)
    c, mass = _normaliser_constants(layer.normaliser, tau, scores.largest, at)
    c_v, moved = at.size(weights["W_V"], head), at.size(weights["b_V"], head) if layer.v_bias else ns.number(0)
    inside = b * c_v if name == "softmax" else b * c_v + moved
    steep, wrong = c * inside, 2 * mass * inside  # errors of the output per error of all scores, and at the most
    if at.published and layer.qk == "joint":
        lipschitz = c_v * mass + (2 * c if name == "custom" else 4 / tau) * inside * scores.by_key
    elif layer.qk != "split" and not at.published and layer.cap is None and _is_softmax(layer):
        lipschitz = c_v * (b * scores.by_query / tau + ns.sqrt(1 + (scores.largest / tau) ** 2))
    else:
        lipschitz = c_v * mass + steep * (scores.by_query + scores.by_key)
    slots = [replace(slot, sensitivity=steep * slot.sensitivity, cap=wrong) for slot in scores.slots]
    if layer.buckets is not None:
        slots.append(replace(at.slot(weights["score_offsets"], steep), cap=wrong))
    pooled = (1 if layer.qk == "fixed" else at.rows) * (layer.heads // layer.groups)
    slots.append(at.slot(weights["W_V"], head=head, radius=mass * b, points=pooled))
    if layer.v_bias:
        slots.append(at.slot(weights["b_V"], mass, head=head))
    return Facts(mass * (b * c_v + moved), lipschitz, tuple(slots))


def _normaliser_constants(
    normaliser: Normaliser, tau: Number, score_radius: Number, at: Context
) -> tuple[Number, Number]:
    """L1 and L2: the l_inf -> l_1 constant c and the largest l_1 mass mu of a row of weights."""
    ns = at.ns
    match normaliser.name:
        case "softmax" | "softmax1":
            return ns.number(2 if at.published else 1) / tau, ns.number(1)
        case "sigmoid":
            return ns.number(1) / (4 * tau), ns.number(1)
        case "linear":
            return ns.number(1) / tau, score_radius / tau
        case _:
            return ns.number(normaliser.c or 0) / tau, ns.number(normaliser.mu or 0)


def _is_softmax(layer: Attention) -> bool:
    """Whether weights are those of softmax, also with a key of score and value 0 that is always there."""
    name = layer.normaliser.name
    return name == "softmax" or (name == "softmax1" and not layer.qk_bias and not layer.v_bias)


def _joint(layer: Attention, at: Context, head: int | None, weights: _Kinds) -> _Scores:
    """S1-S3: scores <(x, 1) W, (x_t, 1)>; an offset of keys drops out where weights sum to 1 and nothing caps (T8)."""
    ns, b, joint = at.ns, at.radius, weights["W_QK"]
    rows, columns = joint.shape
    augmented = ns.sqrt(b**2 + 1) if layer.qk_bias else b
    keys = augmented if layer.key_bias else b
    score = at.weights.scores(joint, head, layer.d_head)
    reach, c_w = augmented * keys, score.whole.op
    targets = (
        Target("score", rows, columns, reach, score.covered, Points(at.rows * at.seq_len)),
        Target("query", rows, columns, reach, score.covered, Points(at.rows)),
        Target("key", columns, rows, reach, score.covered, Points(at.seq_len)),
    )
    return _Scores(reach * c_w, keys * c_w, augmented * c_w, (one_slot("W_QK", ns.number(1), *targets),))


def _split(layer: Attention, at: Context, head: int | None, weights: _Kinds) -> _Scores:
    """S4, and L13 where queries and keys are normalised."""
    q, k = (_side(layer, at, head, weights, *side) for side in (("Q", at.rows), ("K", at.seq_len)))
    slots = (
        replace(slot, sensitivity=other.radius * slot.sensitivity)
        for pair in zip(q.slots, k.slots, strict=True)
        for slot, other in zip(pair, (k, q), strict=True)
    )
    return _Scores(q.radius * k.radius, q.lipschitz * k.radius, q.radius * k.lipschitz, tuple(slots))


def _side(layer: Attention, at: Context, head: int | None, weights: _Kinds, name: str, points: int) -> Facts:
    """Queries or keys: x W + b, perhaps normalised, with a gain."""
    ns, kinds = at.ns, (f"W_{name}", f"b_{name}", f"norm_{name}.gain")
    own = {weight.role: weight for kind, weight in weights.items() if kind in kinds}
    sizes = {role: at.size(weight, head) for role, weight in own.items()}
    slope, unit, longest = sizes["matrix"], ns.number(1), ns.number(1)
    reach = at.radius * slope + sizes.get("vector", 0)
    if layer.qk_eps is not None:
        eps, together = ns.number(layer.qk_eps), ns.number(own["gain"].shape[0])
        unit, longest = sizes["gain"] / ns.sqrt(eps), ns.sqrt(together)
        reach = sizes["gain"] * reach * ns.sqrt(together / (reach**2 + (layer.d_head or 1) * eps))
    slots = (
        at.slot(weight, 1, radius=longest) if role == "gain" else at.slot(weight, unit, head=head, points=points)
        for role, weight in own.items()
    )
    return Facts(reach, slope * unit, tuple(slots))


def _own_query(layer: Attention, at: Context, head: int | None, weights: _Kinds) -> _Scores:
    """S5: scores <q, x_t>/tau are one linear map with d weights; all rows of the output are the same."""
    query = weights["q"]
    length = at.size(query, head)
    return _Scores(at.radius * length, at.ns.number(0), length, (at.slot(query, head=head, points=at.seq_len),))
