"""Attacks on lowered models: real torch modules in float64 try to exceed the radii and Lipschitz factors claimed
for them, by random search and by gradients. What the attacks reach also breaks claims that are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from boundcalc import Sample, Setting
from boundcalc.base.numbers import FLOAT
from boundcalc.checkpoints import Audit, audit
from boundcalc.statements.network import Network
from tests.checkpoints.live import torch
from tests.checkpoints.zoo import ZOO

pytestmark = pytest.mark.filterwarnings("ignore")
ATTACKED: dict[str, Any] = {
    "bert": {"layer_norm_eps": 0.5},
    "distilbert": {},
    "roberta": {"layer_norm_eps": 0.5},
    "gpt2": {"layer_norm_epsilon": 0.5},
    "llama": {"rms_norm_eps": 0.5},
}
"""Of the zoo. A large eps makes the factors of normalisations moderate, so that the rest of the claim is tested.
DistilBERT's is fixed at 1e-12."""
TOO_SMALL = 0.1
"""Norms times this are the claims that the same attacks must break."""


@dataclass(frozen=True)
class Target:
    """A live model, its audit, and its setting."""

    model: Any
    found: Audit
    setting: Setting

    @property
    def row(self) -> float:
        """Radius of embedded rows, before positions."""
        return self.found.measured["embedding"].row or 0.0

    def claims(self, factor: float = 1.0) -> Any:
        """What is claimed of the model when its norms are taken to be `factor` times what they are."""
        return Network(self.setting.but(norms=self.setting.norms.scaled(factor)), FLOAT)

    def logits(self, rows: Any) -> Any:
        """What is read of one sequence, from its embedded rows."""
        mask = torch.ones(rows.shape[:2], dtype=torch.long)
        out = self.model(inputs_embeds=rows, attention_mask=mask).logits
        return out[:, -1] if out.dim() == 3 else out


@cache
def target(name: str, calm: bool = False) -> Target:
    """`calm`: weights a tenth as large, where the claims are nearer to the truth."""
    torch.set_num_threads(1)
    model = ZOO[name].make(**ATTACKED[name])
    if calm:
        with torch.no_grad():
            for key, tensor in model.named_parameters():
                if tensor.dim() == 2 and "embed" not in key and "wte" not in key and "wpe" not in key:
                    tensor.mul_(0.1)
    found = audit(model)
    return Target(model, found, Setting(found.architecture, found.norms(), Sample(lipschitz=1.0)))


def into_ball(radius: float) -> Callable[[Any], Any]:
    def project(x: Any) -> Any:
        lengths = x.norm(dim=-1, keepdim=True)
        return x * torch.clamp(radius / (lengths + 1e-300), max=1.0)

    return project


def ascend(value: Callable[[Any], Any], start: Any, project: Callable[[Any], Any], steps: int = 30) -> float:
    """Gradient ascent with a normalised step, back to the admissible set after each."""
    best, x = -math.inf, project(start.clone())
    for step in range(steps):
        x = x.detach().requires_grad_(True)
        y = value(x)
        best = max(best, float(y))
        (slope,) = torch.autograd.grad(y, x)
        size = 0.3 / (1 + step / 10)
        x = project((x + size * slope / (slope.norm() + 1e-300) * x.norm()).detach())
    return best


@cache
def length_reached(name: str) -> float:
    """Largest |logits| found."""
    t = target(name)
    torch.manual_seed(1)
    starts = (torch.randn(1, 8, 16, dtype=torch.float64) for _ in range(4))
    return max(ascend(lambda x: t.logits(x).norm(), start, into_ball(t.row)) for start in starts)


@cache
def slope_reached(name: str, calm: bool = False) -> float:
    """Largest change of the logits per change of an embedded row."""
    t = target(name, calm)
    torch.manual_seed(2)

    def slope(x: Any) -> Any:
        change = (x[0] - x[1]).norm(dim=-1).max()
        return (t.logits(x[0]) - t.logits(x[1])).norm() / (change + 1e-9)

    best = 0.0
    for size in (0.02, 0.1, 0.5, 2.0):  # rows near 0, where normalisations are steepest, and at the rim
        start = torch.randn(2, 1, 8, 16, dtype=torch.float64) * size
        start[1] = start[0] + 0.05 * start[1]
        best = max(best, ascend(slope, start, into_ball(t.row)))
    return best


@pytest.mark.parametrize("name", ATTACKED)
def test_radii_are_never_exceeded(name: str) -> None:
    reached = length_reached(name)
    assert 0.1 < reached / float(target(name).claims().radius) <= 1
    assert reached > float(target(name).claims(TOO_SMALL).radius)


@pytest.mark.parametrize("calm", [False, True])
@pytest.mark.parametrize("name", ATTACKED)
def test_lipschitz_factors_are_never_exceeded(name: str, calm: bool) -> None:
    reached = slope_reached(name, calm)
    assert reached <= float(target(name, calm).claims().amplification)
    if name != "distilbert":  # whose eps of 1e-12 makes any claim enormous
        assert reached > float(target(name, calm).claims(TOO_SMALL).amplification)
