"""Checkpoint files as tables of tensors, read one at a time and never executed."""

from boundcalc.weights.readers.base import Checkpoint as Checkpoint
from boundcalc.weights.readers.base import Tensor as Tensor
from boundcalc.weights.readers.locate import open_checkpoint as open_checkpoint
