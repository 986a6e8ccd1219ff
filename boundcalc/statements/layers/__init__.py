"""L: what proofs know of every layer, one file for each class of layers, under its label.

A rule reads a layer, the budgets of its weights and the radius of its input, and says how far its output reaches, how much
it stretches errors of its input, and which maps must be covered (`Slot`s). The metric is the largest l2 norm of a row.
Every rule is one function, generic over the number system. Nothing else knows a class: what walks through a network asks
here, and the library's own rules are read when a layer of theirs is met.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from importlib import import_module

from boundcalc.base.errors import InvalidSetting, Refusal, Unsupported
from boundcalc.base.registry import Registry
from boundcalc.base.system import Number, NumberSystem
from boundcalc.setting.layer import Layer, flat
from boundcalc.setting.named import CLASSES, is_ours, register_layer, remove_layer
from boundcalc.statements.slots import Context, Facts, LayerRule
from boundcalc.statements.targets import MatrixNorms
from boundcalc.statements.weights import Given


class _Rules(Registry[LayerRule]):
    """Rules by the labels of their classes; those of the library are there from the start, and read when they are asked for."""

    @staticmethod
    def _name(entry: LayerRule) -> str:
        return entry.layer.label

    def __missing__(self, label: str) -> LayerRule:
        if not is_ours(label):
            raise KeyError(label)
        rule: LayerRule = import_module(f"{__name__}.{label}").RULE
        return self.ours(rule)

    def __contains__(self, label: object) -> bool:
        return super().__contains__(label) or (isinstance(label, str) and is_ours(label))

    def of(self, layer: Layer) -> LayerRule | None:
        """The rule of a layer's class; none of a class that only has the label of another."""
        try:
            rule = self[layer.label]
        except KeyError:
            return None
        return rule if rule.layer is type(layer) else None

    def __iter__(self) -> Iterator[str]:
        return iter([label for label in CLASSES if label in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        return KeysView(self)

    def values(self) -> ValuesView[LayerRule]:  # type: ignore[override]
        return ValuesView(self)

    def items(self) -> ItemsView[str, LayerRule]:  # type: ignore[override]
        return ItemsView(self)

    def register(self, entry: LayerRule) -> LayerRule:
        """Enrol the rule of a further class of layers, which files can name from then on.

        Args:
            entry: the rule; one class has one.

        Returns:
            The rule.

        Raises:
            InvalidSetting: where the label is another's already, or the rule has a name already.
        """
        super().register(entry)
        try:
            register_layer(entry.layer)
        except InvalidSetting:
            super().remove(self._name(entry))
            raise
        return entry

    def remove(self, name: str) -> None:
        """Take out a rule that was registered, and its class, if it is there."""
        if name in self._added:
            remove_layer(self[name].layer)
        super().remove(name)


LAYERS = _Rules("layer")


def facts(layer: Layer, at: Context) -> Facts:
    """The rule of a primitive layer, applied (residuals are composition's business)."""
    rule = LAYERS.of(layer)
    if rule is None:
        raise Unsupported(
            Refusal(
                f"a bound for layer {layer.label!r}",
                f"no statement about {type(layer).__name__}",
                "its radius, Lipschitz factor and what must be covered",
                "Say them with LAYERS.register (boundcalc.statements.layers).",
            )
        )
    return rule.facts(layer, at)


def asked(
    ns: NumberSystem,
    layer: Layer,
    radius: Number,
    given: Mapping[str, MatrixNorms | Number] | None = None,
    rows: int = 1,
    seq_len: int = 1,
) -> Facts:
    """The facts of one layer by itself, whose norms are given as numbers, for statements about it."""
    return facts(layer, Context(Given(ns, given or {}), radius, rows, seq_len))


def unknown_to_noise(layers: Iterable[Layer]) -> str | None:
    """G11: the label of a layer, of those and of what is inside them, that it was not proved for; or None."""
    for layer in flat(layers):
        rule = LAYERS.of(layer)
        if rule is None or rule.noise is None or not rule.noise(layer):
            return repr(layer.label)
    return None
