"""What has to be believed: the modules a checker imports, counted from their source, and what no line of it shows."""

from __future__ import annotations

import ast
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

BELIEVED = (
    "the statements of docs/theory.md, which are proved on paper and attacked by tests, not by a proof assistant",
    "that the setting describes the network and the sample: independent sequences, a loss in [0, 1], norms that hold",
    "for measured norms the rounding analysis of boundcalc/norms and what it rests on, IEEE arithmetic and LAPACK's error "
    "bounds for Schatten sums among it",
    "mpmath, for the second checker; Arb (python-flint), for the first: that its balls enclose",
    "Python, its json and float parsing, the operating system, the machine",
    "the number of the statements (`statements` in a certificate): that it was raised when a statement changed",
)


_CHECKER = "boundcalc.proof.checker"
_RULES = "boundcalc.statements.layers"
"""Each module of this package is read where a layer of that label is met."""


class Module(NamedTuple):
    """A module and how many of its lines are not blank."""

    name: str
    lines: int


def standing_alone() -> list[Module]:
    """The modules of the second checker, which imports nothing else of this package."""
    folder = Path(__file__).parent / "second"
    return [_counted(f"boundcalc.proof.second.{path.stem}", path) for path in sorted(folder.glob("*.py"))]


def _counted(name: str, path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    return Module(name, sum(bool(line.strip()) for line in text.splitlines()))


def first_checker() -> dict[str, list[Module]]:
    """The modules of the first checker, in three parts.

    What it imports to check; rules of layers, of which it reads those of the layers that a network has; and what it imports
    later, to read and write files and to explain.
    """
    folder = Path(__file__).parents[1].joinpath(*_RULES.split(".")[1:])
    starts = [_CHECKER, *(f"{_RULES}.{rule.name}" for rule in iter_modules([str(folder)]))]
    first = trusted_modules(_CHECKER)
    checking, all_of_it = (
        {module for start in starts for module in trusted_modules(start, later=later)} for later in (False, True)
    )
    return {"first": first, "layers": sorted(checking - {*first}), "later": sorted(all_of_it - checking)}


def trusted_modules(start: str, *, later: bool = False) -> list[Module]:
    """The modules of this package that a module imports, directly or not, what is imported for types alone left out.

    `later`: also what its functions import when they are called.
    """
    found: dict[str, Module] = {}
    todo = [start]
    while todo:
        name = todo.pop()
        spec = None if name in found else _spec(name)
        if spec is None or spec.origin is None:
            continue
        found[name] = _counted(name, Path(spec.origin))
        todo += [f"{name.rpartition('.')[0]}"] if "." in name else []
        todo += _imports(ast.parse(Path(spec.origin).read_text(encoding="utf-8")), later)
    return [found[name] for name in sorted(found)]


def _spec(name: str) -> ModuleSpec | None:
    try:
        return find_spec(name)
    except ModuleNotFoundError:  # a name of a module, not a module
        return None


def _imports(tree: ast.AST, later: bool) -> list[str]:
    """Modules of this package that a source imports when it runs, or when its functions do."""
    names: list[str] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            names += [name for part in node.orelse for name in _imports(part, later)]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names if alias.name.startswith("boundcalc")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("boundcalc"):
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif later or not isinstance(node, ast.FunctionDef):
            names += _imports(node, later)
    return names
