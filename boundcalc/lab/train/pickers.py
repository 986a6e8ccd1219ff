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

from boundcalc.base.errors import CertificateError, InvalidSetting
from boundcalc.base.schema import Length, Size, check_fields, read
from boundcalc.lab.train.network import refuse_real
from boundcalc.lab.train.optim import StackedOptimiser
from boundcalc.lab.train.parameters import Init
from boundcalc.lab.train.source import substream
from boundcalc.lab.train.stack import Stack, losses, margins
from boundcalc.lab.train.tasks import Shape
from boundcalc.lab.train.trainer import versions
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

    batch: Size = 16
    whole: Size = 64
    prefix_steps: Size = 3000
    prefix_loss: Length = 5e-3
    round_steps: Size = 300
    round_loss: Length = 0.01
    round_lr: Length = 0.0

    def __post_init__(self) -> None:
        check_fields(self)


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

    @abstractmethod
    def start(self, seed: int) -> _State:
        """A fresh model."""

    @abstractmethod
    def _outputs(self, model: Any, x: Tensor) -> Tensor: ...

    @abstractmethod
    def _loss(self, outputs: Tensor, y: Tensor) -> Tensor: ...

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions, threads, and the kernels of the processor."""
        capability = torch.backends.cpu.get_cpu_capability()
        return {**versions(), "threads": torch.get_num_threads(), "device": self.device, "cpu": capability}

    def fit(self, state: _State, examples: Data, prefix: int) -> _State:
        """Train on: many steps on a prefix alone, fewer after a round."""
        x, y = self._tensors(examples)
        rule = self.rule
        first = not state.fits and prefix == len(examples)
        steps, enough = (rule.prefix_steps, rule.prefix_loss) if first else (rule.round_steps, rule.round_loss)
        generator = torch.Generator().manual_seed(substream(state.seed, "fit", state.fits))
        state.fits += 1
        if not first and rule.round_lr:
            for group in state.optimiser.param_groups:
                group["lr"] = rule.round_lr
        recent = 0.0
        for step in range(1, steps + 1):
            if len(y) <= rule.whole:
                if self._step(state, x, y) < enough:
                    break
                continue
            chosen = torch.randint(len(y), (rule.batch,), generator=generator).to(x.device)
            recent += self._step(state, x[chosen], y[chosen])
            if step % 10 == 0:
                if recent / 10 < 4 * enough and self._done(state, x, y, enough):
                    break
                recent = 0.0
        return state

    def _step(self, state: _State, x: Tensor, y: Tensor) -> float:
        loss = self._loss(self._outputs(state.model, x), y)
        state.optimiser.zero_grad()
        loss.backward()
        state.optimiser.step()
        return float(loss.detach())

    @torch.no_grad()
    def _done(self, state: _State, x: Tensor, y: Tensor, enough: float) -> bool:
        loss, right = 0.0, True
        for part, answers in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            outputs = self._outputs(state.model, part)
            loss += float(self._loss(outputs, answers)) * len(part)
            right = right and bool((_ahead(outputs, answers) > 0).all())
        return right and loss / len(y) < enough

    @torch.no_grad()
    def scores(self, state: _State, examples: Data) -> Array:
        """How far the right answer is ahead."""
        x, y = self._tensors(examples)
        ahead: list[Tensor] = []
        for part, answers in zip(x.split(CHUNK), y.split(CHUNK), strict=True):
            short = CHUNK - len(part)
            full = torch.cat([part, part[:1].expand(short, *part.shape[1:])]) if short else part
            ahead.append(_ahead(self._outputs(state.model, full)[: len(part)], answers))
        return torch.cat(ahead).double().cpu().numpy()

    def _tensors(self, examples: Data) -> tuple[Tensor, Tensor]:
        x, y = (torch.from_numpy(np.ascontiguousarray(array)).to(self.device) for array in (examples.x, examples.y))
        return x, y

    def weights(self, state: _State) -> Mapping[str, Array]:
        """The tensors by their names, copied; those of this package's models by the names of norms files."""
        return {name: value.detach().cpu().numpy().copy() for name, value in state.model.state_dict().items()}

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


