"""A6: linear maps that meet are one map. The class of a setting lies in a class with fewer maps, whose covers serve it.

Between the two maps there is nothing, the identity, a pooling, or a projection that cannot act because its radius is at
least the reach of what it is given. Then the functions are equal, whatever approximate networks do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from boundcalc.base.intervals import INTERVAL, certainly_le, upper_float
from boundcalc.base.records import dataclass
from boundcalc.base.system import Number
from boundcalc.setting import Activation, Architecture, Attention, Ball, Budget, Layer, Linear, Pool, Residual, Setting
from boundcalc.setting.accounting import lookups
from boundcalc.setting.layer import weights_of
from boundcalc.setting.norms import place_of
from boundcalc.statements.layers import facts
from boundcalc.statements.meet_attention import meets_attention, numbers_of, product, through_attention
from boundcalc.statements.slots import Context, total
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Weights

_Key = tuple[str, int | None]


def met(setting: Setting) -> Setting | None:
    """The setting with maps that follow each other made one, its budgets rounded up; None where none do."""
    walk = _Walk(setting)
    layers, _ = walk.through(setting.architecture.stages, INTERVAL.number(setting.architecture.input_radius))
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
    """A linear map whose neighbour is not known yet; the length of its offset, where it has one."""

    layer: Linear
    norms: MatrixNorms
    offset: Number | None
    joined: bool
    between: list[Layer]

    @property
    def pools(self) -> list[Layer]:
        """What stays when the maps are joined."""
        return [layer for layer in self.between if isinstance(layer, Pool)]


class Places:
    """How many layers have a matrix of each kind and block."""

    def __init__(self, architecture: Architecture) -> None:
        self._places = _places(architecture.stages, architecture.seq_len)
        self._kinds = Counter(kind for kind, _ in self._places.elements())

    def alone(self, kind: str, block: int | None) -> bool:
        """Whether a key of the norms is that of one layer only."""
        return self._places[kind, block] == 1 and (block is not None or self._kinds[kind] == 1)

    def free(self, kind: str, block: int | None) -> bool:
        """Whether a key of the norms is that of none."""
        return self._places[kind, block] == 0


class _Walk:
    """A network with its branches; what is made on the way."""

    def __init__(self, setting: Setting) -> None:
        self.seq_len = setting.architecture.seq_len
        self.weights = Weights(INTERVAL, setting.norms)
        self.places = Places(setting.architecture)
        self.budgets: dict[str, Budget] = {}
        self.made: set[_Key] = set()

    def through(self, layers: Iterable[Layer], radius: Number) -> tuple[tuple[Layer, ...], Number]:
        """Layers that follow each other in the larger class, and the radius behind them."""
        row = _Row(self)
        found: list[Layer] = []
        for layer in layers:
            found += row.take(layer, radius)
            if isinstance(layer, Residual):
                branches = [self.through(branch, radius) for branch in layer.branches]
                radius = total([reach for _, reach in branches])
                first, *beside = [inner for inner, _ in branches][int(layer.skip) :]
                found[-1] = replace(layer, branch=first, beside=tuple(beside))
            else:
                radius = facts(layer, Context(self.weights, radius, 1, self.seq_len)).radius
        return (*found, *row.give_up()), radius

    def set(self, key: _Key, head: int | None, budget: Budget) -> None:
        """A budget of the larger class."""
        kind, block = key
        self.made.add(key)
        self.budgets[kind if block is None else f"{kind}[{block}]" if head is None else f"{kind}[{block},{head}]"] = (
            budget
        )


class _Row:
    """Layers in a row, the last of which may be a map that waits for the next."""

    def __init__(self, walk: _Walk) -> None:
        self.walk = walk
        self.waiting: _Waiting | None = None

    def take(self, layer: Layer, radius: Number) -> Iterator[Layer]:
        """A layer at its input radius: it meets the map that waits, is passed over, or ends the waiting."""
        first = self.waiting
        if first is not None:
            if _passes(layer, radius):
                first.between.append(layer)
                return
            if isinstance(layer, Linear) and self._follows(first, layer):
                yield from first.pools
                self.waiting = self._meet(first, layer)
                return
            if isinstance(layer, Attention) and not first.pools and self._attends(first, layer):
                self.waiting = None
                yield self._look(first, layer)
                return
            yield from self.give_up()
        if isinstance(layer, Linear):
            weights = self.walk.weights
            norms = weights.matrix(layer.kind, layer.block, None, layer.d_in, layer.d_out).whole
            offset = None if layer.bias is None else weights.vector(layer.bias, layer.block)[0]
            self.waiting = _Waiting(layer, norms, offset, False, [])
        else:
            yield layer

    def give_up(self) -> Iterator[Layer]:
        """What is left of waiting."""
        if self.waiting is not None:
            first, self.waiting = self.waiting, None
            layer = first.layer
            if first.joined:
                self.walk.set((layer.kind, layer.block), None, budget_of(first.norms))
                if layer.bias is not None and first.offset is not None:
                    self.walk.set((layer.bias, layer.block), None, Budget(op=upper_float(first.offset)))
            yield layer
            yield from first.between

    def _follows(self, first: _Waiting, second: Linear) -> bool:
        """Whether one map has fewer numbers than two; it and what becomes of offsets need names of their own."""
        places, (wide, narrow) = self.walk.places, (first.layer.d_in, first.layer.d_out)
        fewer = wide * second.d_out < narrow * (wide + second.d_out)
        if not fewer or not places.alone(second.kind, second.block):
            return False
        if second.bias is not None:
            return places.alone(second.bias, second.block)
        return first.offset is None or places.free(_offset_of(second), second.block)

    def _meet(self, first: _Waiting, second: Linear) -> _Waiting:
        """(hA + a) B + b = h (AB) + (aB + b)."""
        weights = self.walk.weights
        norms = weights.matrix(second.kind, second.block, None, second.d_in, second.d_out).whole
        parts = [] if first.offset is None else [first.offset * norms.op]
        if second.bias is not None:
            parts.append(weights.vector(second.bias, second.block)[0])
        bias = _offset_of(second) if parts else None
        layer = replace(second, d_in=first.layer.d_in, bias=bias)
        return _Waiting(layer, product(INTERVAL, first.norms, norms), total(parts) if parts else None, True, [])

    def _attends(self, first: _Waiting, layer: Attention) -> bool:
        """Whether attention on hA + a is attention on h, by matrices with names of their own."""
        walk = self.walk
        factors = {each.kind for each in layer.scores.factors} if layer.qk == "joint" else frozenset[str]()
        if any(place_of(key)[0] in factors for key in walk.weights.norms.budgets):
            return False
        own = [each for each in layer.weights(walk.seq_len) if each.kind in _READ_FROM_ROWS]
        wide, narrow = first.layer.d_in, first.layer.d_out
        fewer = numbers_of(layer, wide) < numbers_of(layer, narrow) + wide * narrow
        alone = all(walk.places.alone(each.kind, each.block) for each in own)
        return fewer and alone and meets_attention(layer, first.offset is not None)

    def _look(self, first: _Waiting, layer: Attention) -> Attention:
        walk = self.walk
        for head in range(layer.heads) if walk.weights.norms.headed else (None,):
            for kind, found in through_attention(walk.weights, layer, head, first.norms, first.offset).items():
                made = budget_of(found) if isinstance(found, MatrixNorms) else Budget(op=upper_float(found))
                walk.set((kind, layer.block), head, made)
        moved = first.offset is not None
        return replace(
            layer,
            d=first.layer.d_in,
            d_value=layer.out,
            qk_bias=layer.qk_bias or (moved and layer.qk != "fixed"),
            v_bias=layer.v_bias or moved,
        )


_READ_FROM_ROWS = frozenset(("W_QK", "W_Q", "W_K", "W_V", "q", "b_Q", "b_K", "b_V"))
"""What attention multiplies its rows with, or adds to the products."""


def _offset_of(layer: Linear) -> str:
    """The name of the offset that a map has, or gets where the map before it had one."""
    return layer.bias or f"b_{layer.kind}"


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
