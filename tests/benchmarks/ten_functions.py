"""Ten functions of the core drawn at random, to judge whether file and name tell what they do.

python -m tests.benchmarks.ten_functions [SEED]
"""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2] / "boundcalc"
CORE = ("base", "setting", "layers", "statements", "proof", "engine")


def main(seed: int) -> None:
    functions = [
        (path.relative_to(ROOT), node)
        for room in CORE
        for path in sorted((ROOT / room).rglob("*.py"))
        if "second" not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__")
    ]
    for path, node in random.Random(seed).sample(functions, 10):
        print(f"{path}:{node.lineno} {node.name}: {(ast.get_docstring(node) or '').partition(chr(10))[0]}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 27)