def _binary(outputs: Tensor) -> bool:
    return outputs.dim() == 1 or outputs.shape[-1] == 1


def _ahead(outputs: Tensor, y: Tensor) -> Tensor:
    """How far the right answer is ahead, of one score or of logits."""
    shape = Shape("rows", 1, "binary" if _binary(outputs) else "classes", width=1)
    return margins(shape, outputs.reshape(1, len(y), -1), y.unsqueeze(0))[0]


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
            raise InvalidSetting("a ModelLearner trains without norm balls: leave --ball out")

    @property
    def recipe(self) -> Mapping[str, Any]:
        """All that determines the weights, besides seed and examples."""
        return {
            "kind": "model",
            "architecture": self.architecture.to_json(),
            "shape": asdict(self.shape),
            "init": asdict(self.init),
            "optimisation": {name: getattr(self.optimisation, name) for name in ("lr", "weight_decay", "warmup")},
            "rule": asdict(self.rule),
        }

    @classmethod
    def of(cls, trial: Trial, **changes: Any) -> ModelLearner:
        """The learner that trains a trial's model by its optimisation; `changes` are those of its rule."""
        how = trial.optimisation
        steps = PickRule(batch=how.batch or 16, prefix_steps=how.steps, prefix_loss=how.stop_loss)
        parts: dict[str, Any] = {"architecture": trial.architecture, "shape": trial.task.shape, "init": trial.init}
        return cls(rule=replace(steps, **changes), optimisation=how, **parts)

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any]) -> ModelLearner:
        """The learner of a certificate."""
        kinds = {"rule": PickRule, "shape": Shape, "init": Init, "optimisation": Optimisation}
        try:
            parts: dict[str, Any] = {name: read(kind, recipe[name], name) for name, kind in kinds.items()}
            return cls(architecture=Architecture.from_json(recipe["architecture"]), **parts)
        except (KeyError, InvalidSetting) as error:
            raise CertificateError(f"the recipe of the certificate makes no model: {error}") from None

    def start(self, seed: int) -> _State:
        """The model of `boundcalc train` with this seed, before its first step."""
        generator = torch.Generator().manual_seed(substream(seed, "init"))
        stack = Stack.fresh(self.architecture, self.shape, self.init, [generator])
        return _State(stack, StackedOptimiser(stack.trained, self.optimisation), seed)

    def _outputs(self, model: Any, x: Tensor) -> Tensor:
        return model(model.inputs(x.unsqueeze(0)))[0]

    def _loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        return losses(self.shape, outputs.unsqueeze(0), y.unsqueeze(0)).mean()

    def weights(self, state: _State) -> Mapping[str, Array]:
        """The tensors by the names of norms files."""
        return {name: value.numpy() for name, value in state.model.one(0).items()}


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
    loss: Callable[[Tensor, Tensor], Tensor] | None = None
    optimiser: _MakeOptimiser = _adam

    @property
    def recipe(self) -> Mapping[str, Any]:
        """Names, and the shapes of a fresh module's tensors: code itself is the user's to keep."""
        state = self.start(0)
        rule = state.optimiser
        numbers = {k: v for k, v in rule.defaults.items() if isinstance(v, int | float | str | bool)}
        return {
            "kind": "module",
            "name": self.name,
            "shapes": {name: list(value.shape) for name, value in state.model.state_dict().items()},
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

    def _outputs(self, model: Any, x: Tensor) -> Tensor:
        return model(x)

    def _loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        if self.loss is not None:
            return self.loss(outputs, y)
        if _binary(outputs):
            score = outputs.reshape(len(y))
            return nn.functional.binary_cross_entropy_with_logits(score, y.to(score.dtype))
        return nn.functional.cross_entropy(outputs, y.long())
