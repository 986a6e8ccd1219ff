"""Layers as JSON objects, by the labels of their classes."""

from __future__ import annotations

from typing import Any

from boundcalc.base.schema import read, write
from boundcalc.layers import Layer


def layer_to_json(layer: Layer) -> dict[str, Any]:
    """The JSON object of a layer."""
    return write(layer)


def layer_from_json(data: object) -> Layer:
    """The layer of a JSON object."""
    return read(Layer, data, "a layer")
