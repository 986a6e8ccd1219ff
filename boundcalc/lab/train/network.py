"""A model of this package as a function of its weights: what certificates of written-down weights are counted with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.lab.train.device import threads, versions
from boundcalc.lab.train.parameters import Init, parameters
from boundcalc.lab.train.stack import Stack, margins
from boundcalc.lab.train.tasks import Shape
from boundcalc.lab.train.trial import Trial
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.reference import Law, Reference
from boundcalc.setting import Architecture

CHUNK = 1024
"""Examples scored at once."""


@dataclass(frozen=True, eq=False)
class ModelNetwork:
    """Scores in float64, whatever the weights were trained in.

    Attributes:
        architecture: of the model.
        shape: of its task.
    """

    architecture: Architecture
    shape: Shape

    def __post_init__(self) -> None:
        if self.shape.answer == "real":
            raise InvalidSetting("certificates of predictors need answers that are right or wrong, not real numbers")

    @property
    def checkpoint(self) -> None:
        """None: updates are relative to weights that a seed draws."""

    @classmethod
    def of(cls, trial: Trial) -> ModelNetwork:
        """The model of a trial."""
        return cls(trial.architecture, trial.task.shape)

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The network, as JSON."""
        return {"kind": "network", "architecture": self.architecture.to_json(), "shape": asdict(self.shape)}

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions and threads."""
        return {**versions(), "threads": threads()}

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any]) -> ModelNetwork:
        """The network of a certificate."""
        try:
            return cls(Architecture.from_json(recipe["architecture"]), Shape(**recipe["shape"]))
        except (KeyError, TypeError) as error:
            raise CertificateError(f"the recipe of the certificate makes no network: {error}") from None

    def reference(self, init: Init) -> Reference:
        """Weights as these models start with, drawn so that every machine gets the same bits."""
        table = parameters(self.architecture, init)
        return Reference({name: Law(p.shape, p.law, float(p.scale)) for name, p in table.items()})

    def stack(self, weights: Mapping[str, Array], dtype: torch.dtype = torch.float64) -> Stack:
        """One model."""
        tensors = {name: torch.as_tensor(value, dtype=dtype).unsqueeze(0) for name, value in weights.items()}
        return Stack(self.architecture, self.shape, tensors)

    @torch.no_grad()
    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        """How far the right answer is ahead."""
        stack = self.stack(weights)
        x = torch.from_numpy(np.ascontiguousarray(examples.x)).unsqueeze(0)
        y = torch.from_numpy(np.ascontiguousarray(examples.y)).unsqueeze(0)
        parts = zip(x.split(CHUNK, 1), y.split(CHUNK, 1), strict=True)
        found = [margins(self.shape, stack(stack.inputs(part)), answers)[0] for part, answers in parts]
        return torch.cat(found).numpy()
