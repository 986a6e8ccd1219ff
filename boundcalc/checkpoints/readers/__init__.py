"""Checkpoint files as tables of tensors, read one at a time and never executed."""

from boundcalc.checkpoints.readers.base import Checkpoint as Checkpoint
from boundcalc.checkpoints.readers.base import Tensor as Tensor
from boundcalc.checkpoints.readers.locate import open_checkpoint as open_checkpoint
