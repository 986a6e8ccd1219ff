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
from boundcalc.checkpoints.families.names import stripped
from boundcalc.checkpoints.readers import open_checkpoint
from boundcalc.checkpoints.tensors import Tensor, to_float
from boundcalc.lab.outputs import Examples, Outputs
from boundcalc.predictors.data import Array, digest_of_arrays
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
        tensors = {name: tensor for name, tensor in checkpoint.tensors.items() if tensor.is_float and tensor.size}
        short, one = stripped(list(checkpoint.tensors)), _one_parameter(outputs.live)
        same: dict[str, str] = {}
        first: dict[str, str] = {}
        for name, tensor in tensors.items():
            parameter = one.get(name, one.get(short[name]))
            if parameter is None and (name in checkpoint.buffers if model is None else name in model.ignored):
                continue
            keys = [key for key in (parameter and f"parameter {parameter}", tensor.storage) if key]
            same[name] = next((first[key] for key in keys if key in first), name)
            first |= dict.fromkeys(keys, same[name])
        trained = {name: _numbers(tensors[name]) for name in dict.fromkeys(same.values())}
        if outputs.audit is None:  # vectors that are no offsets
            gains = {name for name, value in trained.items() if value.ndim == 1 and name.endswith("weight")}
        else:
            lines = outputs.audit.account.lines
            gains = {line.tensor for line in lines if line.role.partition("[")[0].endswith(".gain")}
        before, what = _before(trained, reference, make, seed)
        return cls(outputs, trained, same, frozenset(gains & set(trained)), before, what)

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
        plain = {
            name: Law(value.shape, "constant", 1.0 if name in self.gains else 0.0)
            for name, value in self.trained.items()
        }
        codes = [Code(Reference(plain), _EXPONENT)]
        if self.checkpoint is not None:
            codes.append(Code(Reference.of_checkpoint(self.checkpoint), _EXPONENT))
        return codes

    def scores(self, weights: Mapping[str, Array], examples: Any) -> Array:
        """How far the right answer is ahead, with these weights in the place of its own."""
        checkpoint = self.outputs.checkpoint
        tensors = {
            name: replace(tensor, dtype="float64", fetch=partial(weights[self.same[name]].reshape, tensor.shape))
            if name in self.same
            else tensor
            for name, tensor in checkpoint.tensors.items()
        }
        return self.outputs.with_tensors(replace(checkpoint, tensors=tensors)).margins(Examples.of(examples)).values


def _numbers(tensor: Tensor) -> Array:
    """In double precision, one dimension at least."""
    return np.array(to_float(tensor.fetch(), tensor.dtype), np.float64).reshape(tensor.shape or (1,))


def _one_parameter(module: Any) -> dict[str, str]:
    """The names of a module's parameters; tied ones have one."""
    names: dict[int, str] = {}
    if module is None:
        return {}
    return {name: names.setdefault(id(value), name) for name, value in module.named_parameters(remove_duplicate=False)}


def _before(
    trained: Mapping[str, Array], reference: Any, make: Callable[[], Any] | None, seed: int
) -> tuple[Mapping[str, Array] | None, str]:
    """Weights that were there before the data, and what they are."""
    if reference is None and make is None:
        return None, ""
    if make is None or reference is not None:
        start = open_checkpoint(reference)
        what = f"the checkpoint {Path(start.where).name}"
    else:
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            start, what = open_checkpoint(make()), f"a fresh module of torch's seed {seed}"
    names = {short: name for name, short in stripped(list(start.tensors)).items()}
    mine = stripped(list(trained))
    arrays: dict[str, Array] = {}
    for name, value in trained.items():
        tensor = start.tensors.get(name) or start.tensors.get(names.get(mine[name], ""))
        if tensor is None or (tensor.shape or (1,)) != value.shape:
            raise InvalidSetting(f"{what} has no {name} of shape {value.shape}: nothing can be said relative to it")
        arrays[name] = _numbers(tensor)
    if all(np.array_equal(arrays[name], value) for name, value in trained.items()):
        raise InvalidSetting(f"{what} is the trained model itself: it was not there before the data")
    return arrays, what
