"""What a task is: a law of sequences and answers, and its Bayes risk."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, TypeVar

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import is_name
from boundcalc.base.registry import Registry
from boundcalc.base.schema import write
from boundcalc.lab.train.source import Source

_Inputs = Literal["bits", "tokens", "rows"]
_Answer = Literal["binary", "classes", "real"]


@dataclass(frozen=True, slots=True)
class Risk:
    """A least possible risk: exact, or a Monte Carlo estimate with its standard error."""

    value: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model must read and answer.

    Attributes:
        inputs: bits (a row of its own is read out besides them: with it there are three tokens), tokens, or rows of
            reals.
        rows: T of the model: rows per sequence, the read one included.
        vocabulary: tokens; of bits it may be left out.
        width: width of rows of reals.
        answer: a bit (one score), one of several classes, or a real number.
        classes: logits.
    """

    inputs: _Inputs
    rows: int
    answer: _Answer
    vocabulary: int = 0
    width: int = 0
    classes: int = 1

    def __post_init__(self) -> None:
        if self.inputs == "bits":
            object.__setattr__(self, "vocabulary", 3)
        if not (self.width if self.inputs == "rows" else self.vocabulary):
            missing = "a width" if self.inputs == "rows" else "a vocabulary"
            raise InvalidSetting(f"a task whose inputs are {self.inputs} has {missing}: Shape({self.inputs!r}, ...)")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a task of a user's own comes from: a name in a Python file, and the digest of the file."""

    name: str
    sha256: str


@dataclass(frozen=True)
class Task(ABC):
    """A law. Frozen data; `world` draws what stays fixed in a trial, `sample` draws sequences and answers.

    A subclass defines `shape` and `sample`; the other two methods have defaults that are true of any law.
    """

    kind: ClassVar[str]
    origin: ClassVar[Origin | None] = None

    @property
    @abstractmethod
    def shape(self) -> Shape:
        """What a model must read and answer."""

    def world(self, source: Source) -> dict[str, Any]:
        """What is hidden and the same for training and test: a set of coordinates, means, ...; nothing, unless said."""
        del source
        return {}

    @abstractmethod
    def sample(self, world: Mapping[str, Any], source: Source, n: int) -> tuple[Any, Any]:
        """N sequences and answers: bits (n, T), tokens (n, rows) or reals (n, rows, width); answers (n,)."""

    def bayes_risk(self) -> Risk:
        """The least risk of any predictor that knows the world; not known, unless said."""
        raise InvalidSetting(f"the Bayes risk of task {self.kind!r} is not known")

    @property
    def size(self) -> int | None:
        """How many examples there are in all, where that is limited."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The task's kind and the fields that differ from their defaults."""
        digest = {} if self.origin is None else {"sha256": self.origin.sha256}
        return {"task": self.kind, **write(self), **digest}

    @property
    def identity(self) -> list[Any]:
        """What determines its law: for a task of a user's own the content of the file, not where it lies."""
        kind = self.kind if self.origin is None else f"{type(self).__name__} {self.origin.sha256}"
        return [kind, asdict(self)]


class _Tasks(Registry["type[Task]"]):
    """Kinds of tasks go by their `kind`."""

    @staticmethod
    def _name(entry: Any) -> str:
        return entry.kind


TASKS = _Tasks("task")
"""Every kind of task by name; `register` adds one."""

ALIASES: dict[str, Mapping[str, Any]] = {}
"""Other names: the kind that each stands for, and the fields that it sets."""


Kind = TypeVar("Kind", bound=Task)


def register_builtin(cls: type[Kind]) -> type[Kind]:
    """Make one of the library's kinds of task known to files and the command line."""
    TASKS.register_builtin(cls)
    return cls


def task_names() -> list[str]:
    """All names a file or the command line may use."""
    return sorted({*TASKS, *ALIASES})


def task_from_json(data: object) -> Task:
    """A task from its JSON object, such as {"task": "conjunction", "T": 64, "s": 3}."""
    if not isinstance(data, Mapping) or "task" not in data:
        raise InvalidSetting('a task is an object with a key "task", such as {"task": "conjunction", "T": 64, "s": 3}')
    values = {key: value for key, value in data.items() if key != "task"}
    if isinstance(data["task"], str) and is_name(data["task"]):
        from boundcalc.lab.train.tasks.own import own_task

        return own_task(data["task"], values)
    name = validate.choice("task", data["task"], task_names())
    fixed = {"task": name, **ALIASES.get(name, {})}
    kind = TASKS[fixed.pop("task")]
    for field in fixed.keys() & values.keys():
        if values[field] != fixed[field]:
            raise InvalidSetting(f"task {name!r} sets {field} to {fixed[field]!r}: leave it out")
    validate.known_keys(f"task {name!r}", values, [f.name for f in fields(kind)])
    try:
        return kind(**{**fixed, **values})
    except TypeError as error:
        raise InvalidSetting(f"task {name!r}: {error}") from None
