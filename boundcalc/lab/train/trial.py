"""A trial: everything that determines what training gives, its hash, and requests for certificates of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from typing import Annotated, Any, Literal

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import ClosedShare, Count, Length, Positive, Share, Size, check_fields, read, write
from boundcalc.lab.train.parameters import CLS, Init, parameters
from boundcalc.lab.train.tasks import Task, task_from_json
from boundcalc.layers.base import of_class
from boundcalc.layers.embedding import Embedding
from boundcalc.layers.merged import beginning
from boundcalc.setting import Architecture, Normaliser

N_TEST = 2048
"""Fresh examples that a trial is tested on by default."""


NormBall = tuple[Literal["op", "F", "21"], Positive]


@dataclass(frozen=True)
class Optimisation:
    """How a model is trained: by AdamW, which is Adam where nothing decays.

    Attributes:
        lr: learning rate.
        weight_decay: decoupled decay.
        batch: examples per step; 0 for all of them. Batches run through one permutation after another.
        steps: most steps.
        warmup: steps of linear warm-up.
        stop_loss: stop once no training example is wrong and the mean training loss is below this; 0 for never.
        stop_test_error: stop once the test error, measured at points of the curve, is at most this; unset, never.
        curve_every: steps between points of the recorded curves; 0 for a geometric schedule.
        balls: norm balls that weights are projected on after each step, kind -> (norm, radius), norm op, F or 21.
    """

    lr: Positive = 1e-3
    weight_decay: Length = 0.0
    batch: Count = 16
    steps: Size = 4000
    warmup: Count = 0
    stop_loss: Length = 5e-3
    stop_test_error: ClosedShare | None = None
    curve_every: Count = 0
    balls: Mapping[str, NormBall] = field(default_factory=dict[str, NormBall])

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class Trial:
    """One model trained once.

    Attributes:
        task: the law.
        architecture: the model.
        m: training examples; 0 for fresh ones at every step.
        seed: of everything random in it.
        n_test: fresh examples it is tested on.
        init: deviations at the start.
        optimisation: how it is trained.
    """

    task: Task
    architecture: Architecture
    m: Count
    seed: Count = 0
    n_test: Size = N_TEST
    init: Init = field(default_factory=Init)
    optimisation: Optimisation = field(default_factory=Optimisation)

    def __post_init__(self) -> None:
        check_fields(self)
        shape, model, size = self.task.shape, self.architecture, self.task.size
        if (model.seq_len, model.classes) != (shape.rows, shape.classes):
            raise InvalidSetting(
                f"the task needs a model with T = {shape.rows} and {shape.classes} classes, got T = {model.seq_len} "
                f"and {model.classes}"
            )
        if self.online and (self.optimisation.batch == 0 or size is not None):
            raise InvalidSetting("online training (m = 0) needs a batch and a task without end: give m, or a batch")
        if size is not None and self.m >= size:
            raise InvalidSetting(f"m = {self.m} leaves no test example among {size}: choose a smaller m")
        weights = parameters(model)
        for kind in self.optimisation.balls:
            names = {key for name in weights for key in (name, name.partition("[")[0])}
            validate.choice("the weights of a ball", kind, sorted(names))

    @property
    def model(self) -> Architecture:
        """The architecture that bounds are about: its read row shows one token, where that is of use."""
        first = next(of_class(self.architecture.stages[:1], Embedding), None)
        if self.task.shape.inputs != "bits" or first is None or first.vocabulary <= CLS:
            return self.architecture
        stages = (replace(first, own_row=CLS), *self.architecture.stages[1:])
        if beginning(stages) is None:
            return self.architecture
        listed = self.architecture.layers is not None
        return replace(self.architecture, **({"layers": stages} if listed else {"own_row": CLS}))

    @property
    def hash(self) -> str:
        """Names the trial by all that determines its result, without defaults of layers, which may gain options."""
        layers = [self.architecture.seq_len, *(write(stage) for stage in self.architecture.stages)]
        content = {**self.to_json(), "task": self.task.identity, "architecture": layers}
        return hashlib.sha256(canonical(content).encode()).hexdigest()[:32]

    @property
    def online(self) -> bool:
        """Whether every step sees fresh examples."""
        return self.m == 0

    @property
    def batch(self) -> int:
        """Examples per step."""
        wanted = self.optimisation.batch
        return wanted if self.online else min(wanted or self.m, self.m)

    @property
    def full_batch(self) -> bool:
        """Whether every step sees all examples."""
        return not self.online and self.batch == self.m

    def but(self, **changes: Any) -> Trial:
        """The same trial with some fields changed."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """The configuration, from which the trial can be run again."""
        parts = {"task": self.task.to_json(), "architecture": self.architecture.to_json()}
        parts |= {"init": asdict(self.init), "optimisation": write(self.optimisation, complete=True)}
        return {**parts, "m": self.m, "seed": self.seed, "n_test": self.n_test}

    @classmethod
    def from_json(cls, data: object) -> Trial:
        """A trial from its JSON object."""
        values = dict(validate.known_keys("trial", data, [f.name for f in fields(cls)]))
        try:
            return cls(
                task_from_json(values.pop("task")),
                Architecture.from_json(values.pop("architecture")),
                init=read(Init, values.pop("init", {}), "init"),
                optimisation=read(Optimisation, values.pop("optimisation", {}), "optimisation"),
                **values,
            )
        except (KeyError, TypeError) as error:
            raise InvalidSetting(f"a trial needs a task, an architecture and m: {error} is missing") from None


METHODS = ("holdout", "p2l", "occam", "pac-bayes", "rule")
"""What a trial can be certified by."""


@dataclass(frozen=True)
class Request:
    """The request for a certificate: all that, with the trial, determines it.

    Attributes:
        method: a name of `METHODS`.
        delta: failure probability.
        prefix: share of the examples that a rule is read off; 0 for all of them.
    """

    method: Annotated[str, partial(validate.choice, options=METHODS)]
    delta: Share = 0.05
    prefix: Length = 0.0

    def __post_init__(self) -> None:
        check_fields(self)
        if self.prefix >= 1:
            raise InvalidSetting(f"--prefix is the share of the examples to start from, in [0, 1); got {self.prefix:g}")
        if self.prefix and self.method != "rule":
            raise InvalidSetting(f"{self.method} learns from all examples: leave --prefix to rules")

    def to_json(self) -> dict[str, Any]:
        """As a store keeps it."""
        return asdict(self)


def wanted(methods: Iterable[str]) -> list[str]:
    """Names of methods in their order; "all" is all of them."""
    named = set(methods)
    return [name for name in METHODS if name in named or "all" in named]


def canonical(content: Any) -> str:
    """JSON that is the same for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


