"""Registries: what can be named in files and on the command line, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, NoReturn, TypeVar

from boundcalc.base.errors import InvalidSetting

Entry = TypeVar("Entry")


class Registry(dict[str, Entry], Generic[Entry]):
    """Entries by name. `register` adds one of the user's; built-in entries cannot be removed.

    Attributes:
        kind: what the entries are, such as "lemma".
    """

    def __init__(self, kind: str, entries: Iterable[Entry] = ()) -> None:
        super().__init__((self._name(entry), entry) for entry in entries)
        self.kind = kind
        self._added: set[str] = set()

    @staticmethod
    def _name(entry: Any) -> str:
        return entry.name

    def register(self, entry: Entry) -> Entry:
        """Add an entry, so that search, checkers, tables and the command line know it.

        Returns:
            The entry.

        Raises:
            InvalidSetting: if the name is taken.
        """
        name = self._name(entry)
        if name in self:
            raise InvalidSetting(f"a {self.kind} {name!r} is registered already")
        self._added.add(name)
        return self.register_builtin(entry)

    def register_builtin(self, entry: Entry) -> Entry:
        """Add a built-in entry of a module that is loaded late."""
        super().__setitem__(self._name(entry), entry)
        return entry

    def remove(self, name: str) -> None:
        """Remove an entry that was registered, if there is one."""
        if name in self._added:
            self._added.discard(name)
            del self[name]

    def __setitem__(self, name: str, entry: Entry) -> NoReturn:
        raise InvalidSetting(f"use register(entry) to add the {self.kind} {name!r}")
