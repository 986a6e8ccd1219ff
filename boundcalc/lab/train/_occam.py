"""The search for a predictor of few bits: any search will do, for the code alone is paid.

A rank-one update of the learned positions is trained from several seeds at once, with an L1 norm on the rows, and its
largest entries are tried as signs in one column. The best message is then shaved as long as the bound falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

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
from boundcalc.predictors.occam import Code, Message, Update, certify_message, float_risk

INIT = Init(embedding_std=4.0, position_std=0.0)
"""Of the reference: a sharp random network that knows no position."""
_EXPONENT = 4
"""Of two: the step of updates that costs least."""
_RESTARTS, _SEEDS = 8, 24
"""Seeds of the reference that updates are trained from, and that signs are tried on."""
_STEPS, _RATE, _BATCH, _L1 = 400, 0.03, 64, 1e-3
"""Of training: steps, learning rate, examples per step, weight of the L1 norm of the rows."""
_ROWS, _SUPPORTS = 8, 2
"""Most rows of an update, and sets of rows that are tried."""
_SCREEN, _FULL = 96, 12
"""Examples that messages are tried on first, and messages that are tried on all."""
_MOVES = 600
"""Most changes that shaving tries."""


@dataclass
class _Search:
    network: ModelNetwork
    code: Code
    data: Data
    delta: float
    candidates: Candidates

    def references(self, count: int) -> dict[str, Tensor]:
        """The weights of the first seeds, stacked, in float32."""
        drawn = [self.code.reference.weights(seed) for seed in range(count)]
        return {name: torch.as_tensor(np.stack([w[name] for w in drawn]), dtype=torch.float32) for name in drawn[0]}

    def risk(self, message: Message) -> float:
        """The bound of a message, its errors counted as a certificate counts them."""
        wrong = count_wrong(self.network.scores(self.code.weights(message), self.data), len(self.data))
        return float_risk(wrong, len(self.data), self.code.bits(message), self.delta)


def search(network: ModelNetwork, data: Data, delta: float, *, seed: int = 0) -> Certified:
    """The certificate of the best message that was found; refuses where none is better than guessing."""
    code = Code(network.reference(INIT), _EXPONENT)
    if "positions" not in code.reference.laws or network.shape.inputs == "rows":
        raise BoundcalcError("occam changes the learned positions of a network on tokens, and this one has none")
    run = _Search(network, code, data, delta, Candidates(network, data, substream(seed, "occam")))
    messages = [(run.risk(message), message) for message in _screened(run, _messages(run))]
    risk, message = min(messages, key=lambda pair: pair[0], default=(1.0, Message(0)))
    if risk >= 1:
        raise BoundcalcError(
            f"no predictor of few bits and errors was found from {_RESTARTS} starts: give more examples"
        )
    return certify_message(network, code, _shave(run, risk, message), data, delta)


def _messages(run: _Search) -> list[tuple[float, Message]]:
    """Signs at a few positions, which training finds, in any column; with their bits, fewest first."""
    rows, losses = _trained_positions(run)
    supports: list[dict[int, int]] = []
    for start in losses.argsort()[:_SUPPORTS].tolist():
        support = _support(rows[start])
        if support not in supports:
            supports.append(support)
    width = run.code.reference.shapes["positions"][-1]
    exponents = range(run.code.exponent - 2, run.code.exponent + 3)
    messages: list[tuple[float, Message]] = []
    for seed, support, turn, exponent in product(range(_SEEDS), supports, (1, -1), exponents):
        signs = {place: value * turn for place, value in support.items()}
        bits = run.code.bits(Message(seed, {"positions": Update(exponent, signs, 0)}))  # alike in every column
        messages += [(bits, Message(seed, {"positions": Update(exponent, signs, j)})) for j in range(width)]
    return sorted(messages, key=lambda pair: pair[0])


def _support(row: Tensor) -> dict[int, int]:
    """The entries before the largest step down, as signs."""
    size, order = row.abs().sort(descending=True)
    steps = size[:_ROWS] / size[1 : _ROWS + 1].clamp_min(1e-3 * float(size[0]) + 1e-30)
    count = int(steps.argmax()) + 1
    return {int(place): int(row[place].sign()) for place in order[:count]}


def _screened(run: _Search, messages: list[tuple[float, Message]]) -> list[Message]:
    """Those of the smallest bounds, errors counted on some examples, with weights in float32."""
    size = run.candidates.size
    some = torch.randperm(size, generator=torch.Generator().manual_seed(1))[:_SCREEN]
    references, bounds, right = run.references(_SEEDS), list[tuple[float, Message]](), 0
    for start in range(0, len(messages), 64):
        several = messages[start : start + 64]
        weights = {name: value[[message.seed for _, message in several]] for name, value in references.items()}
        for table, (_, message) in zip(weights["positions"], several, strict=True):
            table += torch.as_tensor(message.updates["positions"].dense(tuple(table.shape)), dtype=table.dtype)
        for (bits, message), errors in zip(several, run.candidates.errors(weights, some).tolist(), strict=True):
            right += not errors
            if errors < 0.35 * len(some):
                bounds.append((float_risk(round(errors * size / len(some)), size, bits, run.delta), message))
        if right >= _FULL:
            break  # what follows has more bits
    return [message for _, message in sorted(bounds, key=lambda pair: pair[0])[:_FULL]]


def _trained_positions(run: _Search) -> tuple[Tensor, Tensor]:
    """Rows of rank-one updates, trained with the read-out so that its threshold may move; and their losses."""
    weights = run.references(_RESTARTS)
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


def _shave(run: _Search, risk: float, message: Message) -> Message:
    """Small changes, each kept if it lowers the bound."""
    changes, tried = _changes(run.code, message), 0
    while tried < _MOVES and (changed := next(changes, None)) is not None:
        tried += 1
        if (value := run.risk(changed)) < risk:
            risk, message, changes = value, changed, _changes(run.code, changed)
    return message


def _changes(code: Code, message: Message) -> Iterator[Message]:
    """Messages near this one: without a row, at another step, with a threshold or without."""
    bias = "b_readout"
    for name, update in message.updates.items():
        others = {key: value for key, value in message.updates.items() if key != name}
        if name == bias:
            yield replace(message, updates=others)
        changed: list[Update] = []
        for row in update.numbers if len(update.numbers) > 1 else ():
            changed.append(replace(update, numbers={k: v for k, v in update.numbers.items() if k != row}))
        if update.exponent != code.exponent:
            towards = 1 if update.exponent < code.exponent else -1
            changed.append(replace(update, exponent=update.exponent + towards))
        yield from (replace(message, updates={**others, name: other}) for other in changed)
    if bias in code.reference.laws and bias not in message.updates:
        for exponent, sign in product(range(code.exponent, code.exponent - 8, -1), (1, -1)):
            yield replace(message, updates={**message.updates, bias: Update(exponent, {0: sign})})
