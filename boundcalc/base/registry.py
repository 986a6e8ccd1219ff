"""Registries: entries by name, each of which brings the cases by which its laws are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, NoReturn, TypeVar

from boundcalc.base.errors import InvalidSetting
from boundcalc.base.records import dataclass

Entry = TypeVar("Entry")
_Subject = TypeVar("_Subject", covariant=True)
_Example = TypeVar("_Example", covariant=True)

_PARTS = (
    ("examples", "the laws hold anywhere"),
    ("refusals", "it refuses what it is not for"),
    ("wrong", "the laws would see a mistake"),
)


@dataclass(frozen=True, slots=True)
class Cases(Generic[_Subject, _Example]):
    """What a registration brings, so that it can be checked; without any of the three it is incomplete.

    Attributes:
        examples: where the laws are tried. None is guessed.
        refusals: what must be refused, each with a regular expression that the reason must match; None says that there is
            nothing it could be asked and must refuse.
        wrong: variants that are false, by name; the laws must reject each, or they would not have seen a mistake.
    """

    examples: Sequence[_Example]
    refusals: Sequence[tuple[Any, str]] | None
    wrong: Mapping[str, _Subject]

    @property
    def missing(self) -> tuple[str, ...]:
        """What was not brought, and what therefore nothing shows."""
        return tuple(
            f"no {what} were brought, so nothing shows that {shows}"
            for what, shows in _PARTS
            if getattr(self, what) is not None and not getattr(self, what)
        )


Brought = Cases[Any, Any] | Callable[[], Cases[Any, Any]]
"""Cases, or what makes them when the laws are tried."""


def refuse_incomplete(kind: str, name: str, cases: object) -> None:
    """Refuses what is registered without its cases."""
    if isinstance(cases, Cases):
        missing: tuple[str, ...] = cases.missing
    else:
        missing = () if callable(cases) else ("it brings no cases",)
    if missing:
        raise InvalidSetting(
            f"the {kind} {name!r} is not registered: {'; '.join(missing)}; give boundcalc.laws.Cases(examples, refusals, "
            f"wrong), by which boundcalc.check_{kind} tries its laws"
        )


class Registry(dict[str, Entry], Generic[Entry]):
    """Entries by name. One is added by `register`, with its cases; nothing is assigned.

    Attributes:
        kind: what the entries are, as `boundcalc.check_KIND` has it.
    """

    def __init__(self, kind: str, entries: Iterable[Entry], cases: str | None = None) -> None:
        """`cases`: the module whose function `cases` makes those of the entries given here, by name; else tests have them."""
        super().__init__((self._name(entry), entry) for entry in entries)
        self.kind = kind
        self._own = cases
        self._brought: dict[str, Brought] = {}

    @staticmethod
    def _name(entry: Any) -> str:
        return entry.name

    def register(self, entry: Entry, cases: Brought) -> Entry:
        """Enrol an entry in everything that goes over this registry.

        Args:
            entry: one whose name is new.
            cases: where its laws are tried, what it must refuse, and variants of it that are false; or a function without
                arguments that makes these when they are asked for.

        Returns:
            The entry.

        Raises:
            InvalidSetting: where the name is taken, or the cases are not complete.
        """
        name = self._name(entry)
        if name in self:
            raise InvalidSetting(f"a {self.kind} {name!r} is registered already")
        refuse_incomplete(self.kind, name, cases)
        self._brought[name] = cases
        super().__setitem__(name, entry)
        return entry

    def ours(self, entry: Entry) -> Entry:
        """One of the library's own, where these are not known at once."""
        super().__setitem__(self._name(entry), entry)
        return entry

    def remove(self, name: str) -> None:
        """Take out an entry that was registered, if it is there."""
        if self._brought.pop(name, None) is not None:
            del self[name]

    def cases(self, name: str) -> Cases[Any, Any]:
        """What an entry brought; refuses cases that are made late and are not complete."""
        brought = self._brought.get(name)
        if brought is None and (self._own is None or name not in self):
            raise InvalidSetting(f"no {self.kind} {name!r} was registered with cases: give check_{self.kind} some")
        if brought is None:
            found = import_module(self._own or "").cases(name)
        else:
            found = brought if isinstance(brought, Cases) else brought()
        refuse_incomplete(self.kind, name, found)
        return found

    def __setitem__(self, name: str, entry: Entry) -> NoReturn:
        raise InvalidSetting(
            f"the {self.kind} {name!r} is not registered: it brings no cases; call register(entry, cases) instead"
        )
