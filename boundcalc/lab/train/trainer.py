"""Many trials as one tensor program: each leaves the stack when it is done, for a reason that is recorded."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from boundcalc.base.answers import clopper_pearson, hoeffding
from boundcalc.base.errors import InvalidSetting
from boundcalc.lab.train._data import Examples
from boundcalc.lab.train.measure import attention_mass, margin_summary, measured_norms
from boundcalc.lab.train.optim import StackedOptimiser
from boundcalc.lab.train.source import substream
from boundcalc.lab.train.stack import Stack, losses, margins, with_read_row, wrongs
from boundcalc.lab.train.trial import Trial, canonical

_CURVE_EXAMPLES = 512
"""Examples on which points of a curve are measured; final errors use all."""
_MOST_TRAINING = 2**18
"""Training examples on which the final training error is measured."""
_ENTRIES = 2**22
"""Entries of inputs evaluated at once."""
_LOOK = 10
"""Steps between looks at the stopping rule."""
_NEAR = 4.0
"""The stopping rule measures all examples once the running loss is below this many times its threshold."""

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
        return {name: value.numpy() for name, value in self.weights.items()}


def device() -> torch.device:
    """The GPU where there is one, the CPU otherwise; data and starting weights are drawn on the CPU, alike for both."""
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator or torch.device("cpu")


def versions() -> dict[str, str]:
    """Versions that a result was computed with."""
    from boundcalc import __version__

    return {"boundcalc": __version__, "torch": torch.__version__, "python": platform.python_version()}


def stack_key(trial: Trial) -> str:
    """Trials with one key may share a stack: all agrees but seed and m (of full batches m too)."""
    content = trial.to_json() | {"task": asdict(trial.task.shape), "m": trial.batch, "seed": trial.full_batch}
    return canonical(content | {"optimisation": {**content["optimisation"], "batch": 0}})


def stack_of(trial: Trial, result: Mapping[str, Any]) -> list[Trial]:
    """The trials that a stored result was computed with: trained together again they give it again, to the bit.

    Alone, or in another stack, a trial's sums round differently (by about 1e-6 in the weights of a CPU).
    """
    return [trial.but(m=mate["m"], seed=mate["seed"]) for mate in result["stack"]]


def train(trials: Sequence[Trial], *, live: _Live | None = None) -> list[Outcome]:
    """Train trials of one `stack_key` together; the outcomes are in the order of the trials."""
    if len({stack_key(trial) for trial in trials}) != 1:
        raise InvalidSetting("only trials that differ in seed and m can be trained in one stack")
    return _Training(trials, live).run()


class _Training:
    def __init__(self, trials: Sequence[Trial], live: _Live | None) -> None:
        self.trials, self.live = list(trials), live
        first = trials[0]
        self.rule, self.shape = first.optimisation, first.task.shape
        self.examples = [Examples(trial) for trial in trials]
        generators = [torch.Generator().manual_seed(substream(trial.seed, "init")) for trial in trials]
        self.device = device()
        self.stack = Stack.fresh(first.architecture, self.shape, first.init, generators, self.device)
        self.optimiser = StackedOptimiser(self.stack.trained, self.rule)
        self.active = list(range(len(trials)))
        self.recent = torch.zeros(len(trials), device=self.device)
        self.curves: list[list[dict[str, float]]] = [[] for _ in trials]
        self.clock, self.share = time.process_time(), 0.0
        self.outcomes: dict[int, Outcome] = {}
        self.points = _curve_points(self.rule.steps, self.rule.curve_every)
        self._all: tuple[Tensor, Tensor] | None = None

    def run(self) -> list[Outcome]:
        self._points(0)
        for step in range(1, self.rule.steps + 1):
            loss = self._step()
            self.recent = loss if step % _LOOK == 1 else self.recent + loss
            last = step == self.rule.steps
            done = dict.fromkeys(self._points(step) if last or step in self.points else (), "test error reached")
            if last or step % _LOOK == 0:
                self._check(step, done)
            if last:
                done = dict.fromkeys(range(len(self.active)), "steps used up") | done
            if done:
                self._finish(done, step)
            if not self.active:
                break
        return [self.outcomes[index] for index in range(len(self.trials))]

    def _batch(self) -> tuple[Tensor, Tensor]:
        """The next inputs and answers of every trial; where every step sees all of them, they are made once."""
        if self._all is not None:
            return self._all
        full = self.trials[0].full_batch
        parts = [(full and self.examples[index].train) or self.examples[index].batch() for index in self.active]
        x, y = (torch.stack(side).to(self.device) for side in zip(*parts, strict=True))
        batch = self.stack.inputs(x), y
        self._all = batch if full else None
        return batch

    def _step(self) -> Tensor:
        inputs, y = self._batch()
        loss = losses(self.shape, self.stack(inputs), y).mean(1)
        self.optimiser.zero_grad()
        loss.sum().backward()
        self.optimiser.step()
        return loss.detach()

    def _check(self, step: int, done: dict[int, str]) -> None:
        """Add positions in the stack whose loss is small enough, or not finite."""
        for position, value in enumerate((self.recent / ((step - 1) % _LOOK + 1)).tolist()):
            if not math.isfinite(value):
                done[position] = "diverged: the loss is not finite"
            elif position not in done and not self.trials[0].online and value < _NEAR * self.rule.stop_loss:
                measured = self._measure(position, "train", _MOST_TRAINING)
                if not measured["wrong"] and measured["loss"] < self.rule.stop_loss:
                    done[position] = "training loss reached"

    @torch.no_grad()
    def _measure(self, position: int, which: str, most: int) -> dict[str, Any]:
        """Mean loss, errors and margins of a model of the stack on its training or test examples."""
        cost = 1 if self.stack.plan else self.stack.architecture.d  # numbers that a row of input becomes
        size = max(16, _ENTRIES // (2 * self.shape.rows * cost))
        weights = {name: value[position : position + 1].detach() for name, value in self.stack.weights.items()}
        model = Stack(self.stack.architecture, self.shape, weights)
        parts = self.examples[self.active[position]].parts(which, most, size)
        pairs = [(model(model.inputs(x.unsqueeze(0).to(self.device))).cpu(), y.unsqueeze(0)) for x, y in parts]
        wrong, loss = (torch.cat([of(self.shape, *pair)[0] for pair in pairs]).double() for of in (wrongs, losses))
        real = self.shape.answer == "real"
        return {
            "n": len(wrong),
            "loss": _number(float(loss.mean())),
            "wrong": float(wrong.sum()),
            "margins": None if real else torch.cat([margins(self.shape, *pair)[0] for pair in pairs]),
        }

    def _points(self, step: int) -> list[int]:
        """Record a point of every curve; positions whose test error is low enough to stop."""
        for position in range(len(self.active)):
            self._point(step, position)
        newest = [self.curves[index][-1] for index in self.active]
        if self.live is not None:
            self.live({"step": step, "steps": self.rule.steps, "active": len(self.active), "points": newest})
        enough = self.rule.stop_test_error
        return [i for i, point in enumerate(newest) if enough is not None and point["test_error"] <= enough]

    def _point(self, step: int, position: int) -> None:
        """Record a point of a curve."""
        point: dict[str, float] = {"step": step}
        for which in ("train", "test"):
            values = self._measure(position, which, _CURVE_EXAMPLES)
            point[f"{which}_loss"], point[f"{which}_error"] = values["loss"], values["wrong"] / values["n"]
        self.curves[self.active[position]].append(point)

    def _finish(self, done: Mapping[int, str], step: int) -> None:
        now = time.process_time()
        self.share += (now - self.clock) / len(self.active)  # of every trial that is not done yet
        self.clock = now
        for position, reason in sorted(done.items()):
            index = self.active[position]
            if self.curves[index][-1]["step"] != step:
                self._point(step, position)
            measured = [
                self._measure(position, which, most)
                for which, most in (("train", _MOST_TRAINING), ("test", self.trials[index].n_test))
            ]
            weights = self.stack.one(position)
            result: dict[str, Any] = {"status": "diverged" if reason.startswith("diverged") else "done"}
            result |= {"reason": reason, "steps": step, **self._errors(*measured), **self._record(index, weights)}
            result["cpu_seconds"] = round(self.share, 4)
            self.outcomes[index] = Outcome(self.trials[index], result, weights)
        left = [position for position in range(len(self.active)) if position not in done]
        kept = torch.tensor(left, dtype=torch.long, device=self.device)
        self.active = [self.active[position] for position in kept.tolist()]
        if self.active:
            self.stack.keep(kept)
            self.optimiser = self.optimiser.kept(kept, self.stack.trained)
            self.recent = self.recent[kept]
        self._all = None

    def _errors(self, *measured: dict[str, Any]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for which, values in zip(("train", "test"), measured, strict=True):
            n, error = values["n"], values["wrong"] / values["n"]
            out[which] = {"n": n, "loss": values["loss"], "error": error, "interval": list(hoeffding(error, n))}
            if values["margins"] is not None:
                wrong = round(values["wrong"])
                interval, margins = list(clopper_pearson(wrong, n)), margin_summary(values["margins"])
                out[which] |= {"wrong": wrong, "interval": interval, "margins": margins}
        return out | {"gap": out["test"]["error"] - out["train"]["error"]}

    def _record(self, index: int, weights: dict[str, Tensor]) -> dict[str, Any]:
        """How a trial was run, and what is read off its weights where they are finite."""
        trial, examples = self.trials[index], self.examples[index]
        record: dict[str, Any] = {
            "world": json.loads(json.dumps(examples.world)),
            "curves": self.curves[index],
            "path": "bits" if self.stack.plan else "row",
            "sharp_steps": self.stack.sharp,
            "stack": [{"m": trial.m, "seed": trial.seed} for trial in self.trials],
            "device": self.device.type,
            "threads": torch.get_num_threads(),
            "versions": versions(),
        }
        if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
            return record
        record["norms"] = measured_norms(trial.model, weights, substream(trial.seed, "norms")).to_json()
        if "coordinates" in examples.world and self.shape.inputs == "bits":
            tokens = with_read_row(examples.test[0][:64])
            record["attention"] = attention_mass(trial.architecture, weights, tokens, examples.world["coordinates"])
        return record


def _number(value: float) -> float:
    """JSON has no infinity: a diverged loss is recorded as a very large one."""
    return value if math.isfinite(value) else 1e300


def _curve_points(steps: int, every: int) -> set[int]:
    if every:
        return set(range(every, steps + 1, every))
    return {round(8 * 1.5**k) for k in range(int(math.log(max(steps, 8) / 8, 1.5)) + 1)} & set(range(steps + 1))
