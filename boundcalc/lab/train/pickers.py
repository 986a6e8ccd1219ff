"""Learners for certificates: this package's models, and anyone's torch module, trained on a prefix and on picks.

Bits of the weights depend on the recipe, the seed and the examples alone: one seeded generator per fit, batches whose
size depends on how many examples there are, scores in chunks of one shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
_WHOLE = 64
"""Up to so many examples, every step of training sees all."""


@dataclass(frozen=True)
class PickRule:
    """How long a learner trains.

    Attributes:
        batch: examples per step, where there are more than 64; fewer are seen whole.
        prefix_steps: most steps on a prefix.
        prefix_loss: training on a prefix ends when all its examples are right with a mean loss below this.
        round_steps: most steps after a round of picks.
        round_loss: training after a round ends when the loss is below this.
        round_lr: learning rate after a round; 0 for that of the prefix.
    """

    batch: Size = 16
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


def _adam(weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Adam(weights, lr=1e-3)


def _measured(measure: Callable[[Shape, Tensor, Tensor], Tensor], outputs: Tensor, y: Tensor) -> Tensor:
    """Losses or margins of a batch, whose outputs are one score or logits."""
    binary = outputs.dim() == 1 or outputs.shape[-1] == 1
    shape = Shape("rows", 1, "binary" if binary else "classes", width=1)
    return measure(shape, outputs.reshape(1, len(y), -1), y.unsqueeze(0))


def _mean_loss(outputs: Tensor, y: Tensor) -> Tensor:
    """Mean logistic loss of one score, or cross-entropy of logits."""
    return _measured(losses, outputs, y).mean()


@dataclass(kw_only=True)
class ModuleLearner:
    """A learner that trains your torch module: `make()` returns a fresh one, with logits or one score as output.

    Attributes:
        make: makes the module; called with torch's generator seeded.
        name: what the certificate calls it: a path and a function, say; what it makes must not change.
        loss: of outputs and answers, a mean; cross-entropy unless given.
        optimiser: makes the optimiser of the parameters; Adam unless given.
        rule: how long it trains.
        device: where it trains.
    """

    make: Callable[[], nn.Module]
    name: str = "module"
    loss: Callable[[Tensor, Tensor], Tensor] = _mean_loss
    optimiser: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = _adam
    rule: PickRule = field(default_factory=PickRule)
    device: str = "cpu"

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

    @property
    def environment(self) -> Mapping[str, Any]:
        """Versions, threads, and the kernels of the processor."""
        capability = torch.backends.cpu.get_cpu_capability()
        return {**versions(), "threads": torch.get_num_threads(), "device": self.device, "cpu": capability}

    def start(self, seed: int) -> _State:
        """A fresh module; torch's own generator is left as it was."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(substream(seed, "init"))
            module = self.make().to(self.device)
        return _State(module, self.optimiser(module.parameters()), seed)

    def fit(self, state: _State, examples: Data, prefix: int) -> _State:
        """Train on: many steps on a prefix alone, fewer after a round; dropout is a function of the picks."""
        state.model.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(substream(state.seed, "noise", state.fits))
            self._fit(state, *self._tensors(examples), prefix)
        state.fits += 1
        return state

    def _fit(self, state: _State, x: Tensor, y: Tensor, prefix: int) -> None:
        rule = self.rule
        first, whole = not state.fits and prefix == len(y), len(y) <= _WHOLE
        steps, enough = (rule.prefix_steps, rule.prefix_loss) if first else (rule.round_steps, rule.round_loss)
        generator = torch.Generator().manual_seed(substream(state.seed, "fit", state.fits))
        if not first and rule.round_lr:
            for group in state.optimiser.param_groups:
                group["lr"] = rule.round_lr
        recent = 0.0
        for step in range(1, steps + 1):
            some = slice(None) if whole else torch.randint(len(y), (rule.batch,), generator=generator).to(x.device)
            loss = self.loss(state.model(x[some]), y[some])
            state.optimiser.zero_grad()
            loss.backward()
            state.optimiser.step()
            recent += float(loss.detach())
            if whole and recent < enough:
                break
            if not whole and step % 10 == 0 and recent / 10 < 4 * enough and self._done(state, x, y, enough):
                break
            recent = 0.0 if whole or step % 10 == 0 else recent

    @torch.no_grad()
    def _done(self, state: _State, x: Tensor, y: Tensor, enough: float) -> bool:
        loss, right = 0.0, True
        for part, answers in _chunks(x, y):
            outputs = state.model(part)
            loss += float(self.loss(outputs, answers)) * len(part)
            right = right and bool((_measured(margins, outputs, answers) > 0).all())
        return right and loss / len(y) < enough

    @torch.no_grad()
    def scores(self, state: _State, examples: Data) -> Array:
        """How far the right answer is ahead, in evaluation mode."""
        state.model.eval()
        ahead: list[Tensor] = []
        for part, answers in _chunks(*self._tensors(examples)):
            more = part[:1].expand(CHUNK - len(part), *part.shape[1:])
            outputs = state.model(torch.cat([part, more]) if len(more) else part)[: len(part)]
            ahead.append(_measured(margins, outputs, answers)[0])
        return torch.cat(ahead).double().cpu().numpy()

    def _tensors(self, examples: Data) -> tuple[Tensor, Tensor]:
        x, y = (torch.from_numpy(np.ascontiguousarray(array)).to(self.device) for array in (examples.x, examples.y))
        return x, y

    def weights(self, state: _State) -> Mapping[str, Array]:
        """The tensors by their names, copied."""
        return {name: value.detach().cpu().numpy().copy() for name, value in state.model.state_dict().items()}


