"""What a task is: a law of sequences and answers."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import is_name, load_name
from boundcalc.base.registry import Registry
from boundcalc.base.schema import write
from boundcalc.lab.train.source import Source


@dataclass(frozen=True, slots=True)
class Shape:
    """What a model must read and answer.

    Attributes:
        inputs: bits (a row of its own is read out besides them: with it there are three tokens), tokens, or rows of
            reals.
        rows: T of the model: rows per sequence, the read one included.
        answer: a bit (one score), one of several classes, or a real number.
        vocabulary: tokens; of bits it may be left out.
        width: width of rows of reals.
        classes: logits.
    """

    inputs: Literal["bits", "tokens", "rows"]
    rows: int
    answer: Literal["binary", "classes", "real"]
    vocabulary: int = 0
    width: int = 0
    classes: int = 1

    def __post_init__(self) -> None:
        if self.inputs == "bits":
            object.__setattr__(self, "vocabulary", 3)
        if not (self.width if self.inputs == "rows" else self.vocabulary):
            missing = "a width" if self.inputs == "rows" else "a vocabulary"
            raise InvalidSetting(f"a task whose inputs are {self.inputs} has {missing}: Shape({self.inputs!r}, ...)")


@dataclass(frozen=True)
class Task(ABC):
    """A law. Frozen data; `world` draws what stays fixed in a trial, `sample` draws sequences and answers.

    A subclass defines `shape` and `sample`; `world` has a default that is true of any law.
    """

    kind: ClassVar[str]
    file: ClassVar[str] = ""
    """Sha256 of the Python file that a task of a user's own comes from."""

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

    @property
    def size(self) -> int | None:
        """How many examples there are in all, where that is limited."""
        return None

    def to_json(self) -> dict[str, Any]:
        """The task's kind and the fields that differ from their defaults."""
        return {"task": self.kind, **write(self), **({"sha256": self.file} if self.file else {})}

    @property
    def identity(self) -> list[Any]:
        """What determines its law: for a task of a user's own the content of the file, not where it lies."""
        return [f"{type(self).__name__} {self.file}" if self.file else self.kind, asdict(self)]


TASKS: Registry[type[Task]] = Registry("task", key="kind")
"""Every kind of task by name; `register` adds one."""
FUNCTIONS = {"conjunction": "AND", "disjunction": "OR", "parity": "PARITY", "majority": "MAJ"}
"""Names of task boolean for one function each."""


def task_names() -> list[str]:
    """All names a file or the command line may use."""
    return sorted({*TASKS, *FUNCTIONS})


def task_from_json(data: object) -> Task:
    """A task from its JSON object, such as {"task": "conjunction", "T": 64, "s": 3}."""
    if not isinstance(data, Mapping) or "task" not in data:
        raise InvalidSetting('a task is an object with a key "task", such as {"task": "conjunction", "T": 64, "s": 3}')
    name, values = data["task"], {key: value for key, value in data.items() if key != "task"}
    if is_name(name):
        kind, values = _own(name, values)
    else:
        name = validate.choice("task", name, task_names())
        if name in FUNCTIONS and values.setdefault("function", name) != name:
            raise InvalidSetting(f"task {name!r} sets function to {name!r}: leave it out")
        kind = TASKS["boolean" if name in FUNCTIONS else name]
    validate.known_keys(f"task {name!r}", values, [f.name for f in fields(kind)])
    try:
        return kind(**values)
    except TypeError as error:
        raise InvalidSetting(f"task {name!r}: {error}") from None


def _own(name: str, values: dict[str, Any]) -> tuple[type[Task], dict[str, Any]]:
    """The class that "module.py:MyTask" stands for, or the one of data, and its fields.

    A record names the file and its content: a file that has changed gives other trials.
    """
    path = Path(name.rpartition(":")[0])
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    cls = _loaded(name, digest)
    if not (isinstance(cls, type) and issubclass(cls, Task)):
        return TASKS["arrays"], {**values, "path": name}
    if values.pop("sha256", digest) != digest:
        raise InvalidSetting(f"{path} has changed since this task was written (its sha256 differs)")
    cls.kind, cls.file = name, digest
    return cls, values


@cache
def _loaded(name: str, digest: str) -> Any:
    """Once for every content of the file, so that its classes stay the same."""
    del digest
    return load_name(name)
