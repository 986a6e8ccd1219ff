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
    weights = reference.weights(_SEED)
    read = weights["positions"][read_row(network.architecture)]
    row = weights["embedding"][-1] + read if "embedding" in weights else read
    layer = layers[0]
    block = layer.block
    if layer.d_head is None:
        joint = weights[f"W_QK[{block}]"][0]
        query = np.append(row, 1.0) if layer.qk_bias else row
        direction = query @ joint
    else:
        direction = weights[f"W_K[{block}]"][0] @ (row @ weights[f"W_Q[{block}]"][0])
    direction = direction / math.sqrt(math.fsum(x * x for x in direction.tolist()))
    groups = [
        Group(name, tuple(direction.tolist()) if name == "positions" else None, deviation)
        for name, deviation in _DEVIATIONS.items()
        if name in reference.laws
    ]
    return Prior(reference, _SEED, tuple(groups), _EXPONENT)


def train_posterior(
    network: ModelNetwork,
    data: Data,
    *,
    seed: int = 0,
) -> tuple[Prior, list[LatticeLaw]]:
    """A prior, and a posterior that makes its expected loss and its divergence from the prior small together."""
    prior = _prior_for(network)
    search = _Search(prior, Candidates(network, data, substream(seed, "pac-bayes")))
    centre = search.start()
    centre, deviation = search.widen(centre)
    laws = [
        _inside(float(c) / prior.step, max(0.02, float(s) / prior.step), law)
        for c, s, law in zip(centre.double(), deviation.double(), prior.laws, strict=True)
    ]
    return prior, laws


def _inside(centre: float, deviation: float, prior: LatticeLaw) -> LatticeLaw:
    """The law, narrowed where it would reach beyond the prior: its divergence is finite then."""
    while deviation > 0.02:
        law = LatticeLaw(centre, deviation)
        if law.ends[0] >= prior.ends[0] and law.ends[1] <= prior.ends[1]:
            return law
        deviation = max(0.02, 0.9 * deviation)
    return LatticeLaw(centre, deviation)


class _Search:
    def __init__(self, prior: Prior, candidates: Candidates) -> None:
        self.prior, self.candidates = prior, candidates
        drawn = prior.reference.weights(prior.seed)
        self.weights = {name: torch.as_tensor(value, dtype=torch.float32).unsqueeze(0) for name, value in drawn.items()}
        self.sizes = [group.count(prior.reference.shapes[group.tensor]) for group in prior.groups]
        self.spread = torch.cat(
            [torch.full((size,), group.deviation) for size, group in zip(self.sizes, prior.groups, strict=True)]
        )

    def loss(self, coordinates: Tensor, size: int) -> Tensor:
        """Mean loss of every row of coordinates, on a batch."""
        count = len(coordinates)
        weights = {name: value.expand(count, *value.shape[1:]) for name, value in self.weights.items()}
        for group, part in zip(self.prior.groups, coordinates.split(self.sizes, 1), strict=True):
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
