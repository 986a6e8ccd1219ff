"""The search for a predictor of few bits: any search will do, for the code alone is paid.

Two ways in, and one way down. Where positions are learned, a rank-one update of their table is trained from several
seeds at once, with an L1 norm on the rows, and its largest entries are tried as signs in one column. Else, or where
that finds nothing, all tensors get L1-trained updates, rounded. Both are then shaved: entries dropped, halved, steps
doubled, tensors left alone, as long as the bound falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from boundcalc.base.answers import count_wrong
from boundcalc.base.errors import BoundcalcError
from boundcalc.lab.train.network import ModelNetwork
from boundcalc.lab.train.parameters import Init, read_row
from boundcalc.lab.train.source import substream
from boundcalc.lab.train.stack import Stack, losses, wrongs
from boundcalc.predictors.data import Data
from boundcalc.predictors.occam import Code, Decoded, certify_message, float_risk
from boundcalc.predictors.updates import Message, Update

INIT = Init(embedding_std=4.0, position_std=0.0)
"""Of the reference: a sharp random network that knows no position."""
_EXPONENT = 4
"""Of two: the step of updates that costs least."""


@dataclass(frozen=True)
class SearchRule:
    """How hard to look; none of it enters the bound.

    Attributes:
        restarts: seeds of the reference that are tried.
        steps: of training.
        lr: its rate.
        batch: examples per step.
        l1: weight of the L1 norm of a rank-one update's rows.
        l1_all: weight of the L1 norm of all updates.
        rows: most rows of a rank-one update.
        supports: sets of positions that are tried.
        seeds: of the reference that they are tried on.
        screen: examples that candidates are tried on first.
        full: candidates that are tried on all.
        all_steps: of training all tensors, where positions alone do not do.
        moves: most changes that shaving tries.
    """

    restarts: int = 8
    steps: int = 400
    lr: float = 0.03
    batch: int = 64
    l1: float = 1e-3
    l1_all: float = 3e-3
    rows: int = 8
    supports: int = 2
    seeds: int = 24
    screen: int = 96
    full: int = 12
    all_steps: int = 1500
    moves: int = 600


class NothingFound(BoundcalcError):
    """No predictor of few bits and errors."""


@dataclass
class _Search:
    network: ModelNetwork
    code: Code
    data: Data
    delta: float
    rule: SearchRule
    seed: int
    x: Tensor = field(init=False)
    y: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.x = torch.from_numpy(np.ascontiguousarray(self.data.x))
        self.y = torch.from_numpy(np.ascontiguousarray(self.data.y))
        self.generator = torch.Generator().manual_seed(substream(self.seed, "occam"))

    def references(self, seeds: Sequence[int]) -> dict[str, Tensor]:
        """The weights of some seeds, stacked, in float32."""
        drawn = [self.code.reference.weights(s) for s in seeds]
        return {name: torch.as_tensor(np.stack([one[name] for one in drawn]), dtype=torch.float32) for name in drawn[0]}

    def stack(self, weights: Mapping[str, Tensor]) -> Stack:
        return Stack(self.network.architecture, self.network.shape, weights)

    def batches(self, steps: int) -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(steps):
            chosen = torch.randint(len(self.y), (min(len(self.y), self.rule.batch),), generator=self.generator)
            yield self.x[chosen], self.y[chosen]

    def loss(self, stack: Stack, x: Tensor, y: Tensor) -> Tensor:
        """Mean loss of every model."""
        count = len(stack)
        outputs = stack(stack.inputs(x.unsqueeze(0).expand(count, *x.shape)))
        return losses(self.network.shape, outputs, y.unsqueeze(0).expand(count, -1)).mean(1)

    @torch.no_grad()
    def errors(self, weights: Mapping[str, Tensor], places: Tensor | None = None) -> Tensor:
        """Wrong ones of every model, of all examples or of some."""
        stack = self.stack(weights)
        x, y = (self.x, self.y) if places is None else (self.x[places], self.y[places])
        count = len(stack)
        total = torch.zeros(count)
        for part, answers in zip(x.split(512), y.split(512), strict=True):
            outputs = stack(stack.inputs(part.unsqueeze(0).expand(count, *part.shape)))
            total += wrongs(self.network.shape, outputs, answers.unsqueeze(0).expand(count, -1)).sum(1)
        return total

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
    progress: Callable[[str], None] | None = None,
) -> Decoded:
    """The certificate of the best message that was found; `NothingFound` where none is better than guessing."""
    code = Code(network.reference(INIT), _EXPONENT)
    run = _Search(network, code, data, delta, SearchRule(), seed)
    say = progress or (lambda _: None)
    best: tuple[float, Message | None] = (1.0, None)
    if "positions" in code.reference.laws and network.shape.inputs != "rows":
        best = min(best, _by_positions(run, say), key=lambda pair: pair[0])
    if best[0] > 0.5:
        best = min(best, _by_all(run, say), key=lambda pair: pair[0])
    risk, message = best
    if message is None:
        raise NothingFound(
            f"no predictor of few bits and errors was found among {run.rule.restarts} starts: give more examples, or "
            "more restarts and steps"
        )
    return certify_message(network, code, _shave(run, risk, message), data, delta)


def _by_positions(run: _Search, say: Callable[[str], None]) -> tuple[float, Message | None]:
    """Signs at a few positions, in one column: which positions, training says; all else is tried."""
    weights = run.references(range(run.rule.restarts))
    rows, losses_ = _trained_positions(run, weights)
    say(f"trained {run.rule.restarts} rank-one updates of the positions")
    supports: list[dict[int, int]] = []
    for s in losses_.argsort()[: run.rule.supports].tolist():
        support = _support(rows[s], run.rule.rows)
        if support not in supports:
            supports.append(support)
    some = torch.randperm(len(run.y), generator=torch.Generator().manual_seed(1))[: run.rule.screen]
    candidates = _candidates(run, supports, weights["positions"].shape[-1])
    seeds = run.references(sorted({message.seed for _, message in candidates}))
    found: list[tuple[float, Message]] = []
    right = 0
    for start in range(0, len(candidates), 64):
        several = candidates[start : start + 64]
        wrong = run.errors(_positions(seeds, [message for _, message in several]), some).tolist()
        for (bits, message), errors in zip(several, wrong, strict=True):
            right += not errors
            if errors < 0.35 * len(some):
                scaled = round(errors * len(run.y) / len(some))
                found.append((float_risk(scaled, len(run.y), bits, run.delta), message))
        if right >= run.rule.full:
            break  # what follows has more bits
    found.sort(key=lambda pair: pair[0])
    best: tuple[float, Message | None] = (1.0, None)
    for _, message in found[: run.rule.full]:
        best = min(best, (run.risk(message), message), key=lambda pair: pair[0])
    say(f"{len(found)} candidates, the best gives {best[0]:.4f}")
    return best


def _candidates(run: _Search, supports: list[dict[int, int]], width: int) -> list[tuple[float, Message]]:
    """Bits and messages, fewest bits first: they do not depend on the column."""
    found: list[tuple[float, Message]] = []
    for s in range(run.rule.seeds):
        for support in supports:
            for turn in (1, -1):
                rows = {place: value * turn for place, value in support.items()}
                for e in range(run.code.exponent - 2, run.code.exponent + 3):
                    bits = run.code.bits(Message(s, {"positions": Update(e, rows, {0: 1})}))
                    found += [(bits, Message(s, {"positions": Update(e, rows, {j: 1})})) for j in range(width)]
    return sorted(found, key=lambda pair: pair[0])


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


def _trained_positions(run: _Search, weights: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Rows of rank-one updates, trained with the read-out so that its threshold may move; and their losses."""
    rule = run.rule
    count, size, width = weights["positions"].shape
    seen = torch.ones(size)
    seen[read_row(run.network.architecture)] = 0.0  # what is read out is there in every example
    rows = torch.zeros(count, size).normal_(std=0.01, generator=run.generator)
    across = torch.randn(count, width, generator=run.generator) * 0.3
    free = {name: torch.zeros_like(weights[name]) for name in ("readout", "b_readout") if name in weights}
    leaves = [rows, across, *free.values()]
    for leaf in leaves:
        leaf.requires_grad_()
    optimiser = torch.optim.Adam(leaves, lr=rule.lr)
    stack = run.stack(weights)
    recent = torch.ones(count)
    for x, y in run.batches(rule.steps):
        table = weights["positions"] + (rows * seen).unsqueeze(-1) * across.unsqueeze(1)
        stack.weights = {**weights, "positions": table, **{name: weights[name] + free[name] for name in free}}
        losses_ = run.loss(stack, x, y) + rule.l1 * rows.abs().sum(1)
        total = losses_.sum()
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        recent = 0.9 * recent + 0.1 * losses_.detach()
    return (rows * seen).detach(), recent


