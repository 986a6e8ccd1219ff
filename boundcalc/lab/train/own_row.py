"""What a task says of a model's input that its architecture does not: the row that is read out of bits has no data."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.lab.train.tasks.base import Shape
from boundcalc.layers.embedding import embeddings
from boundcalc.layers.products import beginning
from boundcalc.setting import Architecture

CLS = 2
"""Token of the row that is read out of a sequence of bits; 0 and 1 are the bits."""


def with_own_row(architecture: Architecture, shape: Shape) -> Architecture:
    """The architecture with the token that its read row always shows, where there is one and of use."""
    first = next(embeddings(architecture.stages[:1]), None)
    if shape.inputs != "bits" or first is None or first.vocabulary <= CLS:
        return architecture
    stages = (replace(first, own_row=CLS), *architecture.stages[1:])
    if beginning(stages) is None:
        return architecture
    return (
        replace(architecture, layers=stages) if architecture.layers is not None else replace(architecture, own_row=CLS)
    )
