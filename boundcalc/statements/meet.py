"""A6: linear maps that meet are one map. The class of a setting lies in a class with fewer maps, whose covers serve it.

Between the two maps there is nothing, the identity, a pooling, or a projection that cannot act because its radius is at
least the reach of what it is given. Then the functions are equal, whatever approximate networks do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float
from boundcalc.base.numbers import Number, NumberSystem
from boundcalc.base.records import dataclass
from boundcalc.setting import Activation, Architecture, Attention, Ball, Budget, Layer, Linear, Pool, Residual, Setting
from boundcalc.setting.accounting import lookups
from boundcalc.setting.layer import weights_of
from boundcalc.setting.norms import place_of
from boundcalc.statements.layers import facts
from boundcalc.statements.slots import Context, total
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Weights

_Key = tuple[str, int | None]


def transposed(norms: MatrixNorms) -> MatrixNorms:
    """The norms of W'."""
    return replace(norms, two_one=norms.two_one_t, two_one_t=norms.two_one)


def product(ns: NumberSystem, left: MatrixNorms, right: MatrixNorms) -> MatrixNorms:
    """A6: norms of AB. Columns of AB are A times those of B, its rows B times those of A (L6)."""
    fro = ns.minimum(left.op * right.fro, left.fro * right.op)
    return MatrixNorms(
        op=left.op * right.op,
        fro=fro,
        two_one=left.op * right.two_one,
        two_one_t=left.two_one_t * right.op,
        one_one=left.one_one * right.one_one,
        nuclear=ns.minimum(left.op * right.nuclear, left.nuclear * right.op, left.fro * right.fro),
        rank=min(left.rank, right.rank),
    )


def met(setting: Setting) -> Setting | None:
    """The setting with maps that follow each other made one, its budgets rounded up; None where none do."""
    walk = _Walk(setting)
    layers = tuple(walk.run())
    if not walk.budgets:
        return None
    given = setting.architecture
    architecture = Architecture(
        seq_len=given.seq_len, classes=given.classes, input_radius=given.input_radius, layers=layers
    )
    norms = replace(setting.norms, budgets={**_left(setting, layers, walk.made), **walk.budgets})
    read = {key for _, key in lookups(norms, list(weights_of(layers, given.seq_len)))}
    norms = replace(norms, budgets={key: budget for key, budget in norms.budgets.items() if key in read})
    return Setting(architecture, norms, setting.sample)


def _left(setting: Setting, layers: Iterable[Layer], made: set[_Key]) -> Mapping[str, Budget]:
    """The given budgets of kinds that are still there, without those of matrices that are now products."""
    kinds = {kind for kind, _ in _places(layers, setting.architecture.seq_len)}
    found = ((key, place_of(key), budget) for key, budget in setting.norms.budgets.items())
    return {key: budget for key, (kind, block, _), budget in found if kind in kinds and (kind, block) not in made}


def _places(layers: Iterable[Layer], seq_len: int) -> Counter[_Key]:
    """How many layers have a matrix of each kind and block."""
    return Counter((each.kind, each.block) for weight in weights_of(layers, seq_len) for each in weight.all)


@dataclass(slots=True)
class _Waiting:
    """A linear map whose neighbour is not known yet."""

    layer: Linear
    norms: MatrixNorms
    joined: bool
    between: list[Layer]

    @property
    def pools(self) -> list[Layer]:
        """What stays when the maps are joined."""
        return [layer for layer in self.between if isinstance(layer, Pool)]


