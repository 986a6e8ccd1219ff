"""Dataclasses that are quick to define: what `dataclasses.dataclass` makes, with one function compiled instead of six.

The standard decorator writes `__init__`, `__repr__`, `__eq__`, `__hash__`, `__setattr__` and `__delattr__` of every class
as text and compiles each: for the fifty classes that one evaluation needs, a tenth of its time. Here all but `__init__`
are ordinary functions. Fields, `replace`, signatures, copies and pickles are those of a dataclass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]


class _Factory:
    """Stands in signatures for a default that is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init(cls: type, *, frozen: bool) -> Callable[..., None]:
    """The constructor, which sets every field past the guard of a frozen class."""
    own = fields(cls)
    scope: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    parameters: list[str] = []
    lines: list[str] = []
    for each in own:
        name, default = each.name, f"_{each.name}_"
        if each.kw_only:
            raise TypeError(f"{cls.__name__}.{name}: no field of a record is given by name only")
        value = name if each.init else default
        if each.default is not MISSING:
            scope[default] = each.default
            parameter = f"{name}={default}"
        elif each.default_factory is not MISSING:
            scope[default] = each.default_factory
            parameter = f"{name}=_FACTORY"
            value = f"{default}() if {name} is _FACTORY else {name}" if each.init else f"{default}()"
        else:
            parameter = name
        if each.init:
            parameters.append(parameter)
        elif default not in scope:  # __post_init__ sets it
            continue
        lines.append(f" _set(self,'{name}',{value})" if frozen else f" self.{name}={value}")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    exec(f"def __init__({', '.join(['self', *parameters])}):\n" + ("\n".join(lines) or " pass"), scope)
    made = scope["__init__"]
    made.__annotations__ = {**{each.name: each.type for each in own if each.init}, "return": None}
    return made


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that reads fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _shown(cls: type) -> dict[str, Callable[..., Any]]:
    """How a record prints, compares and hashes."""
    names = [each.name for each in fields(cls) if each.repr]
    compared = _values([each.name for each in fields(cls) if each.compare])

    def shown(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def equal(self: Any, other: object) -> Any:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def hashed(self: Any) -> int:
        return hash(compared(self))

    return {"__repr__": shown, "__eq__": equal, "__hash__": hashed}


def _guards(cls: type) -> dict[str, Callable[..., Any]]:
    """No field is assigned or deleted."""
    names = frozenset(each.name for each in fields(cls))

    def assign(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": assign, "__delattr__": delete}


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _made(cls: type, *, frozen: bool = False, slots: bool = False) -> type:
    own = set(cls.__dict__)
    made = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
    methods: dict[str, Any] = {"__init__": _init(made, frozen=frozen), **_shown(made)}
    methods |= _guards(made) if frozen else {"__hash__": None}
    for name, method in methods.items():
        if method is not None:
            method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
    if frozen and slots:  # the default way of pickling slots assigns them
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    made.__dataclass_params__.frozen = frozen  # type: ignore[attr-defined]  # subclasses ask whether it is
    return made


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """`dataclasses.dataclass`, of its options only `frozen` and `slots`: the same class, made sooner."""
        return partial(_made, **options) if cls is None else _made(cls, **options)
