"""Optimisers of a stack of trials: torch's own are elementwise, so one call serves all; clipping, norm balls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from boundcalc.lab.train.trial import Optimisation

_KINDS: Mapping[str, Any] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}


class StackedOptimiser:
    """Torch's optimiser of tensors whose first dimension counts trials, with warm-up, clipping and norm balls."""

    def __init__(self, weights: Mapping[str, Tensor], rule: Optimisation) -> None:
        self.weights = dict(weights)
        self.rule = rule
        self.steps = 0
        own = {"momentum": rule.momentum} if rule.optimiser == "sgd" else {"fused": True}
        self.inner = _KINDS[rule.optimiser](self.weights.values(), rule.lr, weight_decay=rule.weight_decay, **own)

    def keep(self, kept: Tensor, weights: Mapping[str, Tensor]) -> StackedOptimiser:
        """The optimiser of these trials alone, which go on where they were."""
        others = StackedOptimiser(weights, self.rule)
        others.steps = self.steps
        for name, weight in self.weights.items():
            state = self.inner.state[weight].items()
            others.inner.state[others.weights[name]] = {
                key: value[kept] if isinstance(value, Tensor) and value.dim() else value for key, value in state
            }
        return others

    def step(self, loss: Tensor) -> None:
        """One update of every trial by the gradient of a loss."""
        rule = self.rule
        self.inner.zero_grad()
        loss.backward()
        if rule.clip:
            _clip_norms([weight.grad for weight in self.weights.values() if weight.grad is not None], rule.clip)
        for group in self.inner.param_groups:
            group["lr"] = rule.lr * min(1.0, (self.steps + 1) / rule.warmup) if rule.warmup else rule.lr
        self.inner.step()
        self.steps += 1
        self.project()

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


def _clip_norms(grads: Sequence[Tensor], most: float) -> None:
    """Scale each trial's gradients so that their joint norm is at most the limit."""
    total = torch.stack([grad.flatten(1).square().sum(1) for grad in grads]).sum(0).sqrt()
    factor = (most / total.clamp_min(1e-30)).clamp_max(1.0)
    for grad in grads:
        grad.mul_(factor.view(-1, *([1] * (grad.dim() - 1))))


@torch.no_grad()
def project_on_balls(weights: Mapping[str, Tensor], balls: Mapping[str, tuple[str, float]]) -> None:
    """Replace each matrix (of each trial and head) by the nearest one, in Frobenius norm, in its ball.

    A ball of "W_QK" of a model with separate queries and keys bounds both factors, each by the root of the radius; for
    the (2,1) norm the keys by their transpose, since |W_Q W_K^T|_21 <= |W_Q|_op |W_K^T|_21.
    """
    for name, value in weights.items():
        kind = name.partition("[")[0]
        ball = balls.get(name) or balls.get(kind)
        if ball is not None:
            value.copy_(nearest(value, *ball))
            continue
        joint = balls.get(name.replace(kind, "W_QK")) or balls.get("W_QK")
        if joint is None or kind not in ("W_Q", "W_K"):
            continue
        norm, radius = joint[0], joint[1] ** 0.5
        offset = weights.get(name.replace("W_Q", "b_Q"))
        if kind == "W_K":
            value.copy_(nearest(value.mT, norm, radius).mT)
        elif offset is None:
            value.copy_(nearest(value, norm, radius))
        else:  # the offset of the queries is one more row of W_QK
            both = nearest(torch.cat([value, offset.unsqueeze(-2)], -2), norm, radius)
            value.copy_(both[..., :-1, :])
            offset.copy_(both[..., -1, :])


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
