"""No Mathematica at hand: exported functions are read back by sympy's parser and carried out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import sympy
from sympy.parsing.mathematica import parse_mathematica

_TESTS = {"==": lambda a, b: a == b, "<": lambda a, b: a < b}


def carried_out(code: str, values: Sequence[float]) -> sympy.Expr:
    """The value of an exported function at a point, its local variables assigned one after the other."""
    text = code.replace("gamma", "margin")  # a function's name to sympy, but not to Mathematica
    head = re.search(r"\w+\[(?P<inputs>[^]]*)\] := Module\[\{(?P<local>[^}]*)\},(?P<body>.*)\]\n$", text, re.DOTALL)
    assert head is not None
    names = [name.strip().rstrip("_") for name in head["inputs"].split(",")]
    known: dict[str, Any] = {name: sympy.Float(value, 30) for name, value in zip(names, values, strict=True)}
    *steps, result = [line.strip() for line in head["body"].split(";\n")]
    assert [step.partition(" = ")[0] for step in steps] == [name.strip() for name in head["local"].split(",") if name]

    def value_of(expression: str) -> Any:
        if expression.startswith("If["):
            test, yes, no = _arguments(expression)
            left, sign, right = re.split(" (==|<) ", test)
            return value_of(yes if _TESTS[sign](value_of(left), value_of(right)) else no)
        parsed = parse_mathematica(expression.replace("CubeRoot", "cuberoot"))
        parsed = parsed.replace(sympy.Function("cuberoot"), sympy.cbrt)
        return parsed.subs({symbol: known[symbol.name] for symbol in parsed.free_symbols}).evalf(30)

    for step in steps:
        name, _, expression = step.partition(" = ")
        known[name] = value_of(expression)
    return value_of(result)


def _arguments(call: str) -> list[str]:
    """The arguments of If[...] at its own depth."""
    inner, depth, parts = call[3:-1], 0, [""]
    for letter in inner:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
