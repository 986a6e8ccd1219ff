"""Learners for certificates: this package's models, and anyone's torch module, trained on a prefix and on picks.

Bits of the weights depend on the recipe, the seed and the examples alone: one seeded generator per fit, batches whose
size depends on how many examples there are, scores in chunks of one shape.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from boundcalc.base import validate
from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.lab.train.device import versions
from boundcalc.lab.train.network import refuse_real
from boundcalc.lab.train.optim import StackedOptimiser
from boundcalc.lab.train.parameters import Init
from boundcalc.lab.train.source import substream
from boundcalc.lab.train.stack import Stack, losses, margins
from boundcalc.lab.train.tasks import Shape
from boundcalc.lab.train.trial import Optimisation, Trial
from boundcalc.predictors.data import Array, Data
from boundcalc.setting import Architecture

CHUNK = 256
"""Examples scored at once. Fewer are padded: a batch of one takes other kernels, and other last bits."""


@dataclass(frozen=True)
class PickRule:
    """How long a learner trains.

    Attributes:
        batch: examples per step, where there are more than `whole`.
        whole: up to so many examples, every step sees all.
        prefix_steps: most steps on a prefix.
        prefix_loss: training on a prefix ends when all its examples are right with a mean loss below this.
        round_steps: most steps after a round of picks.
        round_loss: training after a round ends when the loss is below this.
        round_lr: learning rate after a round; 0 for that of the prefix.
    """

    batch: int = 16
    whole: int = 64
    prefix_steps: int = 3000
    prefix_loss: float = 5e-3
    round_steps: int = 300
    round_loss: float = 0.01
    round_lr: float = 0.0

    def __post_init__(self) -> None:
        for name in ("batch", "whole", "prefix_steps", "round_steps"):
            object.__setattr__(self, name, validate.size(name, getattr(self, name)))
        for name in ("prefix_loss", "round_loss", "round_lr"):
            validate.positive(name, getattr(self, name), zero=True)


@dataclass
class _State:
    model: Any
    optimiser: Any
    seed: int
    fits: int = 0


@dataclass(kw_only=True)
class _TorchLearner(ABC):
    """The loop that both learners share."""

    rule: PickRule = field(default_factory=PickRule)
    device: str = "cpu"

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions, threads, and the kernels of the processor."""
        capability = torch.backends.cpu.get_cpu_capability()
        return {**versions(), "threads": torch.get_num_threads(), "device": self.device, "cpu": capability}

    def fit(self, state: _State, examples: Data, prefix: int) -> _State:
        """Train on: many steps on a prefix alone, fewer after a round."""
        x, y = self._tensors(examples)
        first = not state.fits and prefix == len(examples)
        steps = self.rule.prefix_steps if first else self.rule.round_steps
        enough = self.rule.prefix_loss if first else self.rule.round_loss
        generator = torch.Generator().manual_seed(substream(state.seed, "fit", state.fits))
        state.fits += 1
        if not first and self.rule.round_lr:
            self._set_rate(state, self.rule.round_lr)
        if len(y) <= self.rule.whole:
            for _ in range(steps):
                if self._step(state, x, y) < enough:
                    break
            return state
        recent = 0.0
        for step in range(1, steps + 1):
            chosen = torch.randint(len(y), (self.rule.batch,), generator=generator).to(x.device)
            recent += self._step(state, x[chosen], y[chosen])
            if step % 10 == 0:
                if recent / 10 < 4 * enough and self._done(state, x, y, enough):
                    break
                recent = 0.0
        return state

    @torch.no_grad()
    def scores(self, state: _State, examples: Data) -> Array:
        """How far the right answer is ahead."""
        x, y = self._tensors(examples)
        ahead: list[Tensor] = []
        for part, answers in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            short = CHUNK - len(part)
            full = torch.cat([part, part[:1].expand(short, *part.shape[1:])]) if short else part
            filled = torch.cat([answers, answers[:1].expand(short)]) if short else answers
            ahead.append(self._margins(state.model, full, filled)[: len(part)])
        return torch.cat(ahead).double().cpu().numpy()

    @torch.no_grad()
    def _done(self, state: _State, x: Tensor, y: Tensor, enough: float) -> bool:
        loss, ahead = 0.0, True
        for part, answers in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            loss += float(self._mean(state.model, part, answers)) * len(part)
            ahead = ahead and bool((self._margins(state.model, part, answers) > 0).all())
        return ahead and loss / len(y) < enough

    def _tensors(self, examples: Data) -> tuple[Tensor, Tensor]:
        x = torch.from_numpy(np.ascontiguousarray(examples.x)).to(self.device)
        return x, torch.from_numpy(np.ascontiguousarray(examples.y)).to(self.device)

    def _step(self, state: _State, x: Tensor, y: Tensor) -> float:
        loss = self._mean(state.model, x, y)
        state.optimiser.step(loss)
        return float(loss.detach())

    def _set_rate(self, state: _State, lr: float) -> None:
        state.optimiser.rule = replace(state.optimiser.rule, lr=lr, warmup=0)

    @abstractmethod
    def start(self, seed: int) -> _State:
        """A fresh model."""

    @abstractmethod
    def _mean(self, model: Any, x: Tensor, y: Tensor) -> Tensor:
        """The loss."""

    @abstractmethod
    def _margins(self, model: Any, x: Tensor, y: Tensor) -> Tensor: ...

    def dump(self, state: _State) -> bytes:
        """The state as torch writes tensors."""
        out = io.BytesIO()
        parts = {"model": state.model.state_dict(), "optimiser": state.optimiser.state_dict()}
        torch.save({"seed": state.seed, "fits": state.fits, **parts}, out)
        return out.getvalue()

    def restore(self, data: bytes) -> _State:
        """A state that `dump` wrote; objects other than tensors and plain containers are refused."""
        saved = torch.load(io.BytesIO(data), weights_only=True)
        state = self.start(saved["seed"])
        state.fits = saved["fits"]
        state.model.load_state_dict(saved["model"])
        state.optimiser.load_state_dict(saved["optimiser"])
        return state


