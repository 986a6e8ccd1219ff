"""Registries: what can be named in files and on the command line, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from boundcalc.base.errors import InvalidSetting

Entry = TypeVar("Entry")


class Registry(dict[str, Entry]):
    """Entries by name, of a kind such as "lemma". `register` adds one of the user's; built-in entries stay."""

    def __init__(self, kind: str, entries: Iterable[Entry] = ()) -> None:
        super().__init__((self._name(entry), entry) for entry in entries)
        self.kind = kind
        self._added: set[str] = set()

    @staticmethod
    def _name(entry: Any) -> str:
        return entry.name

    def register(self, entry: Entry) -> Entry:
        """Add an entry, so that search, checkers, tables and the command line know it; refuses a name twice."""
        name = self._name(entry)
        if name in self:
            raise InvalidSetting(f"a {self.kind} {name!r} is registered already")
        self._added.add(name)
        return self.register_builtin(entry)

    def register_builtin(self, entry: Entry) -> Entry:
        """Add a built-in entry of a module that is loaded late."""
        self[self._name(entry)] = entry
        return entry

    def remove(self, name: str) -> None:
        """Remove an entry that was registered, if there is one."""
        if name in self._added:
            self._added.discard(name)
            del self[name]