class _Walk:
    def __init__(self, setting: Setting) -> None:
        self.architecture = setting.architecture
        self.weights = Weights(INTERVAL, setting.norms)
        self.places = _places(self.architecture.stages, self.architecture.seq_len)
        self.kinds = Counter(kind for kind, _ in self.places.elements())
        self.budgets: dict[str, Budget] = {}
        self.made: set[_Key] = set()
        self.waiting: _Waiting | None = None

    def run(self) -> Iterator[Layer]:
        """The layers of the larger class."""
        radius = INTERVAL.number(self.architecture.input_radius)
        for layer in self.architecture.stages:
            yield from self._take(layer, radius)
            radius = self._after(layer, radius)
        yield from self._give_up()

    def _after(self, layer: Layer, radius: Number) -> Number:
        if isinstance(layer, Residual):
            reaches: list[Number] = []
            for branch in layer.branches:
                inner = radius
                for stage in branch:
                    inner = self._after(stage, inner)
                reaches.append(inner)
            return total(reaches)
        return facts(layer, Context(self.weights, radius, 1, self.architecture.seq_len)).radius

    def _take(self, layer: Layer, radius: Number) -> Iterator[Layer]:
        """A layer at its input radius: it meets the map that waits, is passed over, or ends the waiting."""
        first = self.waiting
        if first is not None:
            if _passes(layer, radius):
                first.between.append(layer)
                return
            if isinstance(layer, Linear) and self._alone((layer.kind, layer.block)):
                yield from first.pools
                yield from self._meet(first, layer)
                return
            if isinstance(layer, Attention) and self._attends(layer) and not first.pools:
                self.waiting = None
                yield self._look(first, layer)
                return
            yield from self._give_up()
        if isinstance(layer, Linear) and layer.bias is None:
            norms = self.weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out).whole
            self.waiting = _Waiting(layer, norms, False, [])
        else:
            yield layer

    def _give_up(self) -> Iterator[Layer]:
        if self.waiting is not None:
            first, self.waiting = self.waiting, None
            if first.joined:
                self._set((first.layer.kind, first.layer.block), None, first.norms)
            yield first.layer
            yield from first.between

    def _meet(self, first: _Waiting, second: Linear) -> Iterator[Layer]:
        norms = self.weights.matrix(second.kind, second.block, None, second.d_in, second.d_out).whole
        layer = replace(second, d_in=first.layer.d_in)
        self.waiting = _Waiting(layer, product(INTERVAL, first.norms, norms), True, [])
        if second.bias is not None:
            yield from self._give_up()

    def _look(self, first: _Waiting, layer: Attention) -> Attention:
        """Attention on hA is attention on h, with A W_QK A' for W_QK and A W_V for W_V."""
        norms, a = self.weights.norms, first.norms
        for kind in ("W_QK", "W_V"):
            for head in range(layer.heads) if norms.headed else (None,):
                if kind == "W_V":
                    value = self.weights.matrix(kind, layer.block, head, layer.d, layer.out).whole
                    found = product(INTERVAL, a, value)
                else:
                    score = self.weights.scores(layer.scores, head, layer.d_head)
                    found = product(INTERVAL, product(INTERVAL, a, score.whole), transposed(a))
                self._set((kind, layer.block), head, found)
        return replace(layer, d=first.layer.d_in, d_value=layer.out)

    def _alone(self, key: _Key) -> bool:
        """Whether a key of the norms is that of one layer only."""
        return self.places[key] == 1 and (key[1] is not None or self.kinds[key[0]] == 1)

    def _attends(self, layer: Attention) -> bool:
        """Whether the two matrices of a head are all there is, with budgets of their own."""
        factors = any(place_of(key)[0] in ("W_Q", "W_K") for key in self.weights.norms.budgets)
        alone = all(self._alone((kind, layer.block)) for kind in ("W_QK", "W_V"))
        return layer.qk == "joint" and not (layer.qk_bias or layer.v_bias or factors) and alone

    def _set(self, key: _Key, head: int | None, norms: MatrixNorms) -> None:
        kind, block = key
        place = kind if block is None else f"{kind}[{block}]" if head is None else f"{kind}[{block},{head}]"
        self.made.add(key)
        self.budgets[place] = budget_of(norms)


def _passes(layer: Layer, radius: Number) -> bool:
    """Whether a layer does nothing to rows of this radius but, at most, pool them."""
    if isinstance(layer, Ball):
        return certainly_le(radius, INTERVAL.number(layer.radius))
    return isinstance(layer, Pool) or (isinstance(layer, Activation) and layer.name == "identity")


def budget_of(norms: MatrixNorms) -> Budget:
    """The budget of norms in intervals, rounded up and in order."""
    op = upper_float(norms.op)
    fro = max(op, upper_float(norms.fro))
    two_one, two_one_t = (max(fro, upper_float(value)) for value in (norms.two_one, norms.two_one_t))
    nuclear = max(fro, upper_float(norms.nuclear))
    return Budget(op, fro, two_one, two_one_t, rank=norms.rank, schatten=(1.0, nuclear))
