"""Registries: what can be named in files and on the command line, by kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from boundcalc.base.errors import InvalidSetting

Entry = TypeVar("Entry")


class Registry(dict[str, Entry]):
    """Entries by name, of a kind such as "lemma"; `key` is the attribute that names an entry."""

    def __init__(self, kind: str, entries: Iterable[Entry] = (), *, key: str = "name") -> None:
        super().__init__((getattr(entry, key), entry) for entry in entries)
        self.kind, self._key = kind, key

    def register(self, entry: Entry) -> Entry:
        """Add an entry, so that search, checkers, tables and the command line know it; refuses a name twice."""
        name = getattr(entry, self._key)
        if name in self:
            raise InvalidSetting(f"a {self.kind} {name!r} is registered already")
        self[name] = entry
        return entry

    def remove(self, name: str) -> None:
        """Remove an entry, if there is one."""
        self.pop(name, None)
