"""The search for a predictor of few bits: any search will do, for the code alone is paid.

Two ways in, and one way down. Where positions are learned, a rank-one update of their table is trained from several
seeds at once, with an L1 norm on the rows, and its largest entries are tried as signs in one column. Else, or where
that finds nothing, all tensors get L1-trained updates, rounded. The best message is then shaved: entries dropped,
halved, steps doubled, tensors left alone, as long as the bound falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError
from boundcalc.lab.train.network import Candidates, ModelNetwork
from boundcalc.lab.train.parameters import Init, read_row
from boundcalc.lab.train.source import substream
from boundcalc.predictors.certificate import Certified
from boundcalc.predictors.data import Data
from boundcalc.predictors.occam import Code, certify_message, float_risk
from boundcalc.predictors.updates import Message, Update

INIT = Init(embedding_std=4.0, position_std=0.0)
"""Of the reference: a sharp random network that knows no position."""
_EXPONENT = 4
"""Of two: the step of updates that costs least."""
_RESTARTS, _SEEDS = 8, 24
"""Seeds of the reference that updates are trained from, and that signs are tried on."""
_STEPS, _RATE, _BATCH, _L1 = 400, 0.03, 64, 1e-3
"""Of training: steps, learning rate, examples per step, weight of the L1 norm of the rows."""
_ALL_STEPS, _ALL_L1 = 1500, 0.03
"""Of training all tensors, where positions alone do not do: steps, weight of the L1 norm."""
_ROWS, _SUPPORTS = 8, 2
"""Most rows of an update, and sets of rows that are tried."""
_SCREEN, _FULL = 96, 12
"""Examples that messages are tried on first, and messages that are tried on all."""
_MOVES = 600
"""Most changes that shaving tries."""


class NothingFound(BoundcalcError):
    """No predictor of few bits and errors."""


@dataclass
class _Search:
    network: ModelNetwork
    code: Code
    data: Data
    delta: float
    candidates: Candidates

    def references(self, seeds: Sequence[int]) -> dict[str, Tensor]:
        """The weights of some seeds, stacked, in float32."""
        drawn = [self.code.reference.weights(seed) for seed in seeds]
        return {name: torch.as_tensor(np.stack([w[name] for w in drawn]), dtype=torch.float32) for name in drawn[0]}

    def risk(self, message: Message) -> float:
        """The bound of a message, its errors counted as a certificate counts them."""
        weights = self.code.weights(message)
        wrong = count_wrong(self.network.scores(weights, self.data), len(self.data))
        return float_risk(wrong, len(self.data), self.code.bits(message), self.delta)


def search(
    network: ModelNetwork,
    data: Data,
    delta: float,
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Certified:
    """The certificate of the best message that was found; `NothingFound` where none is better than guessing."""
    code = Code(network.reference(INIT), _EXPONENT)
    run = _Search(network, code, data, delta, Candidates(network, data, substream(seed, "occam")))
    risk, message = 1.0, None
    if "positions" in code.reference.laws and network.shape.inputs != "rows":
        risk, message = _signs(run, progress)
    if risk > 0.5:
        risk, message = min((risk, message), _sparse(run, progress), key=lambda pair: pair[0])
    if message is None:
        raise NothingFound(f"no predictor of few bits and errors was found from {_RESTARTS} starts: give more examples")
    return certify_message(network, code, _shave(run, risk, message), data, delta)


def _signs(run: _Search, progress: Callable[[str], None]) -> tuple[float, Message | None]:
    """Signs at a few positions, in one column: which positions, training says; all else is tried."""
    rows, losses = _trained_positions(run)
    progress(f"trained {_RESTARTS} rank-one updates of the positions")
    supports: list[dict[int, int]] = []
    for s in losses.argsort()[:_SUPPORTS].tolist():
        support = _support(rows[s], _ROWS)
        if support not in supports:
            supports.append(support)
    size = run.candidates.size
    some = torch.randperm(size, generator=torch.Generator().manual_seed(1))[:_SCREEN]
    seeds = run.references(range(_SEEDS))
    messages = _candidates(run, supports, seeds["positions"].shape[-1])
    screened: list[tuple[float, Message]] = []
    right = 0
    for start in range(0, len(messages), 64):
        several = messages[start : start + 64]
        wrong = run.candidates.errors(_positions(seeds, [message for _, message in several]), some).tolist()
        for (bits, message), errors in zip(several, wrong, strict=True):
            right += not errors
            if errors < 0.35 * len(some):
                screened.append((float_risk(round(errors * size / len(some)), size, bits, run.delta), message))
        if right >= _FULL:
            break  # what follows has more bits
    screened.sort(key=lambda pair: pair[0])
    best: tuple[float, Message | None] = (1.0, None)
    for _, message in screened[:_FULL]:
        best = min(best, (run.risk(message), message), key=lambda pair: pair[0])
    progress(f"{len(screened)} candidates, the best gives {best[0]:.4f}")
    return best


def _candidates(run: _Search, supports: list[dict[int, int]], width: int) -> list[tuple[float, Message]]:
    """Bits and messages, fewest bits first: they do not depend on the column."""
    messages: list[tuple[float, Message]] = []
    for s in range(_SEEDS):
        for support in supports:
            for turn in (1, -1):
                rows = {place: value * turn for place, value in support.items()}
                for e in range(run.code.exponent - 2, run.code.exponent + 3):
                    bits = run.code.bits(Message(s, {"positions": Update(e, rows, {0: 1})}))
                    messages += [(bits, Message(s, {"positions": Update(e, rows, {j: 1})})) for j in range(width)]
    return sorted(messages, key=lambda pair: pair[0])


def _support(row: Tensor, most: int) -> dict[int, int]:
    """The entries before the largest step down, as signs."""
    size, order = row.abs().sort(descending=True)
    steps = size[:most] / size[1 : most + 1].clamp_min(1e-3 * float(size[0]) + 1e-30)
    count = int(steps.argmax()) + 1
    return {int(place): int(row[place].sign()) for place in order[:count]}


def _positions(seeds: Mapping[str, Tensor], messages: list[Message]) -> dict[str, Tensor]:
    """The weights of many messages that change positions alone."""
    many = {name: value[[message.seed for message in messages]] for name, value in seeds.items()}
    table = many["positions"]
    for i, message in enumerate(messages):
        update = message.updates["positions"]
        for row, value in update.rows.items():
            for column, factor in (update.columns or {}).items():
                table[i, row, column] += math.ldexp(value * factor, update.exponent)
    return many


def _trained_positions(run: _Search) -> tuple[Tensor, Tensor]:
    """Rows of rank-one updates, trained with the read-out so that its threshold may move; and their losses."""
    weights = run.references(range(_RESTARTS))
    count, size, width = weights["positions"].shape
    visible = torch.ones(size)
    visible[read_row(run.network.architecture)] = 0.0  # what is read out is there in every example
    rows = torch.zeros(count, size).normal_(std=0.01, generator=run.candidates.generator)
    across = torch.randn(count, width, generator=run.candidates.generator) * 0.3
    free = {name: torch.zeros_like(weights[name]) for name in ("readout", "b_readout") if name in weights}
    leaves = [rows, across, *free.values()]
    for leaf in leaves:
        leaf.requires_grad_()
    optimiser = torch.optim.Adam(leaves, lr=_RATE)
    recent = torch.ones(count)
    for _ in range(_STEPS):
        table = weights["positions"] + (rows * visible).unsqueeze(-1) * across.unsqueeze(1)
        moved = {**weights, "positions": table, **{name: weights[name] + free[name] for name in free}}
        losses = run.candidates.loss(moved, run.candidates.some(_BATCH)) + _L1 * rows.abs().sum(1)
        optimiser.zero_grad()
        losses.sum().backward()
        optimiser.step()
        recent = 0.9 * recent + 0.1 * losses.detach()
    return (rows * visible).detach(), recent


def _sparse(run: _Search, progress: Callable[[str], None]) -> tuple[float, Message | None]:
    """Sparse updates of every tensor: trained, the largest kept, rounded to powers of two."""
    weights = run.references(range(_RESTARTS))
    updates, losses = _trained_updates(run, weights)
    progress(f"trained sparse updates of {len(updates)} tensors from {_RESTARTS} seeds")
    best: tuple[float, Message | None] = (1.0, None)
    for seed in losses.argsort()[:3].tolist():
        for message in _rounded(seed, {name: value[seed] for name, value in updates.items()}):
            best = min(best, (run.risk(message), message), key=lambda pair: pair[0])
    progress(f"sparse updates give {best[0]:.4f}")
    return best


def _trained_updates(run: _Search, weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
    """Updates of all tensors by proximal steps on their L1 norm, and the losses."""
    free = {name: torch.zeros_like(value).requires_grad_() for name, value in weights.items()}
    optimiser = torch.optim.Adam(free.values(), lr=_RATE)
    recent = torch.ones(_RESTARTS)
    for step in range(_ALL_STEPS):
        optimiser.param_groups[0]["lr"] = rate = _RATE * (1 - step / _ALL_STEPS)
        moved = {name: weights[name] + free[name] for name in free}
        losses = run.candidates.loss(moved, run.candidates.some(_BATCH))
        optimiser.zero_grad()
        losses.sum().backward()
        optimiser.step()
        with torch.no_grad():
            for value in free.values():
                value.copy_(torch.nn.functional.softshrink(value, rate * _ALL_L1))
        recent = 0.95 * recent + 0.05 * losses.detach()
    return {name: value.detach() for name, value in free.items()}, recent


def _rounded(seed: int, updates: Mapping[str, Tensor]) -> Iterator[Message]:
    """Messages that keep some of the largest entries, in steps of a power of two per tensor."""
    falling = torch.cat([value.abs().flatten() for value in updates.values()]).sort(descending=True)[0]
    there = int((falling > 0).sum())
    for count in sorted({min(there, 2**i) for i in range(2, 14)}) if there else []:
        least = float(falling[count - 1])
        for finer in range(4):
            message: dict[str, Update] = {}
            for name, value in updates.items():
                flat = value.flatten()
                exponent = math.floor(math.log2(max(float(flat.abs().max()), least))) - finer
                kept = (flat.abs() >= least).nonzero().flatten().tolist()
                entries = {place: round(math.ldexp(float(flat[place]), -exponent)) for place in kept}
                if any(entries.values()):
                    message[name] = Update(exponent, {place: v for place, v in entries.items() if v})
            if message:
                yield Message(seed, message)


def _shave(run: _Search, risk: float, message: Message) -> Message:
    """Small changes, each kept if it lowers the bound."""
    left = _MOVES
    falling = True
    while falling:
        falling = False
        for changed in _moves(run.code, message):
            left -= 1
            if left < 0:
                return message
            value = run.risk(changed)
            if value < risk:
                risk, message, falling = value, changed, True
                break
    return message


def _moves(code: Code, message: Message) -> Iterator[Message]:
    """Messages near this one: shorter ones first."""
    for name, update in message.updates.items():
        others = {key: value for key, value in message.updates.items() if key != name}
        if others:
            yield replace(message, updates=others)
        for changed in _changed(update, code.exponent):
            yield replace(message, updates={**message.updates, name: changed})
    bias = "b_readout"
    if bias in code.reference.laws and bias not in message.updates:
        for exponent in range(code.exponent, code.exponent - 8, -1):
            for sign in (1, -1):
                yield replace(message, updates={**message.updates, bias: Update(exponent, {0: sign})})


def _changed(update: Update, usual: int) -> Iterator[Update]:
    if len(update.rows) > 1:
        for place in sorted(update.rows, key=lambda place: abs(update.rows[place])):
            yield replace(update, rows={key: value for key, value in update.rows.items() if key != place})
    if update.columns is not None and len(update.columns) > 1:
        for place in update.columns:
            columns = {key: value for key, value in update.columns.items() if key != place}
            if columns[min(columns)] > 0:
                yield replace(update, columns=columns)
    if any(abs(value) > 1 for value in update.rows.values()):
        halves = {place: round(value / 2) for place, value in update.rows.items()}
        yield (
            Update(update.exponent + 1, {place: value for place, value in halves.items() if value}, update.columns)
            if any(halves.values())
            else update
        )
        for place, value in update.rows.items():
            if abs(value) > 1:
                yield replace(update, rows={**update.rows, place: (abs(value) // 2) * (1 if value > 0 else -1)})
    for exponent in (update.exponent + 1, update.exponent - 1):
        if abs(exponent - usual) < abs(update.exponent - usual):
            yield replace(update, exponent=exponent)
