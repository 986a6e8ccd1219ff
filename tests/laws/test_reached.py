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
from importlib import import_module
from pathlib import Path

import boundcalc

PACKAGE = Path(boundcalc.__file__).parent
ROOT = PACKAGE.parent

CALLED_BY_OTHERS: Mapping[str, str] = {"do_GET": "http.server looks for it by the name of what is asked"}
"""Methods that another library calls, and that stand in none of its classes."""

_MARKS = {"property", "cached_property", "dataclass", "staticmethod", "classmethod", "abstractmethod", "setter"}
_MARKS |= {"overload", "override", "cache", "lru_cache", "contextmanager", "total_ordering", "final"}
"""Decorators that register nobody: others (a command, a task) put what they decorate where it is found."""
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _registered(node: Definition) -> bool:
    for decorator in node.decorator_list:
        plain = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = plain.attr if isinstance(plain, ast.Attribute) else getattr(plain, "id", "")
        if name not in _MARKS:
            return True
    return False


def definitions(tree: ast.Module) -> Iterator[tuple[Definition, str]]:
    """Public functions and classes of a module, and the public methods of its classes, with the name of the class."""
    for node in tree.body:
        if not isinstance(node, Definition):
            continue
        if not node.name.startswith("_"):
            yield node, ""
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, Definition))
            yield from ((each, node.name) for each in methods if not each.name.startswith("_"))


def named(tree: ast.AST) -> Counter[str]:
    """How often a tree says each name: as a name, an attribute, a keyword, a string of one word, or by renaming an
    import."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                found[name] += 1
            case ast.Constant(value=str(text)) if text.isidentifier():
                found[text] += 1
            case ast.alias(name=name, asname=str(other)) if other != name:
                found[name.rpartition(".")[2]] += 1
            case ast.Assign(targets=[ast.Name(id="__all__")], value=listed):
                found.subtract(named(listed))
            case _:
                pass
    return found


def unreached(
    package: Mapping[str, str], beside: Mapping[str, str], pages: str, exported: Collection[str]
) -> list[tuple[str, str, str]]:
    """The definitions of a package that nobody names: (file, class, name).

    Methods of exported classes are documented.
    """
    trees = {place: ast.parse(text) for place, text in package.items()}
    everywhere = Counter[str]()
    for tree in (*trees.values(), *map(ast.parse, beside.values())):
        everywhere.update(named(tree))
    met = {*re.findall(r"\w+", " ".join(_CODE.findall(pages))), *exported, *CALLED_BY_OTHERS}
    return [
        (place, owner, node.name)
        for place, tree in trees.items()
        for node, owner in definitions(tree)
        if node.name not in met
        and owner not in exported
        and not _registered(node)
        and everywhere[node.name] <= named(node)[node.name]
    ]


def overrides(place: str, owner: str, name: str) -> bool:
    """Whether a method stands in the place of a base's, which calls it."""
    module = import_module(place.removesuffix(".py").replace("/", "."))
    return bool(owner) and any(hasattr(base, name) for base in getattr(module, owner).__mro__[1:])


def _texts(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))
    }


def test_nothing_is_kept_for_tests_alone() -> None:
    pages = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    beside = _texts(ROOT / "examples") | _texts(ROOT / "tests" / "recipes")
    found = unreached(_texts(PACKAGE), beside, pages, boundcalc.__all__)
    assert [one for one in found if not overrides(*one)] == []


def test_what_nobody_names_is_seen() -> None:
    """Negative control: alone, in its own body, in an import, in `__all__` or in prose is not a use."""
    text = (
        "from b import helper\n__all__ = ['lonely']\n"
        "def lonely(n): return lonely(n - 1)\n"
        "@cache\ndef kept(): ...\n"
        "@group.command()\ndef typed(): ...\n"
        "class Thing:\n    def used(self): return Thing\n    def idle(self): ...\n"
        "class Public:\n    def asked(self): ...\n"
        "def helper(): ...\ndef shown(): ...\ndef mine(): ...\ndef dispatched(): ...\n"
        "print(Thing().used, getattr(x, 'dispatched'))\n"
    )
    beside = {"examples/e.py": "from a import mine as yours"}
    found = unreached({"a.py": text}, beside, "prose about kept; code: `shown(3)`", ["Public"])
    assert [name for _, _, name in found] == ["lonely", "kept", "idle", "helper"]
    assert overrides("boundcalc/cli/_options.py", "FileCommand", "invoke")
    assert not overrides("boundcalc/cli/_options.py", "Output", "appends")
