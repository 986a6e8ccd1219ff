"""Many trials as one tensor program: each leaves the stack when it is done, for a reason that is recorded."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from boundcalc.base.answers import clopper_pearson, hoeffding
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train.data import Examples
from boundcalc.lab.train.device import torch_device, versions
from boundcalc.lab.train.measure import attention_mass, margin_summary, measured_norms
from boundcalc.lab.train.optim import StackedOptimiser
from boundcalc.lab.train.own_row import with_own_row
from boundcalc.lab.train.source import substream
from boundcalc.lab.train.stack import Stack, losses, margins, with_read_row, wrongs
from boundcalc.lab.train.trial import Trial, canonical

_CURVE_EXAMPLES = 512
"""Examples on which points of a curve are measured; final errors use all."""
_MOST_TRAINING = 2**18
"""Training examples on which the final training error is measured."""
_ENTRIES = 2**22
"""Entries of inputs evaluated at once."""
_NEAR = 4.0
"""The stopping rule is checked at every step once the running loss is below this many times its threshold."""
_DTYPES = {"float32": torch.float32, "float64": torch.float64}

_Live = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class Outcome:
    """A finished trial: its result, ready for the store, and its weights."""

    trial: Trial
    result: dict[str, Any]
    weights: dict[str, Tensor]

    @property
    def arrays(self) -> dict[str, Any]:
        """The weights as NumPy arrays."""
        return {name: value.cpu().numpy() for name, value in self.weights.items()}


def stack_key(trial: Trial) -> str:
    """Trials with one key may share a stack: all agrees but seed and m (of full batches m too)."""
    return canonical(
        {
            "shape": asdict(trial.task.shape),
            "architecture": trial.architecture.to_json(),
            "init": asdict(trial.init),
            "rule": asdict(replace(trial.optimisation, batch=0)),
            "batch": trial.batch,
            "whole": trial.full_batch,
            "n_test": trial.n_test,
            "device": trial.device,
        }
    )


def stack_of(trial: Trial, result: Mapping[str, Any]) -> list[Trial]:
    """The trials that a stored result was computed with: trained together again they give it again, to the bit.

    Alone, or in another stack, a trial's sums round differently (by about 1e-6 in the weights of a CPU).
    """
    return [trial.but(m=mate["m"], seed=mate["seed"]) for mate in result["stack"]]


def train(
    trials: Sequence[Trial],
    *,
    live: _Live | None = None,
) -> list[Outcome]:
    """Train trials of one `stack_key` together; the outcomes are in the order of the trials."""
    if len({stack_key(trial) for trial in trials}) != 1:
        raise InvalidSetting("only trials that differ in seed and m can be trained in one stack")
    return _Training(trials, torch_device(trials[0].device), live).run()


class _Training:
    def __init__(
        self,
        trials: Sequence[Trial],
        device: torch.device,
        live: _Live | None,
    ) -> None:
        self.trials = list(trials)
        self.device = device
        self.live = live
        first = trials[0]
        self.rule, self.shape = first.optimisation, first.task.shape
        self.examples = [Examples(trial, device) for trial in trials]
        generators = [torch.Generator(device).manual_seed(substream(t.seed, "init")) for t in trials]
        self.stack = Stack.fresh(
            first.architecture,
            self.shape,
            first.init,
            generators,
            _DTYPES[self.rule.precision],
        )
        self.stack.require_grad()
        self.optimiser = StackedOptimiser(self.stack.trained, self.rule)
        self.optimiser.project()
        self.active = list(range(len(trials)))
        self.recent = torch.zeros(len(trials), device=device)
        self.curves: list[list[dict[str, float]]] = [[] for _ in trials]
        self.seconds = [0.0] * len(trials)
        self.outcomes: list[Outcome | None] = [None] * len(trials)
        self.points = _curve_points(self.rule.steps, self.rule.curve_every)
        self._all: tuple[Tensor, Tensor] | None = None

    def run(self) -> list[Outcome]:
        step = 0
        clock = time.process_time()
        self._point(0, range(len(self.active)))
        while self.active:
            loss = self._step()
            step += 1
            if self.rule.check_every == 1 or step % self.rule.check_every == 1:
                self.recent = loss
            else:
                self.recent = self.recent + loss
            last = step == self.rule.steps
            looked = last or step % self.rule.check_every == 0
            point = last or step in self.points
            if not (looked or point):
                continue
            reached = self._point(step, range(len(self.active))) if point else set[int]()
            done = self._check(step, reached, last) if looked else dict.fromkeys(reached, "test error reached")
            now = time.process_time()
            for index in self.active:
                self.seconds[index] += (now - clock) / len(self.active)
            clock = now
            if done:
                self._finish(done, step)
                clock = time.process_time()
        return [outcome for outcome in self.outcomes if outcome is not None]

    def _batch(self) -> tuple[Tensor, Tensor]:
        """The next inputs and answers of every trial; where every step sees all of them, they are made once."""
        if self._all is not None:
            return self._all
        trial = self.trials[self.active[0]]
        examples = [self.examples[index] for index in self.active]
        parts = [whole.train if trial.full_batch and whole.train else whole.batch(trial.batch) for whole in examples]
        batch = self.stack.inputs(torch.stack([x for x, _ in parts])), torch.stack([y for _, y in parts])
        self._all = batch if trial.full_batch else None
        return batch

    def _step(self) -> Tensor:
        inputs, y = self._batch()
        loss = losses(self.shape, self.stack(inputs), y).mean(1)
        self.optimiser.step(loss.sum())
        return loss.detach()

    def _check(self, step: int, reached: set[int], last: bool) -> dict[int, str]:
        """Positions in the stack that are done, and why."""
        count = (step - 1) % self.rule.check_every + 1
        recent = (self.recent / count).tolist()
        done = dict.fromkeys(reached, "test error reached")
        close: list[int] = []
        for position, value in enumerate(recent):
            if not math.isfinite(value):
                done[position] = "diverged: the loss is not finite"
            elif position not in done and not self.trials[0].online and value < _NEAR * self.rule.stop_loss:
                close.append(position)
        for position, measured in zip(close, self._measure(close, "train", _MOST_TRAINING), strict=True):
            if not measured["wrong"] and measured["loss"] < self.rule.stop_loss:
                done[position] = "training loss reached"
        if last:
            for position in range(len(self.active)):
                done.setdefault(position, "steps used up")
        return done

    @torch.no_grad()
    def _measure(self, positions: Sequence[int], which: str, most: int) -> list[dict[str, Any]]:
        """Mean loss, errors and margins of some models of the stack on their training or test examples."""
        cost = 1 if self.stack.path == "bits" else self.stack.architecture.d  # numbers that a row of input becomes
        size = max(16, _ENTRIES // (2 * self.shape.rows * cost))
        results: list[dict[str, Any]] = []
        for position in positions:
            weights = {name: value[position : position + 1].detach() for name, value in self.stack.weights.items()}
            model = Stack(self.stack.architecture, self.shape, weights)
            examples = self.examples[self.active[position]]
            parts = examples.training_parts(most, size)
            if which == "test":
                parts = zip(*(part[:most].split(size) for part in examples.test), strict=True)
            pairs = [(model(model.inputs(x.unsqueeze(0))), y.unsqueeze(0)) for x, y in parts]
            wrong = torch.cat([wrongs(self.shape, *pair)[0] for pair in pairs])
            real = self.shape.answer == "real"
            results.append(
                {
                    "n": len(wrong),
                    "loss": float(torch.cat([losses(self.shape, *pair)[0] for pair in pairs]).double().mean()),
                    "wrong": float(wrong.double().sum()),
                    "margins": None if real else torch.cat([margins(self.shape, *pair)[0] for pair in pairs]),
                }
            )
        return results

    def _point(self, step: int, positions: Sequence[int]) -> set[int]:
        """Record a point of some curves; positions whose test error is low enough to stop."""
        train = self._measure(positions, "train", _CURVE_EXAMPLES)
        test = self._measure(positions, "test", _CURVE_EXAMPLES)
        reached: set[int] = set()
        for position, a, b in zip(positions, train, test, strict=True):
            index = self.active[position]
            point = {
                "step": step,
                "train_loss": _number(a["loss"]),
                "train_error": a["wrong"] / a["n"],
                "test_loss": _number(b["loss"]),
                "test_error": b["wrong"] / b["n"],
            }
            self.curves[index].append(point)
            enough = self.rule.stop_test_error
            if enough is not None and point["test_error"] <= enough:
                reached.add(position)
        if self.live is not None:
            newest = [self.curves[index][-1] for index in self.active]
            self.live({"step": step, "steps": self.rule.steps, "active": len(self.active), "points": newest})
        return reached

    def _finish(self, done: Mapping[int, str], step: int) -> None:
        started = time.process_time()
        positions = sorted(done)
        if self.curves[self.active[positions[0]]][-1]["step"] != step:
            self._point(step, positions)
        train = self._measure(positions, "train", _MOST_TRAINING)
        test = self._measure(positions, "test", max(self.trials[0].n_test, 1))
        for position, a, b in zip(positions, train, test, strict=True):
            index = self.active[position]
            weights = self.stack.one(position)
            result = self._result(index, done[position], step, weights, a, b)
            now = time.process_time()
            result["cpu_seconds"] = round(self.seconds[index] + now - started, 4)
            started = now
            self.outcomes[index] = Outcome(self.trials[index], result, weights)
        kept = [position for position in range(len(self.active)) if position not in done]
        self.active = [self.active[position] for position in kept]
        if kept:
            index = torch.tensor(kept, device=self.device)
            self.stack.keep(index)
            self.optimiser = self.optimiser.keep(index, self.stack.trained)
            self.recent = self.recent[index]
        self._all = None

    def _result(
        self,
        index: int,
        reason: str,
        step: int,
        weights: dict[str, Tensor],
        train: dict[str, Any],
        test: dict[str, Any],
    ) -> dict[str, Any]:
        trial, examples = self.trials[index], self.examples[index]
        diverged = reason.startswith("diverged")
        result: dict[str, Any] = {
            "status": "diverged" if diverged else "done",
            "reason": reason,
            "steps": step,
            "train": _errors(self.shape.answer, train),
            "test": _errors(self.shape.answer, test),
            "world": json.loads(json.dumps(examples.world)) if len(canonical(examples.world)) < 10_000 else None,
            "curves": self.curves[index],
            "path": self.stack.path,
            "sharp_steps": self.stack.sharp,
            "stack": [{"m": trial.m, "seed": trial.seed} for trial in self.trials],
            "device": str(self.device),
            "threads": torch.get_num_threads(),
            "versions": versions(),
        }
        result["gap"] = result["test"]["error"] - result["train"]["error"]
        if diverged or any(not bool(torch.isfinite(value).all()) for value in weights.values()):
            return result
        norms = measured_norms(with_own_row(trial.architecture, self.shape), weights, substream(trial.seed, "norms"))
        result["norms"] = norms.to_json()
        if "coordinates" in examples.world and self.shape.inputs == "bits":
            x = examples.test[0][:64].unsqueeze(0)
            tokens = with_read_row(x)[0]
            masses = attention_mass(trial.architecture, weights, tokens, examples.world["coordinates"])
            result["attention"] = masses
        return result


def _errors(answer: str, measured: dict[str, Any]) -> dict[str, Any]:
    n = measured["n"]
    error = measured["wrong"] / n
    out: dict[str, Any] = {"n": n, "loss": _number(measured["loss"]), "error": error}
    if answer == "real":
        return {**out, "interval": list(hoeffding(error, n))}
    wrong = round(measured["wrong"])
    interval, margins = list(clopper_pearson(wrong, n)), margin_summary(measured["margins"])
    return {**out, "wrong": wrong, "interval": interval, "margins": margins}


def _number(value: float) -> float:
    """JSON has no infinity: a diverged loss is recorded as a very large one."""
    return value if math.isfinite(value) else 1e300


def _curve_points(steps: int, every: int) -> set[int]:
    if every:
        return set(range(every, steps + 1, every))
    points, at = set[int](), 8.0
    while at <= steps:
        points.add(round(at))
        at *= 1.5
    return points
