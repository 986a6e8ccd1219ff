"""Registries: entries by name, each of which brings the cases by which its laws are tried."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from boundcalc.base.errors import InvalidSetting

if TYPE_CHECKING:
    from boundcalc.base.cases import Brought, Cases

Entry = TypeVar("Entry")


class Registry(dict[str, Entry], Generic[Entry]):
    """Entries by name. One is added by `register`, with its cases; nothing is assigned.

    Attributes:
        kind: what the entries are, as `boundcalc.check_KIND` has it.
    """

    def __init__(self, kind: str, entries: Iterable[Entry], cases: str) -> None:
        """`cases`: the module whose function `cases` makes those of the library's own entries, by name."""
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
        from boundcalc.base.cases import refuse_incomplete

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
        if brought is None and name not in self:
            raise InvalidSetting(f"no {self.kind} {name!r} was registered with cases: give check_{self.kind} some")
        from boundcalc.base.cases import complete

        return complete(self.kind, name, brought or (lambda: import_module(self._own).cases(name)))

    def __setitem__(self, name: str, entry: Entry) -> NoReturn:
        raise InvalidSetting(
            f"the {self.kind} {name!r} is not registered: it brings no cases; call register(entry, cases) instead"
        )
