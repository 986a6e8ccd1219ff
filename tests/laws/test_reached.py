"""Nothing is kept for tests alone: every public function, class and method of the package is named where someone meets
it.

That is elsewhere in the package (not in its own body, an import or `__all__`), in an example or a recipe
(tests/recipes, which extend the library as its users do), or as code in a page of docs. Names are compared as words, so
of two that share one a use of either counts for both: the law overlooks some, and accuses nobody wrongly.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import boundcalc

PACKAGE = Path(boundcalc.__file__).parent
ROOT = PACKAGE.parent

_BY_OTHERS = {"do_GET", "handle_error", "log_message", "get_command", "resolve_command", "format_commands", "convert"}
"""Methods that http.server and click call."""
_REGISTERS = {"command_with", "register_layer"}
"""Decorators that put what they decorate where it is found."""
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(tree: ast.Module) -> Iterator[tuple[Definition, str]]:
    """Functions and classes of a module, and the methods of its classes, with the name of the class."""
    for node in tree.body:
        if isinstance(node, Definition):
            yield node, ""
            methods = node.body if isinstance(node, ast.ClassDef) else []
            yield from ((method, node.name) for method in methods if isinstance(method, Definition))


def named(tree: ast.AST) -> Counter[str]:
    """How often a tree says each name: as a name, an attribute, a keyword, a string of one word, or by renaming an
    import."""
    names: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                names[name] += 1
            case ast.Constant(value=str(text)) if text.isidentifier():
                names[text] += 1
            case ast.alias(name=name, asname=str(other)) if other != name:
                names[name.rpartition(".")[2]] += 1
            case ast.Assign(targets=[ast.Name(id="__all__")], value=listed):
                names.subtract(named(listed))
            case _:
                pass
    return names


def unreached(package: Mapping[str, str], others: Collection[str], pages: str, exported: Collection[str]) -> list[str]:
    """The public definitions of a package that nobody names, with their files; methods of exported classes are
    documented."""
    trees = {place: ast.parse(text) for place, text in package.items()}
    everywhere = sum(map(named, (*trees.values(), *map(ast.parse, others))), Counter[str]())
    met = {*re.findall(r"\w+", " ".join(_CODE.findall(pages))), *exported, *_BY_OTHERS}
    return [
        f"{place}: {node.name}"
        for place, tree in trees.items()
        for node, owner in definitions(tree)
        if not node.name.startswith("_")
        and node.name not in met
        and owner not in exported
        and not any(ast.unparse(mark).partition("(")[0] in _REGISTERS for mark in node.decorator_list)
        and everywhere[node.name] <= named(node)[node.name]
    ]


def _texts(*folders: str) -> dict[str, str]:
    return {str(path): path.read_text("utf-8") for name in folders for path in sorted((ROOT / name).rglob("*.py"))}


def test_nothing_is_kept_for_tests_alone() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    others = _texts("examples", "tests/recipes").values()
    assert unreached(_texts("boundcalc"), others, pages, boundcalc.__all__) == []


def test_what_nobody_names_is_seen() -> None:
    """Negative control: alone, in its own body, in an import, in `__all__` or in prose is not a use."""
    text = (
        "from b import helper\n__all__ = ['lonely']\n"
        "def lonely(n): return lonely(n - 1)\n"
        "@cache\ndef kept(): ...\n"
        "@command_with('x')\ndef typed(): ...\n"
        "class Thing:\n    def used(self): return Thing\n    def idle(self): ...\n"
        "class Public:\n    def asked(self): ...\n"
        "def helper(): ...\ndef shown(): ...\ndef mine(): ...\ndef dispatched(): ...\n"
        "print(Thing().used, getattr(x, 'dispatched'))\n"
    )
    nobody = unreached({"a": text}, ["from a import mine as yours"], "prose about kept; code: `shown(3)`", ["Public"])
    assert nobody == ["a: lonely", "a: kept", "a: idle", "a: helper"]
