"""AdamW for a stack of trials (torch's own is elementwise, so one call serves all), with warm-up and norm balls."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from boundcalc.lab.train.trial import Optimisation


class StackedOptimiser(torch.optim.AdamW):
    """AdamW on tensors whose first dimension counts trials; weights stay in their norm balls."""

    def __init__(self, weights: Mapping[str, Tensor], rule: Optimisation) -> None:
        super().__init__(weights.values(), rule.lr, weight_decay=rule.weight_decay, fused=True)
        self.weights, self.rule = dict(weights), rule
        project_on_balls(self.weights, rule.balls)

    def keep(self, kept: Tensor) -> None:
        """Forget the other trials; `Stack.keep` drops their weights."""
        for state in self.state.values():
            state.update({key: value[kept] for key, value in state.items() if value.dim()})

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of every trial by the gradients that are there."""
        if self.rule.warmup:
            steps = next((int(state["step"]) for state in self.state.values()), 0)
            if steps < self.rule.warmup:
                self.param_groups[0]["lr"] = self.rule.lr * min(1.0, (steps + 1) / self.rule.warmup)
        super().step(closure)
        project_on_balls(self.weights, self.rule.balls)


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