@dataclass(kw_only=True)
class ModelLearner(_TorchLearner):
    """A model of this package, as `boundcalc train` makes it."""

    architecture: Architecture
    shape: Shape
    init: Init = field(default_factory=Init)
    optimisation: Optimisation = field(default_factory=Optimisation)

    def __post_init__(self) -> None:
        refuse_real(self.shape)
        if self.optimisation.balls:
            raise InvalidSetting("a ModelLearner trains in float32 or float64 without norm balls: leave --ball out")

    @property
    def recipe(self) -> Mapping[str, Any]:
        """All that determines the weights, besides seed and examples."""
        names = ("optimiser", "lr", "weight_decay", "momentum", "warmup", "clip", "precision")
        return {
            "kind": "model",
            "architecture": self.architecture.to_json(),
            "shape": asdict(self.shape),
            "init": asdict(self.init),
            "optimisation": {name: getattr(self.optimisation, name) for name in names},
            "rule": asdict(self.rule),
        }

    @classmethod
    def of(cls, trial: Trial, **changes: Any) -> ModelLearner:
        """The learner that trains a trial's model by its optimisation; `changes` are those of its rule."""
        rule = trial.optimisation
        steps = PickRule(batch=rule.batch or 16, prefix_steps=rule.steps, prefix_loss=rule.stop_loss)
        return cls(
            rule=replace(steps, **changes),
            device=trial.device,
            architecture=trial.architecture,
            shape=trial.task.shape,
            init=trial.init,
            optimisation=rule,
        )

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any], device: str = "cpu") -> ModelLearner:
        """The learner of a certificate."""
        kinds = {"rule": PickRule, "shape": Shape, "init": Init, "optimisation": Optimisation}
        try:
            parts: dict[str, Any] = {name: kind(**recipe[name]) for name, kind in kinds.items()}
            return cls(device=device, architecture=Architecture.from_json(recipe["architecture"]), **parts)
        except (KeyError, TypeError) as error:
            raise CertificateError(f"the recipe of the certificate makes no model: {error}") from None

    def start(self, seed: int) -> _State:
        """The model of `boundcalc train` with this seed, before its first step."""
        generator = torch.Generator(self.device).manual_seed(substream(seed, "init"))
        dtype = torch.float64 if self.optimisation.precision == "float64" else torch.float32
        stack = Stack.fresh(self.architecture, self.shape, self.init, [generator], dtype)
        stack.require_grad()
        return _State(stack, StackedOptimiser(stack.trained, self.optimisation), seed)

    def _mean(self, model: Any, x: Tensor, y: Tensor) -> Tensor:
        return losses(self.shape, model(model.inputs(x.unsqueeze(0))), y.unsqueeze(0)).mean()

    def _margins(self, model: Any, x: Tensor, y: Tensor) -> Tensor:
        return margins(self.shape, model(model.inputs(x.unsqueeze(0))), y.unsqueeze(0))[0]

    def weights(self, state: _State) -> Mapping[str, Array]:
        """The tensors by the names of norms files."""
        return {name: value.cpu().numpy() for name, value in state.model.one(0).items()}


