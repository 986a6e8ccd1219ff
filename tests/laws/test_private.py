"""What a reader may skip begins with an underscore: modules that only their own room uses; and few names are public.

A room is a folder of the package, such as `engine` or `lab/train`. Folders to which a recipe adds files (layers,
lemmas, strategies, families, tasks) and `base` are open: their modules keep plain names.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import boundcalc

ROOT = Path(boundcalc.__file__).parent.parent
OPEN = ("base", "layers", "statements/covers", "statements/strategies", "checkpoints/families", "lab/train/tasks")
MOST_PUBLIC = 900


def sources(*folders: str) -> dict[str, str]:
    """Module names and texts below some folders."""
    modules: dict[str, str] = {}
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        modules[".".join(parts)] = path.read_text("utf-8")
    return modules


def imported(module: str, text: str) -> Iterator[str]:
    """What a module imports, and each name that it takes from there, written in full."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def misplaced(modules: Mapping[str, str]) -> list[str]:
    """Modules whose name says the wrong thing about who uses them."""
    users: dict[str, set[str]] = defaultdict(set)
    for module, text in modules.items():
        for name in imported(module, text):
            if name != module and name in modules:
                users[name].add(module)
    messages: list[str] = []
    for module in modules:
        room, _, name = module.rpartition(".")
        if not module.startswith("boundcalc.") or name in ("__init__", "__main__") or room.count(".") == 0:
            continue
        if room.removeprefix("boundcalc.").replace(".", "/") in OPEN:
            continue
        outside = sorted(user for user in users[module] if not user.startswith(f"{room}."))
        if name.startswith("_") and outside:
            messages.append(f"{module} is private, and {outside[0]} imports it")
        if not name.startswith("_") and not outside:
            messages.append(f"only {room} imports {module}: begin its name with an underscore")
    return messages


def public_names(modules: Mapping[str, str]) -> list[str]:
    """Names without an underscore at the top of modules without one."""
    names: list[str] = []
    for module, text in modules.items():
        if any(part.startswith("_") and not part.startswith("__") for part in module.split(".")):
            continue
        for node in ast.parse(text).body:
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    defined = [name]
                case ast.Assign(targets=targets):
                    defined = [leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)]
                case ast.AnnAssign(target=ast.Name(id=name)):
                    defined = [name]
                case _:
                    continue
            names += [f"{module}.{name}" for name in defined if not name.startswith("_")]
    return names


def test_modules_that_one_room_uses_are_private() -> None:
    """Examples are users, too."""
    assert misplaced(sources("boundcalc", "examples")) == []


def test_few_names_are_public() -> None:
    assert len(public_names(sources("boundcalc"))) <= MOST_PUBLIC


def test_both_mistakes_are_seen() -> None:
    modules = {
        "boundcalc.engine.inner": "def used() -> None: ...",
        "boundcalc.engine.front": "from boundcalc.engine import inner\nX = _Y = 1",
        "boundcalc.engine._hidden": "Z = 1",
        "boundcalc.cli.eval": "from boundcalc.engine import front\nfrom boundcalc.engine._hidden import Z",
        "boundcalc.cli.__init__": "from . import eval",
    }
    assert misplaced(modules) == [
        "only boundcalc.engine imports boundcalc.engine.inner: begin its name with an underscore",
        "boundcalc.engine._hidden is private, and boundcalc.cli.eval imports it",
        "only boundcalc.cli imports boundcalc.cli.eval: begin its name with an underscore",
    ]
    assert public_names(modules) == ["boundcalc.engine.inner.used", "boundcalc.engine.front.X"]
