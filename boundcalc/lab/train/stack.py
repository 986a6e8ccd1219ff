"""Several models of one architecture, evaluated at once on the quickest exact path."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from boundcalc.base.answers import wrong
from boundcalc.lab.train._bits import bit_forward, bit_plan, reach, two_sided
from boundcalc.lab.train.model import Weights, draw_weights, forward_last_row
from boundcalc.lab.train.parameters import CLS, Init, parameters
from boundcalc.lab.train.tasks import Shape
from boundcalc.setting import Architecture

_FEW = 64
"""Examples at once on the path for sharp models, which is hungry."""


class Stack:
    """Weights of several models, the models in front, and their common forward pass."""

    def __init__(self, architecture: Architecture, shape: Shape, weights: Weights) -> None:
        self.architecture = architecture
        self.shape = shape
        self.weights: dict[str, Tensor] = dict(weights)
        self.plan = bit_plan(architecture) if shape.inputs == "bits" else None
        self._row = torch.func.vmap(lambda weights, x: forward_last_row(architecture, weights, x))

    @classmethod
    def fresh(
        cls,
        architecture: Architecture,
        shape: Shape,
        init: Init,
        generators: Sequence[torch.Generator],
        device: torch.device | str = "cpu",
    ) -> Stack:
        """Models at their start, one per generator; drawn on the CPU, alike for all devices."""
        drawn = [draw_weights(architecture, init, generator) for generator in generators]
        weights = {name: torch.stack([start[name] for start in drawn]).to(device) for name in drawn[0]}
        stack = cls(architecture, shape, weights)
        for value in stack.trained.values():
            value.requires_grad_()
        return stack

    @property
    def trained(self) -> dict[str, Tensor]:
        """The tensors that training changes."""
        table = parameters(self.architecture)
        return {name: value for name, value in self.weights.items() if table[name].trained}

    def keep(self, kept: Tensor) -> None:
        """Drop the other models."""
        for value in self.weights.values():
            value.data, value.grad = value.data[kept], None

    def some(self, which: Tensor | slice | int) -> dict[str, Tensor]:
        """The weights of some models, or of one."""
        return {name: value[which] for name, value in self.weights.items()}

    def inputs(self, x: Tensor) -> Tensor:
        """Examples (models, n, ...) as the path reads them."""
        dtype = self.weights["readout"].dtype
        if self.shape.inputs == "bits":
            return two_sided(x, dtype) if self.plan else with_read_row(x)
        return x.long() if self.shape.inputs == "tokens" else x.to(dtype)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Outputs (models, n, classes) for inputs made by `inputs`."""
        if self.plan is None:
            return self._row(self.weights, inputs)
        out, spread = bit_forward(self.plan, self.weights, inputs)
        too_sharp = ~(spread <= reach(out.dtype))
        if not bool(too_sharp.any()):
            return out
        # The sharp models on the plain path, the others on their own: one's overflow must not reach another.
        calm, sharp = ((too_sharp == sign).nonzero().flatten() for sign in (False, True))
        parts = [bit_forward(self.plan, self.some(calm), inputs[calm])[0]] if len(calm) else []
        tokens = with_read_row(inputs[sharp][..., 1, :])
        parts.append(torch.cat([self._row(self.some(sharp), few) for few in tokens.split(_FEW, 1)], 1))
        return torch.cat(parts)[torch.cat([calm, sharp]).argsort()]


def with_read_row(bits: Tensor) -> Tensor:
    """Bits (..., T) as tokens (..., T + 1), the row that is read out before them."""
    return torch.cat([bits.new_full((*bits.shape[:-1], 1), CLS), bits], -1).long()


def losses(shape: Shape, outputs: Tensor, y: Tensor) -> Tensor:
    """The training loss of every example: logistic, cross-entropy or squared."""
    if shape.answer == "classes":
        return functional.cross_entropy(outputs.flatten(0, 1), y.flatten().long(), reduction="none").view(y.shape)
    scores = outputs.squeeze(-1)
    if shape.answer == "binary":
        return functional.binary_cross_entropy_with_logits(scores, y.to(scores.dtype), reduction="none")
    return (scores - y.to(scores.dtype)).square()


def wrongs(shape: Shape, outputs: Tensor, y: Tensor) -> Tensor:
    """The loss in [0, 1] that is reported: misclassification, or the squared error cut at 1."""
    if shape.answer == "real":
        return losses(shape, outputs, y).clamp_max(1.0)
    return wrong(margins(shape, outputs, y)).to(outputs.dtype)


def margins(shape: Shape, outputs: Tensor, y: Tensor) -> Tensor:
    """How far the right answer is ahead (of the other bit, or of the best other class); NaN counts as behind."""
    if shape.answer == "binary":
        ahead = outputs.squeeze(-1) * (2 * y.to(outputs.dtype) - 1)
    else:
        right = y.long().unsqueeze(-1)
        own = outputs.gather(-1, right).squeeze(-1)
        ahead = own - outputs.scatter(-1, right, -torch.inf).amax(-1)
    return ahead.nan_to_num(nan=-torch.inf)