_Loss = Callable[[Tensor, Tensor], Tensor]
_MakeOptimiser = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def _adam(weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(weights, lr=1e-3)


@dataclass(kw_only=True)
class ModuleLearner(_TorchLearner):
    """A learner that trains your torch module: `make()` returns a fresh one, with logits or one score as output.

    Attributes:
        make: makes the module; called with torch's generator seeded.
        name: what the certificate calls it: a path and a function, say; what it makes must not change.
        loss: of outputs and answers, a mean; cross-entropy unless given.
        optimiser: makes the optimiser of the parameters; Adam unless given.
    """

    make: Callable[[], nn.Module]
    name: str = "module"
    loss: _Loss | None = None
    optimiser: _MakeOptimiser = _adam

    @property
    def recipe(self) -> Mapping[str, Any]:
        """Names, and the digest of a fresh module's shapes: code itself is the user's to keep."""
        module = self.start(0).model
        shapes = {name: list(value.shape) for name, value in module.state_dict().items()}
        rule = self.optimiser(module.parameters())
        numbers = {k: v for k, v in rule.defaults.items() if isinstance(v, int | float | str | bool)}
        return {
            "kind": "module",
            "name": self.name,
            "shapes": shapes,
            "optimiser": {"name": type(rule).__name__, **numbers},
            "rule": asdict(self.rule),
        }

    def start(self, seed: int) -> _State:
        """A fresh module; torch's own generator is left as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(substream(seed, "init"))
            module = self.make().to(self.device)
        return _State(module, self.optimiser(module.parameters()), seed)

    def fit(self, state: _State, examples: Data, prefix: int) -> _State:
        """Train on, with torch's own generator seeded: dropout is then a function of the picks."""
        state.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(substream(state.seed, "noise", state.fits))
            super().fit(state, examples, prefix)
        state.model.eval()
        return state

    def scores(self, state: _State, examples: Data) -> Array:
        """In evaluation mode."""
        state.model.eval()
        return super().scores(state, examples)

    def _step(self, state: _State, x: Tensor, y: Tensor) -> float:
        loss = self._mean(state.model, x, y)
        state.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        state.optimiser.step()
        return float(loss.detach())

    def _set_rate(self, state: _State, lr: float) -> None:
        for group in state.optimiser.param_groups:
            group["lr"] = lr

    def _mean(self, model: Any, x: Tensor, y: Tensor) -> Tensor:
        outputs = model(x)
        if self.loss is not None:
            return self.loss(outputs, y)
        if _binary(outputs):
            score = outputs.reshape(len(y))
            return nn.functional.binary_cross_entropy_with_logits(score, y.to(score.dtype))
        return nn.functional.cross_entropy(outputs, y.long())

    def _margins(self, model: Any, x: Tensor, y: Tensor) -> Tensor:
        outputs = model(x)
        binary = _binary(outputs)
        shape = Shape("rows", 1, "binary" if binary else "classes", width=1)
        return margins(shape, (outputs.reshape(len(y), 1) if binary else outputs).unsqueeze(0), y.unsqueeze(0))[0]

    def weights(self, state: _State) -> Mapping[str, Array]:
        """The module's tensors, copied."""
        return {name: value.detach().cpu().numpy().copy() for name, value in state.model.state_dict().items()}


def _binary(outputs: Tensor) -> bool:
    return outputs.dim() == 1 or outputs.shape[-1] == 1
