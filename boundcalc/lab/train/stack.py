"""Several models of one architecture, evaluated at once on the quickest exact path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from boundcalc.base.answers import wrong
from boundcalc.lab.train.bits import BitPlan, bit_forward, bit_plan, reach, two_sided
from boundcalc.lab.train.layers import Weights
from boundcalc.lab.train.model import draw, forward_last_row
from boundcalc.lab.train.parameters import CLS, Init, parameters
from boundcalc.lab.train.tasks import Shape
from boundcalc.setting import Architecture

_FEW = 64
"""Examples at once on the path for sharp models, which is hungry."""


class Stack:
    """Weights of several models, the models in front, and their common forward pass."""

    def __init__(
        self,
        architecture: Architecture,
        shape: Shape,
        weights: Weights,
        *,
        path: str = "",
    ) -> None:
        self.architecture = architecture
        self.shape = shape
        self.weights: dict[str, Tensor] = dict(weights)
        self.plan: BitPlan | None = bit_plan(architecture) if shape.inputs == "bits" else None
        self.path = path or ("row" if self.plan is None else "bits")
        self._row = torch.func.vmap(lambda weights, x: forward_last_row(architecture, weights, x))
        self.sharp = 0

    @classmethod
    def fresh(
        cls,
        architecture: Architecture,
        shape: Shape,
        init: Init,
        generators: Sequence[torch.Generator],
    ) -> Stack:
        """Models at their start, one per generator."""
        table = parameters(architecture, init)
        drawn = [{name: draw(p, generator) for name, p in table.items()} for generator in generators]
        return cls(architecture, shape, {name: torch.stack([start[name] for start in drawn]) for name in table})

    def to(self, device: torch.device | str) -> Stack:
        """The same models on another device."""
        self.weights = {name: value.to(device) for name, value in self.weights.items()}
        return self

    @property
    def trained(self) -> dict[str, Tensor]:
        """The tensors that training changes."""
        table = parameters(self.architecture)
        return {name: value for name, value in self.weights.items() if table[name].trained}

    def __len__(self) -> int:
        return len(next(iter(self.weights.values())))

    def inputs(self, x: Tensor) -> Tensor:
        """Examples (models, n, ...) as the path reads them."""
        dtype = self.weights["readout"].dtype
        if self.path == "bits":
            return two_sided(x, dtype)
        if self.shape.inputs == "bits":
            return with_read_row(x)
        return x.long() if self.shape.inputs == "tokens" else x.to(dtype)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Outputs (models, n, classes) for inputs made by `inputs`."""
        if self.plan is None or self.path != "bits":
            return self._row(self.weights, inputs)
        out, spread = bit_forward(self.plan, self.weights, inputs)
        too_sharp = ~(spread <= reach(out.dtype))
        if not bool(too_sharp.any()):
            return out
        self.sharp += 1
        return self._split(too_sharp, inputs)

    def _split(self, too_sharp: Tensor, sides: Tensor) -> Tensor:
        """The sharp models on the plain path, the others on their own: one's overflow must not reach another."""
        assert self.plan is not None  # noqa: S101 - only called on path "bits"
        parts: list[Tensor] = []
        calm, sharp = ((too_sharp == sign).nonzero().flatten() for sign in (False, True))
        if len(calm):
            parts.append(bit_forward(self.plan, self._some(calm), sides[calm])[0])
        tokens = with_read_row(sides[sharp][..., 1, :])
        parts.append(torch.cat([self._row(self._some(sharp), few) for few in tokens.split(_FEW, 1)], 1))
        return torch.cat(parts)[torch.cat([calm, sharp]).argsort()]

    def _some(self, which: Tensor) -> dict[str, Tensor]:
        """The weights of some models."""
        return {name: value[which] for name, value in self.weights.items()}

    def state_dict(self) -> dict[str, Tensor]:
        """The weights, as they are saved."""
        return {name: value.detach() for name, value in self.weights.items()}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over saved weights."""
        for name, value in state.items():
            self.weights[name].copy_(value)

    def keep(self, kept: Tensor) -> None:
        """Drop the other models."""
        self.weights = {name: value.detach()[kept] for name, value in self.weights.items()}
        self.require_grad()

    def require_grad(self) -> None:
        """Make the trained tensors leaves that collect gradients."""
        for value in self.trained.values():
            value.requires_grad_()

    def one(self, index: int) -> dict[str, Tensor]:
        """The weights of one model, copied to the CPU."""
        return {name: value[index].detach().clone().cpu() for name, value in self.weights.items()}


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
