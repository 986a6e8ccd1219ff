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


def train(trials: Sequence[Trial], *, live: _Live | None = None) -> list[Outcome]:
    """Train trials of one `stack_key` together; the outcomes are in the order of the trials."""
    if len({stack_key(trial) for trial in trials}) != 1:
        raise InvalidSetting("only trials that differ in seed and m can be trained in one stack")
    return _Training(trials, live).run()


class _Run:
    """A trial in the stack, its examples and the curve it has drawn."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.examples = trial, Examples(trial)
        self.curve: list[dict[str, float]] = []
        self.outcome: Outcome | None = None


class _Training:
    """Runs that are left, in the order of the stack that holds their weights."""

    def __init__(self, trials: Sequence[Trial], live: _Live | None) -> None:
        self.trials, self.first, self.live = trials, trials[0], live
        self.rule, self.shape, self.device = self.first.optimisation, self.first.task.shape, device()
        self.runs = [_Run(trial) for trial in trials]
        generators = [torch.Generator().manual_seed(substream(trial.seed, "init")) for trial in trials]
        self.stack = Stack.fresh(self.first.architecture, self.shape, self.first.init, generators, self.device)
        self.optimiser = StackedOptimiser(self.stack.trained, self.rule)
        self.recent = torch.zeros(len(trials), device=self.device)
        self.kept: tuple[Tensor, Tensor] | None = None

    def run(self) -> list[Outcome]:
        every, started = self.runs, time.process_time()
        points = _curve_points(self.rule.steps, self.rule.curve_every)
        self._points(0)
        for step in range(1, self.rule.steps + 1):
            loss = self._step()
            self.recent = loss if step % _LOOK == 1 else self.recent + loss
            last = step == self.rule.steps
            done = dict.fromkeys(self._points(step) if last or step in points else (), "test error reached")
            if last or step % _LOOK == 0:
                self._check(step, done)
            if last:
                done = dict.fromkeys(range(len(self.runs)), "steps used up") | done
            if done:
                self._finish(done, step)
            if not self.runs:
                break
        outcomes = [run.outcome for run in every if run.outcome is not None]
        for outcome in outcomes:
            outcome.result["cpu_seconds"] = round((time.process_time() - started) / len(outcomes), 4)
        return outcomes

    def _batch(self) -> tuple[Tensor, Tensor]:
        """The next inputs and answers of every trial; where every step sees all of them, they are made once."""
        if self.kept is not None:
            return self.kept
        full = self.first.full_batch
        parts = [(full and run.examples.train) or run.examples.batch() for run in self.runs]
        x, y = (torch.stack(side).to(self.device) for side in zip(*parts, strict=True))
        batch = self.stack.inputs(x), y
        self.kept = batch if full else None
        return batch

    def _step(self) -> Tensor:
        """One update of every trial, and the losses before it."""
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
            elif position not in done and not self.first.online and value < _NEAR * self.rule.stop_loss:
                outputs = self._outputs(position, "train", _MOST_TRAINING)
                if not wrongs(*outputs).any() and losses(*outputs).double().mean() < self.rule.stop_loss:
                    done[position] = "training loss reached"

    @torch.no_grad()
    def _outputs(self, position: int, which: str, most: int) -> tuple[Any, Tensor, Tensor]:
        """Shape, outputs (1, n, classes) and answers (1, n) of a model on its training or test examples."""
        cost = 1 if self.stack.plan else self.stack.architecture.d  # numbers that a row of input becomes
        size = max(16, _ENTRIES // (2 * self.shape.rows * cost))
        model = Stack(self.stack.architecture, self.shape, self.stack.some(slice(position, position + 1)))
        parts = list(self.runs[position].examples.parts(which, most, size))
        outputs = [model(model.inputs(x.unsqueeze(0).to(self.device))).cpu() for x, _ in parts]
        return self.shape, torch.cat(outputs, 1), torch.cat([y for _, y in parts]).unsqueeze(0)

    def _points(self, step: int) -> list[int]:
        """Record a point of every curve; positions whose test error is low enough to stop."""
        newest = [self._point(step, position) for position in range(len(self.runs))]
        if self.live is not None:
            self.live({"step": step, "steps": self.rule.steps, "active": len(self.runs), "points": newest})
        enough = self.rule.stop_test_error
        return [i for i, point in enumerate(newest) if enough is not None and point["test_error"] <= enough]

    def _point(self, step: int, position: int) -> dict[str, float]:
        """Record a point of a curve."""
        point: dict[str, float] = {"step": step}
        for which in ("train", "test"):
            outputs = self._outputs(position, which, _CURVE_EXAMPLES)
            for name, of in (("loss", losses), ("error", wrongs)):
                point[f"{which}_{name}"] = _recordable(of(*outputs).double().mean())
        self.runs[position].curve.append(point)
        return point

    def _finish(self, done: Mapping[int, str], step: int) -> None:
        """Record the results of runs that are done, by their position; the others go on."""
        for position, reason in sorted(done.items()):
            run = self.runs[position]
            if run.curve[-1]["step"] != step:
                self._point(step, position)
            result: dict[str, Any] = {"status": "diverged" if reason.startswith("diverged") else "done"}
            result |= {"reason": reason, "steps": step}
            for which, most in (("train", _MOST_TRAINING), ("test", run.trial.n_test)):
                result[which] = _errors(*self._outputs(position, which, most))
            weights = {name: value.detach().clone().cpu() for name, value in self.stack.some(position).items()}
            result |= {"gap": result["test"]["error"] - result["train"]["error"], **self._record(run, weights)}
            run.outcome = Outcome(run.trial, result, weights)
        left = [position for position in range(len(self.runs)) if position not in done]
        self.runs, self.kept = [self.runs[position] for position in left], None
        if left:
            kept = torch.tensor(left, device=self.device)
            self.stack.keep(kept)
            self.optimiser.keep(kept)
            self.recent = self.recent[kept]

    def _record(self, run: _Run, weights: dict[str, Tensor]) -> dict[str, Any]:
        """How a trial was run, and what is read off its weights where they are finite."""
        trial, world = run.trial, run.examples.world
        record: dict[str, Any] = {
            "world": json.loads(json.dumps(world)),
            "curves": run.curve,
            "stack": [{"m": trial.m, "seed": trial.seed} for trial in self.trials],
            "device": self.device.type,
            "threads": torch.get_num_threads(),
            "versions": versions(),
        }
        if all(bool(torch.isfinite(value).all()) for value in weights.values()):
            record["norms"] = measured_norms(trial.model, weights, substream(trial.seed, "norms")).to_json()
            if "coordinates" in world and self.shape.inputs == "bits":
                tokens = with_read_row(run.examples.test[0][:64])
                record["attention"] = attention_mass(trial.architecture, weights, tokens, world["coordinates"])
        return record


def _errors(shape: Any, outputs: Tensor, y: Tensor) -> dict[str, Any]:
    """Mean loss and error of outputs, with an exact interval; quantiles of margins where answers are right or wrong."""
    n, wrong = y.shape[1], float(wrongs(shape, outputs, y).double().sum())
    loss = _recordable(losses(shape, outputs, y).double().mean())
    errors: dict[str, Any] = {"n": n, "loss": loss, "error": wrong / n}
    if shape.answer == "real":
        return errors | {"interval": list(hoeffding(wrong / n, n))}
    summary = margin_summary(margins(shape, outputs, y)[0])
    return errors | {"interval": list(clopper_pearson(round(wrong), n)), "wrong": round(wrong), "margins": summary}


def _recordable(value: Tensor) -> float:
    """JSON has no infinity: a diverged loss is recorded as a very large one."""
    return float(value) if math.isfinite(value) else 1e300


def _curve_points(steps: int, every: int) -> set[int]:
    """Steps at which curves are measured: so far apart, or each half as many steps later again as the one before."""
    if every:
        return set(range(every, steps + 1, every))
    return {round(8 * 1.5**k) for k in range(int(math.log(max(steps, 8) / 8, 1.5)) + 1)} & set(range(steps + 1))
