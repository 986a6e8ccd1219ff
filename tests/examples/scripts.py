"""The scripts of examples/FOLDER as modules, and what their quick forms return, once for all tests."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


@cache
def load(folder: str, name: str) -> ModuleType:
    """A script as a module. What it imports of its own folder is not left to scripts of another folder."""
    here = EXAMPLES / folder
    spec = importlib.util.spec_from_file_location(f"examples_{folder}_{name}", here / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    siblings = {path.stem for path in here.glob("*.py")}
    aside = {sibling: sys.modules.pop(sibling) for sibling in siblings & sys.modules.keys()}
    sys.path.insert(0, str(here))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(here))
        for sibling in siblings:
            sys.modules.pop(sibling, None)
        sys.modules.update(aside)
    return module


@cache
def quick(folder: str, name: str) -> tuple[dict[Any, float], dict[Any, float]]:
    """What `main` of a script returns in its quick form; trials are kept in a folder of their own."""
    module = load(folder, name)
    with tempfile.TemporaryDirectory() as kept:
        stores = "store" in inspect.signature(module.main).parameters
        return module.main(**module.QUICK, **({"store": f"{kept}/runs.db"} if stores else {}))