def _by_all(run: _Search, say: Callable[[str], None]) -> tuple[float, Message | None]:
    """Sparse updates of every tensor: trained, the largest kept, rounded to powers of two."""
    weights = run.references(range(run.rule.restarts))
    updates, losses_ = _trained_all(run, weights)
    say(f"trained sparse updates of {len(updates)} tensors from {run.rule.restarts} seeds")
    best: tuple[float, Message | None] = (1.0, None)
    for s in losses_.argsort()[:3].tolist():
        one = {name: value[s] for name, value in updates.items()}
        for message in _rounded(s, one):
            best = min(best, (run.risk(message), message), key=lambda pair: pair[0])
    say(f"sparse updates give {best[0]:.4f}")
    return best


def _trained_all(run: _Search, weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor]:
    """Updates of all tensors by proximal steps on their L1 norm, and the losses."""
    rule = run.rule
    free = {name: torch.zeros_like(value).requires_grad_() for name, value in weights.items()}
    optimiser = torch.optim.Adam(free.values(), lr=rule.lr)
    stack = run.stack(weights)
    recent = torch.ones(run.rule.restarts)
    for step, (x, y) in enumerate(run.batches(rule.all_steps)):
        rate = rule.lr * (1 - step / rule.all_steps)
        optimiser.param_groups[0]["lr"] = rate
        stack.weights = {name: weights[name] + free[name] for name in free}
        losses_ = run.loss(stack, x, y)
        optimiser.zero_grad()
        losses_.sum().backward()
        optimiser.step()
        with torch.no_grad():
            for value in free.values():
                value.copy_(value.sign() * (value.abs() - rate * rule.l1_all * 10).clamp_min(0.0))
        recent = 0.95 * recent + 0.05 * losses_.detach()
    return {name: value.detach() for name, value in free.items()}, recent


def _rounded(seed: int, updates: Mapping[str, Tensor]) -> Iterator[Message]:
    """Messages that keep some of the largest entries, in steps of a power of two per tensor."""
    sizes = torch.cat([value.abs().flatten() for value in updates.values()])
    there = int((sizes > 0).sum())
    falling = sizes.sort(descending=True)[0]
    counts = sorted({min(there, 2**i) for i in range(2, 14)}) if there else []
    for count in counts:
        least = float(falling[count - 1])
        for finer in range(4):
            found: dict[str, Update] = {}
            for name, value in updates.items():
                flat = value.flatten()
                kept = (flat.abs() >= least).nonzero().flatten().tolist()
                if not kept:
                    continue
                exponent = math.floor(math.log2(float(flat.abs().max()))) - finer
                entries = {place: round(math.ldexp(float(flat[place]), -exponent)) for place in kept}
                entries = {place: v for place, v in entries.items() if v}
                if entries:
                    found[name] = Update(exponent, entries)
            if found:
                yield Message(seed, found)


def _shave(run: _Search, risk: float, message: Message) -> Message:
    """Small changes, each kept if it lowers the bound."""
    left = run.rule.moves
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
