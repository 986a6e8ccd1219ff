"""Layers by the names that files use: each class enrols itself under its label, the library's own and anybody's alike."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, TypeVar

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import read, write
from boundcalc.setting.layer import Layer

CLASSES: dict[str, type[Layer]] = {}
"""Every class of layers that a file can name, by its label."""
Layer.KINDS = CLASSES
_OURS: set[str] = set()
_AnyLayer = TypeVar("_AnyLayer", bound=Layer)


def register_layer(cls: type[_AnyLayer]) -> type[_AnyLayer]:
    """Make a class of layers known to JSON files by its label."""
    if not is_dataclass(cls) or CLASSES.get(cls.label, cls) is not cls:
        raise InvalidSetting(
            f"a layer is a frozen dataclass with a label of its own, got {cls.__name__} ({cls.label!r})"
        )
    CLASSES[cls.label] = cls
    return cls


def ours(cls: type[_AnyLayer]) -> type[_AnyLayer]:
    """One of the library's own, which stays."""
    _OURS.add(cls.label)
    return register_layer(cls)


def is_ours(label: str) -> bool:
    """Whether a label is that of one of the library's own classes."""
    return label in _OURS


def remove_layer(cls: type[Layer]) -> None:
    """Take out a class that was registered, if it is there."""
    if CLASSES.get(cls.label) is cls and not is_ours(cls.label):
        del CLASSES[cls.label]


def layer_to_json(layer: Layer) -> dict[str, Any]:
    """The JSON object of a layer."""
    return write(layer)


def layer_from_json(data: object) -> Layer:
    """The layer of a JSON object."""
    return read(Layer, data, "a layer")
