"""L, S and A0 in 50 digits: the walk through a network, with the error that a level's covers leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from boundcalc.proof.certificate import Choice, Cover
from boundcalc.proof.second.attention import Head
from boundcalc.proof.second.channels import told
from boundcalc.proof.second.covers import LEAST, REFINING, Sizes, View, cost, cost_at_every_scale, single
from boundcalc.proof.second.joint import SLOPES, hidden, lookup
from boundcalc.proof.second.noises import PARAMETERS as LAWS
from boundcalc.proof.second.noises import divergence, events
from boundcalc.proof.second.numbers import MP, Real, demand, num, unknown
from boundcalc.proof.second.rows import rows_read
from boundcalc.setting import (
    Activation,
    Attention,
    Ball,
    Budget,
    Embedding,
    Experts,
    GatedFeedForward,
    Hidden,
    Layer,
    LayerNorm,
    Linear,
    Lookup,
    Pool,
    Residual,
    Setting,
    SoftCap,
)

_Maps = Sequence[tuple[int, Sequence[View]]]
"""Maps of one kind: how many alike, and the ways to see one of them."""


class Heard(NamedTuple):
    """Which way a map is seen, (a, eps) of every level so far, and what they tell of it."""

    target: int
    noises: tuple[tuple[Real, Real], ...]
    told: Real


@dataclass
class Walk:
    """Radius, error and log count on the way through a network at one level.

    Attributes:
        covers: of every piece; None to learn the radius alone.
        samples: covers are counted on so many.
        every_scale: whether costs stand for all scales (A4, PUB).
        published: whether L1 and L7 have their published constants.
        depth: t of G11, where maps carry noise instead of being covered.
        before: covers of the level before, where this one may refine them (G12).
        heard: what the levels before have said of maps through channels (G14); what this one says is added.
    """

    setting: Setting
    covers: Mapping[str, Cover] | None
    samples: int
    every_scale: bool = False
    published: bool = False
    depth: Real | None = None
    before: Mapping[str, Cover] | None = None
    heard: dict[tuple[str, int], Heard] | None = None

    def __post_init__(self) -> None:
        architecture = self.setting.architecture
        self.norms = self.setting.norms
        self.seq_len = architecture.seq_len
        self.radius: Real = num(architecture.input_radius)
        self.error: Real = num(0)
        self.count: Real = num(0)
        self.events = 0
        self.seen = Counter[str]()
        self._layers(architecture.stages, 1)
        if self.covers is not None:
            extra = set(self.covers) - {
                f"{k}#{i}" if i > 1 else k for k, n in self.seen.items() for i in range(1, n + 1)
            }
            demand(not extra, f"there is no piece {sorted(extra)[:1]}")

    # -- budgets

    def budget(self, kind: str, block: int | None = None, head: int | None = None) -> Budget | None:
        """The most particular budget given for a matrix."""
        keys = (f"{kind}[{block},{head}]", f"{kind}[{block}]", kind)
        return next((self.norms.budgets[key] for key in keys if key in self.norms.budgets), None)

    def limit(self, kind: str, block: int | None = None, head: int | None = None) -> Budget:
        """The budget of a matrix, or the knob."""
        found = self.budget(kind, block, head)
        if found is None:
            demand(self.norms.C is not None, f"{kind} has no budget")
            C = self.norms.C
            found = Budget(op=C, two_one=C, sup=C, row=C)
        return found

    def matrix(
        self, kind: str, block: int | None, head: int | None, d: int, k: int, rank: int | None = None
    ) -> tuple[Sizes, Sizes]:
        """Norms of a matrix, and of its distance from a reference, of twice the rank (T7)."""
        budget = self.limit(kind, block, head)
        whole = Sizes.of(budget, d, k, rank)
        apart = budget.distance
        return whole, whole if apart is None else Sizes.of(apart, d, k, None if rank is None else 2 * rank)

    def vector(
        self, names: Sequence[str], kind: str, block: int | None = None, head: int | None = None
    ) -> Sequence[Real]:
        """The least of some norms of a vector, and of its distance from a reference."""
        budget = self.limit(kind, block, head)
        out: list[Real] = []
        for part in (budget, budget.distance or budget):
            given = [x for name in names if (x := getattr(part, name)) is not None]
            demand(given, f"{kind} has no budget of its own norm")
            out.append(num(min(given) or LEAST))
        return out

    def offset(self, kind: str, block: int | None, head: int | None = None) -> Sequence[Real]:
        """|c| of an offset (T8)."""
        return self.vector(("op", "fro", "two_one"), kind, block, head)

    # -- pieces

    def piece(
        self,
        kind: str,
        block: int | None,
        maps: _Maps,
        sensitivity: Real,
        cap: Real | None = None,
        bends: bool = False,
    ) -> Real:
        """Adds the cost of a piece; returns the error its cover leaves in the output of the layer."""
        name = kind if block is None else f"{kind}[{block}]"
        self.seen[name] += 1
        if self.covers is None:
            return num(0)
        key = name if self.seen[name] == 1 else f"{name}#{self.seen[name]}"
        demand(key in self.covers, f"{key} is not covered")
        cover = self.covers[key]
        demand(len(cover.choices) == len(maps), f"{key} has {len(maps)} kinds of maps")
        eps = MP.exp(num(cover.log_eps))
        outside = False
        for index, (choice, (number, views)) in enumerate(zip(cover.choices, maps, strict=True)):
            if choice.refines:
                self.count += number * self._refinement(key, index, choice, cover.log_eps, views)
                continue
            if choice.lemma == "zero":
                demand(not self.every_scale, f"{key}: a closed form leaves nothing out")
                outside = outside or all(view.reach > eps for view in views)
                continue
            demand(choice.target < len(views), f"{key}: there is no way {choice.target} to see it")
            if self.heard is not None and choice.lemma in LAWS:
                self.count += number * self._channel((key, index), choice, cover.log_eps, views[choice.target])
                continue
            if self.depth is not None and choice.lemma in LAWS:
                self.events += number * events(views[choice.target])
                self.count += number * divergence(choice, views[choice.target], eps, self.depth)
                continue
            price = cost_at_every_scale if self.every_scale and choice.lemma != "Tpub" else cost
            demand(self.published or choice.lemma != "Tpub", f"{key}: Tpub has only the word of the literature")
            self.count += number * price(choice, views[choice.target], eps, self.samples)
        if outside:
            demand(cap is not None and all(c.lemma == "zero" for c in cover.choices), f"{key} is not covered at eps")
            return cap
        left = sensitivity * eps
        if cap is None or self.every_scale:
            return left
        return cap * MP.tanh(left / cap) if bends else min(left, cap)

    def _channel(self, place: tuple[str, int], choice: Choice, log_eps: float, view: View) -> Real:
        """G14: what one map says beyond what it has said."""
        assert self.heard is not None  # noqa: S101 - just asked
        said = self.heard.get(place, Heard(choice.target, (), num(0)))
        demand(said.target == choice.target, f"{place[0]}: channels see it in two ways")
        eps = MP.exp(num(log_eps))
        if any(finer <= eps for _, finer in said.noises):
            return num(0)
        noises = (*said.noises, (num(choice.params.get("a", -1)), eps))
        self.heard[place] = Heard(choice.target, noises, told(choice, view, noises))
        return self.heard[place].told - said.told

    def _refinement(self, key: str, index: int, choice: Choice, log_eps: float, views: Sequence[View]) -> Real:
        """G12: a cover of the ball in which the level before has left one map."""
        old = None if self.before is None else self.before.get(key)
        demand(old is not None and index < len(old.choices), f"{key}: there is nothing before it to refine")
        assert old is not None  # noqa: S101 - just asked
        mine = old.choices[index]
        demand(
            choice.lemma in REFINING and mine.lemma != "zero", f"{key}: {choice.lemma} of {mine.lemma} refines nothing"
        )
        demand(mine.target == choice.target < len(views), f"{key}: it is refined in another metric")
        view = views[choice.target]
        ratio = MP.exp(num(old.log_eps) - num(log_eps))
        unit = replace(view, radius=num(1), sizes=replace(view.sizes, op=ratio))
        return cost(choice, unit, num(1), self.samples)

    # -- layers

    def _layers(self, layers: Sequence[Layer], rows: int) -> None:
        for layer, read in zip(layers, rows_read(layers, rows, self.seq_len), strict=True):
            if isinstance(layer, Residual):
                radius, error = self.radius, self.error
                sums = (radius, error) if layer.skip else (num(0), num(0))
                for branch in (layer.branch, *layer.beside):
                    self.radius, self.error = radius, error
                    self._layers(branch, read)
                    sums = sums[0] + self.radius, sums[1] + self.error
                self.radius, self.error = sums
            else:
                self._layer(layer, read)

    def _layer(self, layer: Layer, rows: int) -> None:
        match layer:
            case Linear():
                self._linear(layer, rows)
            case Activation():
                self.error *= num(SLOPES[layer.name])
            case Ball():
                self.radius = min(self.radius, num(layer.radius))
            case SoftCap():
                self.radius = min(self.radius, num(layer.cap) * MP.sqrt(layer.d))
            case LayerNorm():
                self._normalise(layer)
            case Attention():
                self._attention(layer, rows)
            case GatedFeedForward():
                self._gated(layer, rows)
            case Experts():
                self._experts(layer, rows)
            case Embedding():
                self._embedding(layer)
            case Hidden():
                hidden(self, layer, rows)
            case Lookup():
                lookup(self, layer)
            case Pool():
                pass
            case _:
                raise unknown("layer", type(layer).__name__)

    def _linear(self, layer: Linear, rows: int) -> None:
        """L6, T8."""
        whole, covered = self.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out)
        left = self.piece(layer.kind, layer.block, [(1, [View("map", self.radius, rows, covered)])], num(1))
        self.error = self.error * whole.op + left
        self.radius *= whole.op
        if layer.bias is not None:
            size, apart = self.offset(layer.bias, layer.block)
            self.error += self.piece(layer.bias, layer.block, [(1, [single("vector", layer.d_out, apart)])], num(1))
            self.radius += size

    def _normalise(self, layer: LayerNorm) -> None:
        """L5, T9."""
        b, d, e = self.radius, num(layer.d), num(layer.eps)
        reach = MP.sqrt(d) * b / MP.sqrt(b**2 + d * e)
        steep = 1 / MP.sqrt(num(layer.variance_floor) + e)
        self.radius = reach
        if layer.gain:
            largest, apart = self.vector(("sup",), f"{layer.kind}.gain", layer.block)
            largest += 1 if layer.around_one else 0
            steep, self.radius = steep * largest, largest * reach
            self.error *= steep
            maps = [(1, [single("gain", layer.d, apart, reach)])]
            self.error += self.piece(f"{layer.kind}.gain", layer.block, maps, num(1))
        else:
            self.error *= steep
        if layer.offset:
            size, apart = self.offset(f"{layer.kind}.offset", layer.block)
            maps = [(1, [single("vector", layer.d, apart)])]
            self.error += self.piece(f"{layer.kind}.offset", layer.block, maps, num(1))
            self.radius += size

    def _gated(self, layer: GatedFeedForward, rows: int) -> None:
        """L9."""
        b, slope, block = self.radius, num(SLOPES[layer.activation]), layer.block
        (w1, v1), (w3, v3) = (self.matrix(kind, block, None, layer.d, layer.d_ff) for kind in ("W_1", "W_3"))
        w2, v2 = self.matrix("W_2", block, None, layer.d_ff, layer.d)
        zero = num(0), num(0)
        b1, b3, b2 = (self.offset(kind, block) if layer.bias else zero for kind in ("b_1", "b_3", "b_2"))
        left, right = b * w1.op + b1[0], b * w3.op + b3[0]
        self.error *= w2.op * (slope * w1.op * right + left * w3.op)
        self.error += self.piece("W_1", block, [(1, [View("map", b, rows, v1)])], slope * right * w2.op)
        self.error += self.piece("W_3", block, [(1, [View("map", b, rows, v3)])], left * w2.op)
        self.error += self.piece("W_2", block, [(1, [View("map", left * right, rows, v2)])], num(1))
        if layer.bias:
            into = ("b_1", slope * right * w2.op, b1[1]), ("b_3", left * w2.op, b3[1])
            for kind, steep, apart in into:
                self.error += self.piece(kind, block, [(1, [single("vector", layer.d_ff, apart)])], steep)
            self.error += self.piece("b_2", block, [(1, [single("vector", layer.d, b2[1])])], num(1))
        self.radius = left * right * w2.op + b2[0]

    def _experts(self, layer: Experts, rows: int) -> None:
        """L15."""
        demand(layer.active in (None, layer.experts), "some experts do not run")
        b, slope, block, n = self.radius, num(SLOPES[layer.activation]), layer.block, layer.experts
        gate, near = self.matrix("W_gate", block, None, layer.d, n)
        (w1, v1), (w3, v3) = (self.matrix(kind, block, None, layer.d, layer.d_ff) for kind in ("W_1", "W_3"))
        w2, v2 = self.matrix("W_2", block, None, layer.d_ff, layer.d)
        most = b**2 * w1.op * w3.op * w2.op
        c = 1 / MP.sqrt(2)
        self.error *= b * w1.op * w3.op * w2.op * (1 + slope) + c * most * gate.op
        self.error += self.piece("W_gate", block, [(1, [View("map", b, rows, near)])], c * most, 2 * most)
        self.error += self.piece("W_1", block, [(n, [View("map", b, rows, v1)])], slope * b * w3.op * w2.op)
        self.error += self.piece("W_3", block, [(n, [View("map", b, rows, v3)])], b * w1.op * w2.op)
        inner = b**2 * w1.op * w3.op
        self.error += self.piece("W_2", block, [(n, [View("map", inner, rows, v2)])], num(1))
        self.radius = most

    def _embedding(self, layer: Embedding) -> None:
        """T10."""

        def table(kind: str, rows: int) -> Real:
            size, apart = self.vector(("row", "op", "fro", "two_one"), kind)
            norms = Sizes(rows, layer.d, apart, apart, apart, apart, apart, apart, layer.d)
            views = [View("table", num(1), self.seq_len, norms, rows)]
            budget = self.limit(kind)
            part = budget.distance or budget
            if kind == "embedding" and (part.two_one is not None or part.fro is not None):
                covered = self.matrix(kind, None, None, rows, layer.d)[1]
                views.append(View("map", num(1), self.seq_len, covered, rows))
            self.error += self.piece(kind, None, [(1, views)], num(1))
            return size

        if layer.vocabulary:
            self.radius = table("embedding", layer.vocabulary)
        if layer.positions == "fixed":
            self.radius += num(layer.position_radius)
        elif layer.positions == "learned":
            self.radius += table("positions", self.seq_len)
        if layer.segments:
            self.radius += table("segments", layer.segments)

    # -- attention

    def _attention(self, layer: Attention, rows: int) -> None:
        """L7, L8."""
        heads = [Head(self, layer, rows, head) for head in self._representatives(layer)]
        numbers = [self._alike[head.head] for head in heads]

        def together(values: Sequence[Real]) -> Real:
            if layer.combine == "concat":
                return MP.sqrt(sum(n * value**2 for n, value in zip(numbers, values, strict=True)))
            return sum((n * value for n, value in zip(numbers, values, strict=True)), start=num(0))

        def shared(number: int) -> int:
            return -(-number * layer.groups // layer.heads)

        block = layer.block
        error = together([head.lipschitz for head in heads]) * self.error
        wrong = together([2 * head.mass * head.inside for head in heads])
        for i, (kind, _, _) in enumerate(heads[0].scores):
            steep = together([head.score_error * head.scores[i][1] for head in heads])
            once = kind in ("W_K", "b_K")
            one = kind in ("norm_Q.gain", "norm_K.gain")  # for all heads
            bends = kind == "q" and layer.normaliser.name in ("softmax", "softmax1") and not self.published  # S5
            maps = [(shared(n) if once else n, head.scores[i][2]) for n, head in zip(numbers, heads, strict=True)]
            error += self.piece(kind, block, [(1, maps[0][1])] if one else maps, steep, wrong, bends)
        if layer.offsets == "learned":  # L14
            apart = self.vector(("sup",), "score_offsets", block)[1]
            entries = single("gain", (layer.buckets or 1) * layer.heads, apart)
            steep = together([head.score_error for head in heads])
            error += self.piece("score_offsets", block, [(1, [entries])], steep, wrong)
        maps = [(shared(n), [head.value]) for n, head in zip(numbers, heads, strict=True)]
        error += self.piece("W_V", block, maps, together([num(1) for _ in heads]))
        if layer.v_bias:
            maps = [
                (shared(n), [single("vector", layer.out, head.offset_apart)])
                for n, head in zip(numbers, heads, strict=True)
            ]
            error += self.piece("b_V", block, maps, together([head.mass for head in heads]))
        self.error = error
        self.radius = together([head.mass * head.value_radius for head in heads])

    def _representatives(self, layer: Attention) -> list[int | None]:
        """One head for each set of heads with the same budgets, in the order certificates list them."""
        kinds = ("W_QK", "W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V", "q")
        sets: dict[str, list[int]] = {}
        for head in range(layer.heads):
            sets.setdefault(repr([self.budget(kind, layer.block, head) for kind in kinds]), []).append(head)
        demand(layer.groups == layer.heads or len(sets) == 1, "budgets per head with grouped queries")
        demand(layer.qk_norm != "width" or len(sets) == 1, "budgets per head where all are normalised together")
        self._alike: dict[int | None, int] = {heads[0]: len(heads) for heads in sets.values()}
        return list(self._alike)
