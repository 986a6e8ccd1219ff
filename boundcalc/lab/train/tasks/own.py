"""Tasks of a user's own Python file: "module.py:MyTask", a class of tasks, a task, or data.

A class inherits from `Task` and says four things, of which two have answers already:

    shape         what a model must read and answer (always said)
    sample        n sequences and answers, drawn with the source it is given (always said)
    world         what stays the same for training and test; nothing, unless said
    bayes_risk    the least possible risk; not known, unless said

Fields of the class (a dataclass) are set as those of any task: in the object of a sweep, by --T or --set
task.name=value. A record names the file and its content: a file that has changed gives other trials, and old ones are
not taken for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from boundcalc.base import validate
from boundcalc.base.errors import InvalidSetting
from boundcalc.base.files import load_name
from boundcalc.base.schema import write
from boundcalc.lab.train.tasks.arrays import ArraysTask
from boundcalc.lab.train.tasks.base import Origin, Task


def own_task(name: str, values: Mapping[str, Any]) -> Task:
    """The task that a name in a Python file stands for, with the fields given."""
    path = Path(name.rpartition(":")[0])
    if not path.is_file():
        raise InvalidSetting(f"there is no file {path}: your own task is module.py:MyTask")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    loaded = _loaded(name, digest)
    if not (isinstance(loaded, type) and issubclass(loaded, Task)) and not isinstance(loaded, Task):
        return ArraysTask(path=name, **validate.known_keys(f"task {name!r}", values, ["sha256"]))
    chosen = {key: value for key, value in values.items() if key != "sha256"}
    if values.get("sha256", digest) != digest:
        raise InvalidSetting(f"{path} has changed since this task was written (its sha256 differs)")
    if isinstance(loaded, Task):
        written = write(loaded)
        other = next((key for key, value in chosen.items() if key not in written or written[key] != value), None)
        if other is not None:
            raise InvalidSetting(f"{name} is a task already, so {other} has no effect: name its class instead")
        _marked(type(loaded), name, digest)
        return loaded
    if not is_dataclass(loaded):  # a class without fields is one all the same
        raise InvalidSetting(f"{name} is no dataclass: put @dataclass(frozen=True) above it")
    validate.known_keys(f"task {name!r}", chosen, [field.name for field in fields(loaded)])
    _marked(loaded, name, digest)
    try:
        return loaded(**chosen)
    except TypeError as error:
        raise InvalidSetting(f"task {name!r}: {error}") from None


def _marked(cls: type[Task], name: str, digest: str) -> None:
    cls.kind, cls.origin = name, Origin(name, digest)


@cache
def _loaded(name: str, digest: str) -> Any:
    """Once for every content of the file, so that its classes stay the same."""
    del digest
    return load_name(name)
