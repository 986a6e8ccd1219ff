"""The public surface: every exported function says what it takes and returns."""

from __future__ import annotations

import inspect
import re

import pytest

import boundcalc


def undocumented(function: object) -> list[str]:
    """What its docstring leaves out."""
    text = inspect.getdoc(function) or ""
    described = set(re.findall(r"^    \**(\w+): ", text, flags=re.MULTILINE))
    names = {name for name in inspect.signature(function).parameters if name != "self"}  # type: ignore[arg-type]
    missing = sorted(names - described)
    return missing + ([] if "Returns:" in text else ["Returns"])


def functions() -> list[str]:
    pytest.importorskip("torch")
    return [name for name in boundcalc.__all__ if inspect.isfunction(getattr(boundcalc, name))]


def test_every_exported_function_is_documented() -> None:
    names = functions()
    assert {"evaluate", "solve", "certify"} <= set(names)
    assert {name: missing for name in names if (missing := undocumented(getattr(boundcalc, name)))} == {}


def test_what_is_left_out_is_seen() -> None:
    def silent(x: int) -> int:
        """Doubles."""
        return 2 * x

    assert undocumented(silent) == ["x", "Returns"]
