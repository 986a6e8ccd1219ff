"""A6 behind a layer: what takes in the linear map after it."""

from __future__ import annotations

from collections.abc import Sequence

from boundcalc.base.intervals import INTERVAL
from boundcalc.setting import Budget, Layer, Setting
from boundcalc.statements.layers import LAYERS
from boundcalc.statements.meet import Places
from boundcalc.statements.products import changed
from boundcalc.statements.weights import Weights


def out_of_heads(setting: Setting) -> Setting | None:
    """The setting with output projections taken into the value maps; None where that makes no fewer numbers."""
    walk = Outward(setting)
    layers = walk.through(setting.architecture.stages)
    return changed(setting, layers, walk.made) if walk.made else None


class Outward:
    """A network with its branches; the budgets that are made on the way."""

    def __init__(self, setting: Setting) -> None:
        self.made: dict[str, Budget] = {}
        self.weights = Weights(INTERVAL, setting.norms)
        self.places = Places(setting.architecture)

    def through(self, layers: Sequence[Layer]) -> tuple[Layer, ...]:
        """Layers that follow each other in the larger class."""
        found: list[Layer] = []
        for layer in layers:
            if layer.branches:
                found.append(layer.over(self.through))
                continue
            joined = self._joined(found[-1], layer) if found else None
            if joined is None:
                found.append(layer)
            else:
                found[-1] = joined
        return tuple(found)

    def _joined(self, before: Layer, layer: Layer) -> Layer | None:
        rule, output = LAYERS.of(before), layer.as_map()
        if rule is None or rule.before_map is None or output is None:
            return None
        return rule.before_map(before, output, self)
