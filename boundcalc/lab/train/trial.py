"""A trial: everything that determines what training will give, and the hash of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.schema import read, write
from boundcalc.lab.train import defaults
from boundcalc.lab.train.parameters import Init, parameters
from boundcalc.lab.train.tasks import Shape, Task, task_from_json
from boundcalc.setting import Architecture, Normaliser

_RESULT_VERSION = 1
"""Raised whenever training code changes what a trial gives, so that old results are not taken for new ones."""

_BALLS = ("op", "F", "21")


@dataclass(frozen=True)
class Optimisation:
    """How a model is trained.

    Attributes:
        optimiser: adam, adamw or sgd.
        lr: learning rate.
        weight_decay: decay (decoupled for adamw, else added to the gradient).
        momentum: of sgd.
        batch: examples per step; 0 for all of them. Batches run through one permutation after another.
        steps: most steps.
        warmup: steps of linear warm-up.
        clip: largest gradient norm; 0 for none.
        stop_loss: stop once no training example is wrong and the mean training loss is below this; 0 for never.
        stop_test_error: stop once the test error, measured at points of the curve, is at most this; unset, never.
        check_every: steps between looks at the stopping rule.
        curve_every: steps between points of the recorded curves; 0 for a geometric schedule.
        precision: float32 or float64.
        balls: norm balls that weights are projected on after each step, kind -> (norm, radius), norm op, F or 21.
    """

    optimiser: str = defaults.OPTIMISER
    lr: float = defaults.LR
    weight_decay: float = defaults.WEIGHT_DECAY
    momentum: float = 0.0
    batch: int = defaults.BATCH
    steps: int = defaults.STEPS
    warmup: int = 0
    clip: float = 0.0
    stop_loss: float = 5e-3
    stop_test_error: float | None = None
    check_every: int = 10
    curve_every: int = defaults.CURVE_EVERY
    precision: str = defaults.PRECISION
    balls: Mapping[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])

    def __post_init__(self) -> None:
        validate.choice("optimiser", self.optimiser, defaults.OPTIMISERS)
        validate.choice("precision", self.precision, defaults.PRECISIONS)
        validate.positive("lr", self.lr)
        for name in ("weight_decay", "momentum", "clip", "stop_loss"):
            validate.positive(name, getattr(self, name), zero=True)
        for name, least in (("batch", 0), ("steps", 1), ("warmup", 0), ("check_every", 1), ("curve_every", 0)):
            object.__setattr__(self, name, validate.size(name, getattr(self, name), least=least))
        if self.stop_test_error is not None:
            validate.fraction("stop_test_error", self.stop_test_error, ends=True)
        if self.momentum and self.optimiser != "sgd":
            raise InvalidSetting(f"momentum belongs to sgd; {self.optimiser} has its own")
        balls: dict[str, tuple[str, float]] = {}
        for kind, (norm, radius) in self.balls.items():
            validate.choice(f"norm of the ball of {kind}", norm, _BALLS)
            balls[kind] = (norm, validate.positive(f"radius of the ball of {kind}", radius))
        object.__setattr__(self, "balls", balls)


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
        device: kind of device; random streams differ between kinds.
    """

    task: Task
    architecture: Architecture
    m: int
    seed: int = 0
    n_test: int = 2048
    init: Init = field(default_factory=Init)
    optimisation: Optimisation = field(default_factory=Optimisation)
    device: str = "cpu"

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", validate.size("m", self.m, least=0))
        object.__setattr__(self, "seed", validate.size("seed", self.seed, least=0))
        object.__setattr__(self, "n_test", validate.size("n_test", self.n_test))
        validate.choice("device", self.device, defaults.DEVICES)
        _fits(self.task.shape, self.architecture)
        if self.m == 0 and (self.optimisation.batch == 0 or self.task.size is not None):
            raise InvalidSetting(
                "online training (m = 0) needs a batch size and a task without end: give m, or a batch"
            )
        if self.task.size is not None and self.m >= self.task.size:
            raise InvalidSetting(f"m = {self.m} leaves no test example among {self.task.size}: choose a smaller m")
        weights = parameters(self.architecture)
        names = {key for name in weights for key in (name, name.partition("[")[0])}
        names |= {key.replace("W_Q", "W_QK") for key in names if key.startswith("W_Q") and "W_QK" not in key}
        for kind in self.optimisation.balls:
            validate.choice("the weights of a ball", kind, sorted(names))
        if self.device == "mps" and self.optimisation.precision == "float64":
            raise InvalidSetting("the device mps has no float64: use precision float32")

    @property
    def hash(self) -> str:
        """Names the trial by all that determines its result, without defaults of layers, which may gain options."""
        content = {
            "result": _RESULT_VERSION,
            "task": self.task.identity,
            "seq_len": self.architecture.seq_len,
            "stages": [write(stage) for stage in self.architecture.stages],
            "m": self.m,
            "seed": self.seed,
            "n_test": self.n_test,
            "init": asdict(self.init),
            "optimisation": asdict(self.optimisation),
            "device": self.device,
        }
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
        return {
            "task": self.task.to_json(),
            "architecture": self.architecture.to_json(),
            "m": self.m,
            "seed": self.seed,
            "n_test": self.n_test,
            "init": asdict(self.init),
            "optimisation": json.loads(json.dumps(asdict(self.optimisation))),
            "device": self.device,
        }

    @classmethod
    def from_json(cls, data: object) -> Trial:
        """A trial from its JSON object."""
        raw = dict(validate.known_keys("trial", data, [f.name for f in fields(cls)]))
        missing = [key for key in ("task", "architecture", "m") if key not in raw]
        if missing:
            raise InvalidSetting(f"a trial needs {missing[0]!r}")
        return cls(
            **raw
            | {
                "task": task_from_json(raw["task"]),
                "architecture": Architecture.from_json(raw["architecture"]),
                "init": init_from_json(raw.get("init", {})),
                "optimisation": read(Optimisation, raw.get("optimisation", {}), "optimisation"),
            }
        )


