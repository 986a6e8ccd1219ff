"""A6: linear maps that meet are one map. The class of a setting lies in a class with fewer maps, whose covers serve it.

Between the two maps there is nothing, the identity, a pooling, or a projection that cannot act because its radius is at
least the reach of what it is given. Then the functions are equal, whatever approximate networks do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from boundcalc.base.intervals import INTERVAL, upper_float
from boundcalc.base.system import Number
from boundcalc.setting import Architecture, Budget, Layer, Linear, Setting
from boundcalc.setting.accounting import lookups
from boundcalc.setting.layer import weights_of
from boundcalc.setting.norms import place_of
from boundcalc.statements.layers import LAYERS, facts
from boundcalc.statements.product_norms import budget_of, product
from boundcalc.statements.slots import Context, total
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Weights

_Key = tuple[str, int | None]


def met(setting: Setting) -> Setting | None:
    """The setting with maps that follow each other made one, its budgets rounded up; None where none do."""
    walk = Larger(setting)
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
class Waiting:
    """A linear map whose neighbour is not known yet; the length of its offset, where it has one."""

    layer: Linear
    norms: MatrixNorms
    offset: Number | None
    joined: bool
    between: list[Layer]

    @property
    def pools(self) -> list[Layer]:
        """What stays when the maps are joined."""
        return [layer for layer in self.between if layer.pooling is not None]


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


class Larger:
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
            if layer.branches:
                walked = {branch: self.through(branch, radius) for branch in layer.branches}
                radius = total([walked[branch][1] for branch in layer.branches])
                found[-1] = layer.over(lambda branch, walked=walked: walked[tuple(branch)][0])
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

    def __init__(self, walk: Larger) -> None:
        self.walk = walk
        self.waiting: Waiting | None = None

    def take(self, layer: Layer, radius: Number) -> Iterator[Layer]:
        """A layer at its input radius: it meets the map that waits, is passed over, or ends the waiting."""
        first, second = self.waiting, layer.as_map()
        if first is not None:
            if layer.pooling is not None or _idle(layer, radius):
                first.between.append(layer)
                return
            if second is not None and self._follows(first, second):
                yield from first.pools
                self.waiting = self._meet(first, second)
                return
            joined = _behind(layer, first, self.walk)
            if joined is not None:
                self.waiting = None
                yield joined
                return
            yield from self.give_up()
        if second is not None:
            weights = self.walk.weights
            norms = weights.matrix(second.kind, second.block, None, second.d_in, second.d_out).whole
            offset = None if second.bias is None else weights.vector(second.bias, second.block)[0]
            self.waiting = Waiting(second, norms, offset, False, [])
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

    def _follows(self, first: Waiting, second: Linear) -> bool:
        """Whether one map has fewer numbers than two; it and what becomes of offsets need names of their own."""
        places, (wide, narrow) = self.walk.places, (first.layer.d_in, first.layer.d_out)
        fewer = wide * second.d_out < narrow * (wide + second.d_out)
        if not fewer or not places.alone(second.kind, second.block):
            return False
        if second.bias is not None:
            return places.alone(second.bias, second.block)
        return first.offset is None or places.free(_offset_of(second), second.block)

    def _meet(self, first: Waiting, second: Linear) -> Waiting:
        """(hA + a) B + b = h (AB) + (aB + b)."""
        weights = self.walk.weights
        norms = weights.matrix(second.kind, second.block, None, second.d_in, second.d_out).whole
        parts = [] if first.offset is None else [first.offset * norms.op]
        if second.bias is not None:
            parts.append(weights.vector(second.bias, second.block)[0])
        bias = _offset_of(second) if parts else None
        layer = replace(second, d_in=first.layer.d_in, bias=bias)
        return Waiting(layer, product(INTERVAL, first.norms, norms), total(parts) if parts else None, True, [])


def _offset_of(layer: Linear) -> str:
    """The name of the offset that a map has, or gets where the map before it had one."""
    return layer.bias or f"b_{layer.kind}"


def _idle(layer: Layer, radius: Number) -> bool:
    """Whether a layer does nothing to rows of this radius."""
    rule = LAYERS.of(layer)
    return rule is not None and rule.idle is not None and rule.idle(layer, radius)


def _behind(layer: Layer, first: Waiting, walk: Larger) -> Layer | None:
    """The layer that takes in the map before it, if it is one."""
    rule = LAYERS.of(layer)
    return None if rule is None or rule.behind_map is None else rule.behind_map(layer, first, walk)
