"""A model of this package as a function of its weights: what certificates of written-down weights are counted with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.lab.train.parameters import Init, parameters
from boundcalc.lab.train.stack import Stack, losses, margins, wrongs
from boundcalc.lab.train.tasks import Shape
from boundcalc.lab.train.trainer import versions
from boundcalc.lab.train.trial import Trial
from boundcalc.predictors.data import Array, Data
from boundcalc.predictors.reference import Law, Reference
from boundcalc.setting import Architecture

CHUNK = 1024
"""Examples scored at once."""


def refuse_real(shape: Shape) -> None:
    """Refuse a task whose answers are real numbers."""
    if shape.answer == "real":
        raise InvalidSetting("certificates of predictors need answers that are right or wrong, not real numbers")


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
        refuse_real(self.shape)

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
        return {**versions(), "threads": torch.get_num_threads()}

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
        laws: dict[str, Any] = {name: p.law for name, p in table.items()}  # a "sphere" is refused
        return Reference({name: Law(p.shape, laws[name], float(p.scale)) for name, p in table.items()})

    @torch.no_grad()
    def scores(self, weights: Mapping[str, Array], examples: Data) -> Array:
        """How far the right answer is ahead."""
        doubles = {name: torch.as_tensor(value, dtype=torch.float64).unsqueeze(0) for name, value in weights.items()}
        stack = Stack(self.architecture, self.shape, doubles)
        x, y = (torch.from_numpy(np.ascontiguousarray(array)).unsqueeze(0) for array in (examples.x, examples.y))
        parts = zip(x.split(CHUNK, 1), y.split(CHUNK, 1), strict=True)
        return torch.cat([margins(self.shape, stack(stack.inputs(a)), b)[0] for a, b in parts]).numpy()


class Candidates:
    """Losses and errors of many weights of one model at once, on the same examples: for searches.

    Attributes:
        network: whose weights.
        size: of the examples.
        generator: of all that a search draws.
    """

    def __init__(self, network: ModelNetwork, data: Data, seed: int) -> None:
        self.network = network
        self.x, self.y = (torch.from_numpy(np.ascontiguousarray(array)) for array in (data.x, data.y))
        self.size = len(data)
        self.generator = torch.Generator().manual_seed(seed)

    def _outputs(self, weights: Mapping[str, Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs of every candidate, and the answers as often."""
        stack, count = Stack(self.network.architecture, self.network.shape, weights), len(weights["readout"])
        return stack(stack.inputs(x.expand(count, *x.shape))), y.expand(count, -1)

    def some(self, size: int) -> Tensor:
        """Places of examples, drawn anew."""
        return torch.randint(self.size, (min(self.size, size),), generator=self.generator)

    def loss(self, weights: Mapping[str, Tensor], places: Tensor, sharpness: float = 1.0) -> Tensor:
        """Mean loss of every candidate on some examples, its scores multiplied by the sharpness."""
        outputs, answers = self._outputs(weights, self.x[places], self.y[places])
        return losses(self.network.shape, sharpness * outputs, answers).mean(1)

    @torch.no_grad()
    def errors(self, weights: Mapping[str, Tensor], places: Tensor) -> Tensor:
        """Wrong answers of every candidate on some examples."""
        return wrongs(self.network.shape, *self._outputs(weights, self.x[places], self.y[places])).sum(1)
