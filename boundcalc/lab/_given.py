"""A user's own model as a function of its weights: what certificates of written-down weights are counted with.

What may be written down are its parameters. Everything else (code, masks and other buffers that are no parameters of
the bounded model) counts as fixed before the data: it is on record, by name and digest.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.npz import digest_of_arrays
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.checkpoints.tensors import Tensor, to_float
from boundcalc.lab._outputs import Outputs
from boundcalc.predictors.data import Array
from boundcalc.predictors.occam import Code
from boundcalc.predictors.reference import Law, Reference

_EXPONENT = -4
"""Of two: the step of updates that costs least."""


@dataclass(frozen=True, eq=False)
class GivenNetwork:
    """A model that was handed over.

    Attributes:
        outputs: what answers.
        trained: the tensors that may be written down, as they are, in double precision.
        same: which of these each tensor of the checkpoint is; a tied one is the other's.
        gains: those which normalisations multiply by.
        checkpoint: weights fixed before the data that updates may be relative to.
        from_what: what these are.
    """

    outputs: Outputs
    trained: Mapping[str, Array]
    same: Mapping[str, str]
    gains: frozenset[str] = frozenset()
    checkpoint: Mapping[str, Array] | None = None
    from_what: str = ""

    @classmethod
    def of(
        cls, outputs: Outputs, reference: Any = None, make: Callable[[], Any] | None = None, seed: int = 0
    ) -> GivenNetwork:
        """The network of a model that was read; updates are relative to a reference, or a fresh module of a seed."""
        checkpoint, model = outputs.checkpoint, outputs.model
        fixed = checkpoint.buffers if model is None else frozenset(model.ignored)
        if model is not None and outputs.live is not None:  # whose parameters all answer, bounded or not
            fixed &= checkpoint.buffers
        same, first = dict[str, str](), dict[str, str]()
        for name, tensor in checkpoint.tensors.items():
            if tensor.is_float and tensor.size and name not in fixed:
                same[name] = first.setdefault(tensor.storage or name, name)
        trained = {name: _numbers(checkpoint.tensors[name]) for name in dict.fromkeys(same.values())}
        if outputs.audit is None:  # vectors that are no offsets
            gains = {name for name, value in trained.items() if value.ndim == 1 and name.endswith("weight")}
        else:
            lines = outputs.audit.account.lines
            gains = {line.tensor for line in lines if line.role.partition("[")[0].endswith(".gain")}
        start, what = None, ""
        if reference is not None:
            start = open_checkpoint(reference)
            what = f"the checkpoint {Path(start.where).name}"
        elif make is not None:
            import torch

            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                start, what = open_checkpoint(make()), f"a fresh module of torch's seed {seed}"
        before = None if start is None else _alike(start.tensors, trained, what)
        return cls(outputs, trained, same, frozenset(gains), before, what)

    @property
    def kept(self) -> dict[str, Any]:
        """The tensors that are not written down and stay as they are: by name, and by their digest."""
        rest = {name: t.fetch() for name, t in self.outputs.checkpoint.tensors.items() if name not in self.same}
        return {"names": sorted(rest), "sha256": digest_of_arrays(rest)}

    @property
    def recipe(self) -> Mapping[str, Any]:
        """What it is called, what answers, and what is fixed besides the weights; its code is its owner's to keep."""
        return {"kind": "given", **self.outputs.recipe, "kept": self.kept, "reference": self.from_what}

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions."""
        from boundcalc import __version__

        versions = {"boundcalc": __version__, "numpy": np.__version__, "python": platform.python_version()}
        if self.outputs.live is not None:
            import torch

            versions["torch"] = torch.__version__
        return versions

    @property
    def codes(self) -> list[Code]:
        """Relative to nothing (gains of normalisations to 1), and to weights fixed before the data, if any."""
        laws = {name: Law(value.shape, "constant", float(name in self.gains)) for name, value in self.trained.items()}
        references = [Reference(laws)]
        references += [] if self.checkpoint is None else [Reference.of_checkpoint(self.checkpoint)]
        return [Code(reference, _EXPONENT) for reference in references]

    def scores(self, weights: Mapping[str, Array], examples: Any) -> Array:
        """How far the right answer is ahead, with these weights in the place of its own."""
        tensors = dict(self.outputs.checkpoint.tensors)
        for name, own in self.same.items():
            fetch = partial(weights[own].reshape, tensors[name].shape)
            tensors[name] = replace(tensors[name], dtype="float64", fetch=fetch)
        changed = self.outputs.with_tensors(replace(self.outputs.checkpoint, tensors=tensors))
        return changed.margins(examples, again=False).values


def _numbers(tensor: Tensor) -> Array:
    """In double precision, one dimension at least."""
    return np.array(to_float(tensor.fetch(), tensor.dtype), np.float64).reshape(tensor.shape or (1,))


def _alike(tensors: Mapping[str, Tensor], trained: Mapping[str, Array], what: str) -> dict[str, Array]:
    """The numbers that each trained tensor had in weights from before the data, perhaps under a longer name."""
    names = {short: name for name, short in stripped(list(tensors)).items()}
    mine, arrays = stripped(list(trained)), dict[str, Array]()
    for name, value in trained.items():
        tensor = tensors.get(name) or tensors.get(names.get(mine[name], ""))
        if tensor is None or (tensor.shape or (1,)) != value.shape:
            raise InvalidSetting(f"{what} has no {name} of shape {value.shape}: nothing can be said relative to it")
        arrays[name] = _numbers(tensor)
    if all(np.array_equal(arrays[name], value) for name, value in trained.items()):
        raise InvalidSetting(f"{what} is the trained model itself: it was not there before the data")
    return arrays
