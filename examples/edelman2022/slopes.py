"""How a gap grows with m, T and C where its bound is not vacuous: networks of a fixed class fitted to coin tosses.

    python examples/edelman2022/slopes.py          (200 networks: two minutes)

Computed: the best bound of the gap; measured: the mean gap of fitted members of the class; by (axis, value). The slopes
of both in log-log are printed.

A gap bound promises that no network of its class, under any law, has a ramp loss on fresh examples that exceeds the one
on its m training examples by more than the bound. Here rows are points of the sphere and labels are fair coins that
know nothing of them. Networks are trained to fit them, and after every step their matrices are projected on the balls
of the class, which were fixed before the data; what a trained member's two losses differ by is then a gap that its
class really has (a lower end of the largest one). The loss on fresh labels is averaged over the coin exactly.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from common import Values, run
from torch import Tensor

from boundcalc.engine.evaluate import evaluate
from boundcalc.lab.train.measure import measured_norms
from boundcalc.lab.train.optim import StackedOptimiser
from boundcalc.lab.train.parameters import Init
from boundcalc.lab.train.source import substream
from boundcalc.lab.train.stack import Stack
from boundcalc.lab.train.tasks import Shape
from boundcalc.lab.train.trial import NormBall, Optimisation
from boundcalc.setting import Setting

QUICK = {"quick": True}

AXES = {"m": (250, 1000, 4000, 16_000), "T": (2, 8, 32, 128), "C": (1.0, 2.0, 4.0, 8.0)}
CENTRE = {"m": 1000, "T": 8, "C": 2.0}
"""Where the axes meet."""
_WIDTH, _MARGIN, _RATE = 4, 0.5, 0.03
_INSIDE = 1 - 1e-5
"""Balls are a hair smaller than the class: projections round in float32."""
_FRESH = 20_000
_PART = 100_000
"""Rows at once."""


def setting(m: int, T: int, C: float) -> Setting:
    """The class, in which no margin exceeds C, and the sample; delta is the preset's."""
    return Setting.of("edelman", depth=1, seq_len=T, d=_WIDTH, C=C, n_train=m, margin=_MARGIN)


@dataclass(frozen=True)
class Fitted:
    """Members of the class that were fitted to coin tosses.

    Attributes:
        gaps: ramp loss on fresh examples minus that on the training examples, of each member.
        largest: the largest norm of any matrix of theirs, certified, over its limit: at most 1.
    """

    gaps: tuple[float, ...]
    largest: float


@cache
def fitted(m: int, T: int, C: float, *, seeds: int = 8, starts: int = 3, steps: int = 150, first: int = 0) -> Fitted:
    """Trains members of the class on samples of their own, whose seeds are counted from `first` on.

    Of the networks that are started on one sample the one that fits it best counts.
    """
    shape = Shape("rows", T, "binary", width=_WIDTH)
    generators = [torch.Generator().manual_seed(substream(first + seed, "slopes", m, T)) for seed in range(seeds)]
    x = torch.stack([_sphere(generator, m, T) for generator in generators]).repeat_interleave(starts, 0)
    coins = torch.stack([torch.randint(0, 2, (m,), generator=generator) for generator in generators]) * 2.0 - 1
    y = coins.repeat_interleave(starts, 0)
    every = [generator for generator in generators for _ in range(starts)]
    stack = Stack.fresh(setting(m, T, C).architecture, shape, Init(), every)
    balls: dict[str, NormBall] = {name: ("21", C * _INSIDE) for name in stack.trained}
    rule = Optimisation(lr=_RATE, batch=0, steps=steps, stop_loss=0.0, balls=balls)
    optimiser = StackedOptimiser(stack.trained, rule)
    for step in range(steps):
        if step == steps * 2 // 3:
            optimiser.param_groups[0]["lr"] = _RATE / 5
        ahead = stack(x).squeeze(-1) * y
        loss = (1 - ahead / _MARGIN).clamp_min(0).mean(1).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        train = _ramp(stack(x).squeeze(-1) * y).view(seeds, starts)
        least, which = train.min(1)
        stack.keep(which + starts * torch.arange(seeds))
        fresh = torch.stack([_sphere(generator, _FRESH, T) for generator in generators])
        out = torch.cat([stack(part).squeeze(-1) for part in fresh.split(_PART // T, 1)], 1)
        test = (_ramp(out) + _ramp(-out)) / 2
    gaps: list[float] = (test - least).tolist()
    largest = max(_largest(stack, i, C) for i in range(seeds))
    return Fitted(tuple(gaps), largest)


def _sphere(generator: torch.Generator, n: int, T: int) -> Tensor:
    rows = torch.randn(n, T, _WIDTH, generator=generator)
    return rows / rows.norm(dim=-1, keepdim=True) * _INSIDE


def _ramp(ahead: Tensor) -> Tensor:
    return (1 - ahead.double() / _MARGIN).clamp(0, 1).mean(1)


def _largest(stack: Stack, index: int, C: float) -> float:
    """Of one member: its largest certified norm that the knob C limits, over C."""
    weights = {name: value.detach() for name, value in stack.some(index).items()}
    norms: Any = measured_norms(stack.architecture, weights)
    limited = [value for b in norms.budgets.values() for value in (b.op, b.two_one) if value is not None]
    return max(limited) / C


def slope(values: Mapping[float, float]) -> float:
    """Of log y in log x, by least squares, over the values below 1."""
    rows = [(math.log(x), math.log(y)) for x, y in values.items() if 0 < y < 1]
    centre = sum(x for x, _ in rows) / len(rows)
    return sum((x - centre) * y for x, y in rows) / sum((x - centre) ** 2 for x, _ in rows)


def main(quick: bool = False, store: Path | None = None) -> tuple[Values, Values]:
    """The best bound and the mean gap of fitted members, by axis and value."""
    del store  # nothing is kept: members are no trials of a task
    centre, options = (CENTRE | {"m": 250}, {"seeds": 2, "steps": 40}) if quick else (CENTRE, {})
    computed, measured, largest = Values(), Values(), 0.0
    for axis, values in AXES.items():
        for value in values[:2] if quick else values:
            place = centre | {axis: value}
            members = fitted(**place, **options)
            largest = max(largest, members.largest)
            computed[axis, value] = evaluate(setting(**place)).gap
            measured[axis, value] = statistics.fmean(members.gaps)
        here = [{x: y for (name, x), y in numbers.items() if name == axis} for numbers in (computed, measured)]
        print(f"slope in {axis}: bound {slope(here[0]):+.2f}, members {slope(here[1]):+.2f}")
    print(f"largest certified norm of a member over its limit: {largest:.6f}")
    return computed, measured


if __name__ == "__main__":
    run(main, words=("bound", "members"))
