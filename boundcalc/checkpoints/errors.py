"""What goes wrong with a checkpoint."""

from __future__ import annotations

from boundcalc.base.errors import BoundcalcError, InvalidSetting


class CheckpointError(BoundcalcError):
    """A checkpoint that cannot be read, is not what it says it is, or is not of a known family."""


class NoFunction(CheckpointError):
    """A module whose answers depend on more than the example: no certificate is about it."""


class NoReadOut(InvalidSetting):
    """A model that ends before its read-out: what it answers are rows, and no labels can be counted against them."""


class NotRun(CheckpointError):
    """A module that cannot be loaded, or does not take the inputs: its description could not be compared."""
