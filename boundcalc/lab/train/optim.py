"""Optimisers of a stack of trials: elementwise, so one fused call serves all; warm-up, clipping, norm balls."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from boundcalc.lab.train.trial import Optimisation

_BETAS = (0.9, 0.999)
_EPS = 1e-8


class StackedOptimiser:
    """Updates tensors whose first dimension counts trials, all by one rule."""

    def __init__(self, weights: Mapping[str, Tensor], rule: Optimisation) -> None:
        self.weights = dict(weights)
        self.rule = rule
        self.first = {name: torch.zeros_like(w) for name, w in self.weights.items()}
        self.second = {name: torch.zeros_like(w) for name, w in self.weights.items()}
        self.step_count = 0

    def keep(self, kept: Tensor) -> None:
        """Drop the state of all other trials; the caller sets the new weights."""
        self.first = {name: value[kept] for name, value in self.first.items()}
        self.second = {name: value[kept] for name, value in self.second.items()}

    @torch.no_grad()
    def step(self, grads: Mapping[str, Tensor]) -> None:
        """One update of every trial."""
        rule, names = self.rule, list(self.weights)
        if rule.clip:
            _clip_norms(grads, rule.clip)
        weights, slopes, first = ([part[name] for name in names] for part in (self.weights, grads, self.first))
        rate = rule.lr * min(1.0, (self.step_count + 1) / rule.warmup) if rule.warmup else rule.lr
        if rule.optimiser == "sgd":
            self._sgd(weights, slopes, first, rate)
        else:
            update = adamw if rule.optimiser == "adamw" else adam
            update(
                weights,
                slopes,
                first,
                [self.second[name] for name in names],
                [],
                [torch.tensor(float(self.step_count), device=w.device) for w in weights],
                foreach=False,
                capturable=False,
                differentiable=False,
                fused=True,
                amsgrad=False,
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                lr=rate,
                weight_decay=rule.weight_decay,
                eps=_EPS,
                maximize=False,
            )
        self.step_count += 1

    def _sgd(self, weights: list[Tensor], slopes: list[Tensor], first: list[Tensor], rate: float) -> None:
        """SGD, with momentum from the second step on."""
        rule = self.rule
        if rule.momentum and not self.step_count:
            for buffer, slope, weight in zip(first, slopes, weights, strict=True):
                buffer.copy_(slope + rule.weight_decay * weight)
        going = bool(rule.momentum and self.step_count)
        sgd(
            weights,
            slopes,
            list(first) if going else [None] * len(weights),  # type: ignore[arg-type]
            weight_decay=rule.weight_decay,
            momentum=rule.momentum if going else 0.0,
            lr=rate,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            foreach=True,
        )


def _clip_norms(grads: Mapping[str, Tensor], most: float) -> None:
    """Scale each trial's gradients so that their joint norm is at most the limit."""
    total = torch.stack([grad.flatten(1).square().sum(1) for grad in grads.values()]).sum(0).sqrt()
    factor = (most / total.clamp_min(1e-30)).clamp_max(1.0)
    for grad in grads.values():
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
