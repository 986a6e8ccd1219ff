"""The fields of a dataclass as one table: name, default and meaning.

Its signature, which would repeat them, is left out.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from boundcalc.base.schema import specs


def rows(path: str) -> list[tuple[str, str, str]]:
    """Name, default and meaning of every declared field of the class at a dotted path."""
    module, _, name = path.rpartition(".")
    cls = getattr(import_module(module), name)
    declared = specs(cls)
    return [
        (f.name, "" if f.default is MISSING else repr(f.default), _meaning(declared[f.name]))
        for f in fields(cls)
        if f.name in declared
    ]


def _meaning(spec: Any) -> str:
    return f"{spec.words}: {', '.join(spec.choices)}" if 1 < len(spec.choices) < 5 else spec.words


class Fields(Directive):
    """`{fields} boundcalc.Sample`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table, parsed as Markdown: meanings hold mathematics."""
        lines = ["| field | default | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | `{default or 'none'}` | {words} |" for name, default, words in rows(self.arguments[0])]
        box = nodes.container()
        self.state.nested_parse(StringList(lines, "fields"), self.content_offset, box)
        return box.children


def _signature(app: Any, what: str, name: str, thing: Any, options: Any, signature: str, returns: str) -> Any:
    del app, what, name, options
    return ("", None) if isinstance(thing, type) and is_dataclass(thing) else (signature, returns)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-signature", _signature)
    app.add_directive("fields", Fields)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
