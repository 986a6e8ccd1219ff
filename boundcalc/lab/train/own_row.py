"""What a task says of a model's input that its architecture does not: the row that is read out of bits has no data."""

from __future__ import annotations

from dataclasses import replace

from boundcalc.lab.train.tasks.base import Shape
from boundcalc.setting import Architecture, Embedding
from boundcalc.setting.products import beginning


def with_own_row(architecture: Architecture, shape: Shape) -> Architecture:
    """The architecture, told that the row it reads has no data, where that is so and of use."""
    first = architecture.stages[0]
    if shape.inputs != "bits" or not isinstance(first, Embedding):
        return architecture
    stages = (replace(first, own_row=True), *architecture.stages[1:])
    if beginning(stages) is None:
        return architecture
    return Architecture(seq_len=architecture.seq_len, classes=architecture.classes, layers=stages)