def trial_from_parts(
    task: Mapping[str, Any],
    model: Mapping[str, Any],
    init: Mapping[str, Any],
    train: Mapping[str, Any],
    *,
    m: int,
    **fields: Any,
) -> Trial:
    """A trial from the objects that files and the command line describe it by; `fields` are those of `Trial`."""
    law = task_from_json(task)
    rule = read(Optimisation, train, "train")
    return Trial(law, model_for(law, **model), m, init=init_from_json(init), optimisation=rule, **fields)


def init_from_json(data: object) -> Init:
    """Deviations from a JSON object."""
    init = read(Init, data, "init")
    for f in fields(init):
        validate.positive(f.name, getattr(init, f.name), zero=True)
    return init


def canonical(content: Any) -> str:
    """JSON that is the same for the same content."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


_DEFAULT_MODEL: Mapping[str, Any] = {
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
    of_task = {"seq_len": shape.rows, "classes": shape.classes}
    if shape.inputs == "rows":
        of_task |= {"d_patch": shape.width, "vocabulary": 0}
    else:
        of_task |= {"vocabulary": shape.vocabulary, "d_patch": 0}
    for name in of_task.keys() & changes.keys():
        if changes[name] != of_task[name]:
            raise InvalidSetting(
                f"{name} of the model follows from the task ({of_task[name]}), got {changes[name]}: leave it out"
            )
    defaults = dict(_DEFAULT_MODEL)
    if changes.get("style") == "edelman":
        defaults["normalisation"] = "ball"
    if shape.inputs != "rows":
        defaults["positions"] = "learned"
    names = [f.name for f in fields(Architecture)]
    values = {**validate.known_keys("model", changes, names), **of_task}
    normaliser = values.get("normaliser")
    if isinstance(normaliser, str):
        values["normaliser"] = Normaliser(normaliser)
    elif isinstance(normaliser, Mapping):
        values["normaliser"] = read(Normaliser, normaliser, "normaliser")
    return Architecture.from_defaults(defaults, values)


def _fits(shape: Shape, architecture: Architecture) -> None:
    """Refuse a model that cannot read the task."""
    for name, got, need in (
        ("seq_len", architecture.seq_len, shape.rows),
        ("classes", architecture.classes, shape.classes),
    ):
        if got != need:
            raise InvalidSetting(f"the task needs a model with {name} = {need}, got {got}")
    if architecture.layers is not None:
        return
    if shape.inputs == "rows":
        if architecture.vocabulary or (architecture.d_patch or architecture.d) != shape.width:
            raise InvalidSetting(f"the task gives rows of width {shape.width}: set d_patch={shape.width}, vocabulary=0")
    elif architecture.vocabulary < shape.vocabulary:
        raise InvalidSetting(f"the task has {shape.vocabulary} tokens: set vocabulary={shape.vocabulary}")