_DEFAULT_MODEL: dict[str, Any] = {
    "style": "post",
    "depth": 1,
    "d": 64,
    "heads": 16,
    "d_ff": 256,
    "activation": "gelu",
    "normalisation": "none",
    "residual": True,
    "bias": True,
}
"""The default model: a Transformer block without LayerNorm."""


def model_for(task: Task, **changes: Any) -> Architecture:
    """An architecture that reads a task's sequences: the default one with some fields changed."""
    shape = task.shape
    rows = shape.inputs == "rows"
    of_task = {"seq_len": shape.rows, "classes": shape.classes}
    of_task |= {"vocabulary": 0 if rows else shape.vocabulary, "d_patch": shape.width if rows else 0}
    for name in of_task.keys() & changes.keys():
        if changes[name] != of_task[name]:
            raise InvalidSetting(
                f"{name} of the model follows from the task ({of_task[name]}), got {changes[name]}: leave it out"
            )
    defaults = _DEFAULT_MODEL | ({} if rows else {"positions": "learned"})
    if changes.get("style") == "edelman":
        defaults["normalisation"] = "ball"
    values = {**validate.known_keys("model", changes, [f.name for f in fields(Architecture)]), **of_task}
    normaliser = values.get("normaliser")
    if normaliser is not None and not isinstance(normaliser, Normaliser):
        named = {"name": normaliser} if isinstance(normaliser, str) else normaliser
        values["normaliser"] = read(Normaliser, named, "normaliser")
    return Architecture.from_defaults(defaults, values)
