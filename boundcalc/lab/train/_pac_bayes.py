"""The search for a posterior: Gaussian around trained weights, as wide as the bound wants; any search will do.

What is random: how far every position moves in the one direction that the read row asks for (known before the data),
and the threshold of the read-out. All else stays as it was drawn.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train._occam import INIT
from boundcalc.lab.train.network import Candidates, ModelNetwork
from boundcalc.lab.train.parameters import read_row
from boundcalc.lab.train.source import substream
from boundcalc.layers.attention import Attention
from boundcalc.layers.base import of_class
from boundcalc.predictors.data import Data
from boundcalc.predictors.pac_bayes import Group, LatticeLaw, Prior

_EXPONENT = -5
"""Of two: the step of the lattice."""
_SHARP = 6.0
"""What scores are multiplied with in the training loss: errors count, margins do not."""
_SEED = 7
"""Of the reference: it was chosen on other data, as the step and the deviations were."""
_DEVIATIONS = {"positions": 2.0, "b_readout": 3.0}
"""Of the prior."""
_NARROWEST = 0.02
"""Deviation of a posterior, in steps."""
DRAWS = 8
"""Of the weights, for a single draw; each has its share of delta."""
_RESTARTS, _START_STEPS = 8, 400
"""Points to start from, and steps to each."""
_L1 = 1e-3
"""Weight of the L1 norm on the way to a start."""
_STEPS, _SAMPLES, _BATCH = 900, 8, 96
"""Of the training of the posterior: steps, draws per step, examples per step."""


def _prior_for(network: ModelNetwork) -> Prior:
    """The prior of a model with learned positions: it depends on its shapes alone."""
    reference = network.reference(INIT)
    layers = list(of_class(network.architecture.stages, Attention))
    if "positions" not in reference.laws or "readout" not in reference.laws or not layers:
        raise InvalidSetting("pac-bayes needs a model with attention, learned positions and a read-out")
    weights, layer = reference.weights(_SEED), layers[0]
    row = weights["positions"][read_row(network.architecture)]
    row = weights["embedding"][-1] + row if "embedding" in weights else row
    if layer.d_head is None:
        direction = (np.append(row, 1.0) if layer.qk_bias else row) @ weights[f"W_QK[{layer.block}]"][0]
    else:
        direction = weights[f"W_K[{layer.block}]"][0] @ (row @ weights[f"W_Q[{layer.block}]"][0])
    direction = direction / math.sqrt(math.fsum(x * x for x in direction.tolist()))
    directions = {"positions": tuple(direction.tolist()), "b_readout": None}
    groups = [Group(name, directions[name], _DEVIATIONS[name]) for name in _DEVIATIONS if name in reference.laws]
    return Prior(reference, _SEED, tuple(groups), _EXPONENT)


def train_posterior(network: ModelNetwork, data: Data, *, seed: int = 0) -> tuple[Prior, list[LatticeLaw]]:
    """A prior, and a posterior that makes its expected loss and its divergence from the prior small together."""
    prior = _prior_for(network)
    search = _Search(prior, Candidates(network, data, substream(seed, "pac-bayes")))
    centre, deviation = search.widen(search.start())
    steps = zip((centre.double() / prior.step).tolist(), (deviation.double() / prior.step).tolist(), strict=True)
    return prior, [_inside(c, max(_NARROWEST, s), law) for (c, s), law in zip(steps, prior.laws, strict=True)]


def _inside(centre: float, deviation: float, prior: LatticeLaw) -> LatticeLaw:
    """The law, narrowed where it would reach beyond the prior: its divergence is finite then."""
    law = LatticeLaw(centre, deviation)
    if deviation <= _NARROWEST or (law.ends[0] >= prior.ends[0] and law.ends[1] <= prior.ends[1]):
        return law
    return _inside(centre, max(_NARROWEST, 0.9 * deviation), prior)


class _Search:
    def __init__(self, prior: Prior, candidates: Candidates) -> None:
        self.prior, self.candidates = prior, candidates
        drawn = prior.reference.weights(prior.seed)
        self.weights = {name: torch.as_tensor(value, dtype=torch.float32).unsqueeze(0) for name, value in drawn.items()}
        self.spread = torch.tensor([law.deviation * prior.step for law in prior.laws])

    def loss(self, coordinates: Tensor, size: int) -> Tensor:
        """Mean loss of every row of coordinates, on a batch."""
        count = len(coordinates)
        weights = {name: value.expand(count, *value.shape[1:]) for name, value in self.weights.items()}
        for group, part in zip(self.prior.groups, coordinates.split(self.prior.sizes, 1), strict=True):
            moved = part.unsqueeze(-1) * torch.tensor(group.direction) if group.direction is not None else part
            value = weights[group.tensor]
            weights[group.tensor] = value + moved.reshape(value.shape)
        return self.candidates.loss(weights, self.candidates.some(size), _SHARP)

    def start(self) -> Tensor:
        """The best of several points trained with an L1 norm."""
        points = torch.randn(_RESTARTS, len(self.spread), generator=self.candidates.generator) * 0.02
        points.requires_grad_()
        optimiser = torch.optim.Adam([points], lr=0.05)
        for _ in range(_START_STEPS):
            total = self.loss(points, 64) + _L1 * points.abs().sum(1)
            optimiser.zero_grad()
            total.sum().backward()
            optimiser.step()
        with torch.no_grad():
            energy = (points / self.spread).square().sum(1) / 2 / self.candidates.size
            return points[int((self.loss(points, 2000) + energy).argmin())].clone()

    def widen(self, centre: Tensor) -> tuple[Tensor, Tensor]:
        """Centre and deviations that make the expected loss and the divergence small together."""
        centre = centre.clone().requires_grad_()
        large = centre.detach().abs() > 0.5 * centre.detach().abs().max()
        width = (self.spread.log() - torch.where(large, 1.0, 0.3)).requires_grad_()
        optimiser = torch.optim.Adam([centre, width], lr=0.02)
        for step in range(_STEPS):
            optimiser.param_groups[0]["lr"] = 0.02 * min(1.0, 2 * (1 - step / _STEPS) + 0.02)
            noise = torch.randn(_SAMPLES, len(centre), generator=self.candidates.generator)
            loss = self.loss(centre + width.exp() * noise, _BATCH).mean() / math.log(2)
            ratio = width.exp() / self.spread
            divergence = (0.5 * (ratio.square() + (centre / self.spread).square() - 1) - ratio.log()).sum()
            optimiser.zero_grad()
            (loss + divergence / self.candidates.size).backward()
            optimiser.step()
        return centre.detach(), width.detach().exp()