def _chunks(x: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(x.split(CHUNK), y.split(CHUNK), strict=True)


class _OneModel(nn.Module):
    """A model of this package as a module, on the quickest path."""

    def __init__(self, architecture: Architecture, shape: Shape, init: Init) -> None:
        super().__init__()
        self.stack = Stack.fresh(architecture, shape, init, [torch.default_generator])

    def forward(self, x: Tensor) -> Tensor:
        return self.stack(self.stack.inputs(x.unsqueeze(0)))[0]

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        return iter(self.stack.trained.values())

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Tensor]:
        """The weights by the names of norms files."""
        return {name: value.detach()[0] for name, value in self.stack.weights.items()}


class ModelLearner(ModuleLearner):
    """A model of this package, as `boundcalc train` makes it."""

    def __init__(
        self, architecture: Architecture, shape: Shape, init: Init, optimisation: Optimisation, rule: PickRule
    ) -> None:
        refuse_real(shape)
        if optimisation.balls:
            raise InvalidSetting("a ModelLearner trains without norm balls: leave train.balls out")
        super().__init__(
            make=lambda: _OneModel(architecture, shape, init),
            optimiser=lambda weights: StackedOptimiser({str(i): w for i, w in enumerate(weights)}, optimisation),
            rule=rule,
        )
        self._recipe = {
            "kind": "model",
            "architecture": architecture.to_json(),
            "shape": asdict(shape),
            "init": asdict(init),
            "optimisation": {name: getattr(optimisation, name) for name in ("lr", "weight_decay", "warmup")},
            "rule": asdict(rule),
        }

    @property
    def recipe(self) -> Mapping[str, Any]:
        """All that determines the weights, besides seed and examples."""
        return self._recipe

    @classmethod
    def of(cls, trial: Trial, **changes: Any) -> ModelLearner:
        """The learner that trains a trial's model by its optimisation; `changes` are those of its rule."""
        how = trial.optimisation
        steps = PickRule(batch=how.batch or 16, prefix_steps=how.steps, prefix_loss=how.stop_loss)
        return cls(trial.architecture, trial.task.shape, trial.init, how, replace(steps, **changes))

    @classmethod
    def from_recipe(cls, recipe: Mapping[str, Any]) -> ModelLearner:
        """The learner of a certificate."""
        kinds = {"shape": Shape, "init": Init, "optimisation": Optimisation, "rule": PickRule}
        try:
            parts = [read(kind, recipe[name], name) for name, kind in kinds.items()]
            return cls(Architecture.from_json(recipe["architecture"]), *parts)
        except (KeyError, InvalidSetting) as error:
            raise CertificateError(f"the recipe of the certificate makes no model: {error}") from None
