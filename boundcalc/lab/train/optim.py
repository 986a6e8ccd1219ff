"""AdamW for a stack of trials (torch's own is elementwise, so one call serves all), with warm-up and norm balls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from boundcalc.lab.train.trial import Optimisation


class StackedOptimiser:
    """Torch's AdamW on tensors whose first dimension counts trials; weights stay in their norm balls."""

    def __init__(self, weights: Mapping[str, Tensor], rule: Optimisation) -> None:
        self.weights = dict(weights)
        self.rule = rule
        self.steps = 0
        self.inner = torch.optim.AdamW(self.weights.values(), rule.lr, weight_decay=rule.weight_decay, fused=True)

    def keep(self, kept: Tensor, weights: Mapping[str, Tensor]) -> StackedOptimiser:
        """The optimiser of these trials alone, which go on where they were."""
        others = StackedOptimiser(weights, self.rule)
        others.steps = self.steps
        for name, weight in self.weights.items():
            state = self.inner.state[weight].items()
            others.inner.state[others.weights[name]] = {
                key: value[kept] if value.dim() else value for key, value in state
            }
        return others

    def step(self, loss: Tensor) -> None:
        """One update of every trial by the gradient of a loss."""
        self.inner.zero_grad()
        loss.backward()
        self.steps += 1
        for group in self.inner.param_groups:
            group["lr"] = self.rule.lr * min(1.0, self.steps / max(1, self.rule.warmup))
        self.inner.step()
        self.project()

    def set_rate(self, lr: float) -> None:
        """Go on at this learning rate."""
        self.rule = replace(self.rule, lr=lr, warmup=0)

    def project(self) -> None:
        """Put weights that have left their norm ball back."""
        if self.rule.balls:
            project_on_balls(self.weights, self.rule.balls)

    def state_dict(self) -> dict[str, Any]:
        """The state, as tensors and numbers."""
        return {"inner": self.inner.state_dict(), "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from such a state."""
        self.inner.load_state_dict(state["inner"])
        self.steps = state["steps"]


@torch.no_grad()
def project_on_balls(weights: Mapping[str, Tensor], balls: Mapping[str, tuple[str, float]]) -> None:
    """Replace each matrix (of each trial and head) by the nearest one, in Frobenius norm, in its ball."""
    for name, value in weights.items():
        ball = balls.get(name) or balls.get(name.partition("[")[0])
        if ball is not None:
            value.copy_(nearest(value, *ball))


def nearest(matrix: Tensor, norm: str, radius: float) -> Tensor:
    """The projection of matrices (..., rows, columns), or vectors (..., 1 dimension beyond the trials), on a ball."""
    if matrix.dim() < 3 or norm == "F":
        dims = (-1,) if matrix.dim() < 3 else (-2, -1)
        size = matrix.square().sum(dims, keepdim=True).sqrt()
        return matrix * (radius / size.clamp_min(radius))
    if norm == "op":
        u, s, v = torch.linalg.svd(matrix, full_matrices=False)
        return torch.where((s[..., :1] > radius).unsqueeze(-1), (u * s.clamp_max(radius).unsqueeze(-2)) @ v, matrix)
    columns = matrix.square().sum(-2).sqrt()
    target = _nearest_in_simplex(columns, radius)
    return matrix * (target / columns.clamp_min(1e-30)).unsqueeze(-2)


def _nearest_in_simplex(sizes: Tensor, radius: float) -> Tensor:
    """Projection of non-negative vectors on {x >= 0, sum x <= radius}: subtract one threshold from all."""
    ordered = sizes.sort(dim=-1, descending=True).values
    excess = ordered.cumsum(-1) - radius
    count = torch.arange(1, sizes.shape[-1] + 1, device=sizes.device, dtype=sizes.dtype)
    active = (ordered - excess / count > 0).sum(-1, keepdim=True).clamp_min(1)
    threshold = excess.gather(-1, active - 1) / active
    inside = sizes.sum(-1, keepdim=True) <= radius
    return torch.where(inside, sizes, (sizes - threshold).clamp_min(0.0))
