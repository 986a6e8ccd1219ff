"""The search for a predictor of few bits: any search will do, for the code alone is paid.

A rank-one update of the learned positions is trained from several seeds at once, with an L1 norm on the rows, and its
largest entries are tried as signs in one column. The best message is then shaved as long as the bound falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

    def references(self, seeds: Sequence[int]) -> dict[str, Tensor]:
        """The weights of some seeds, stacked, in float32."""
        drawn = [self.code.reference.weights(seed) for seed in seeds]
        return {name: torch.as_tensor(np.stack([w[name] for w in drawn]), dtype=torch.float32) for name in drawn[0]}

    def risk(self, message: Message) -> float:
        """The bound of a message, its errors counted as a certificate counts them."""
        wrong = count_wrong(self.network.scores(self.code.weights(message), self.data), len(self.data))
        return float_risk(wrong, len(self.data), self.code.bits(message), self.delta)


def search(
    network: ModelNetwork,
    data: Data,
    delta: float,
    *,
    seed: int = 0,
) -> Certified:
    """The certificate of the best message that was found; refuses where none is better than guessing."""
    code = Code(network.reference(INIT), _EXPONENT)
    if "positions" not in code.reference.laws or network.shape.inputs == "rows":
        raise BoundcalcError("occam changes the learned positions of a network on tokens, and this one has none")
    run = _Search(network, code, data, delta, Candidates(network, data, substream(seed, "occam")))
    risk, message = _signs(run)
    if message is None:
        raise BoundcalcError(
            f"no predictor of few bits and errors was found from {_RESTARTS} starts: give more examples"
        )
    return certify_message(network, code, _shave(run, risk, message), data, delta)


def _signs(run: _Search) -> tuple[float, Message | None]:
    """Signs at a few positions, in one column: which positions, training says; all else is tried."""
    rows, losses = _trained_positions(run)
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
        table[i] += torch.as_tensor(update.dense(table[i].shape), dtype=table.dtype)
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
    """Messages near this one: without a row, at another step, with a threshold or without."""
    bias = "b_readout"
    for name, update in message.updates.items():
        others = {key: value for key, value in message.updates.items() if key != name}
        if name == bias:
            yield replace(message, updates=others)
        changed = [replace(update, rows=_without(update.rows, row)) for row in update.rows if len(update.rows) > 1]
        if update.exponent != code.exponent:
            towards = 1 if update.exponent < code.exponent else -1
            changed.append(replace(update, exponent=update.exponent + towards))
        yield from (replace(message, updates={**others, name: other}) for other in changed)
    if bias in code.reference.laws and bias not in message.updates:
        for exponent, sign in product(range(code.exponent, code.exponent - 8, -1), (1, -1)):
            yield replace(message, updates={**message.updates, bias: Update(exponent, {0: sign})})


def _without(entries: Mapping[int, int], place: int) -> dict[int, int]:
    return {key: value for key, value in entries.items() if key != place}
