"""The examples at tiny scale keep their promises."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
from tests.examples.scripts import load


def kept(promises: str, first: dict[object, float], second: dict[object, float]) -> bool:
    """Whether what is promised lies strictly on its side of what was measured, everywhere."""
    sign = 1 if promises == "above" else -1
    return bool(first) and first.keys() == second.keys() and all(sign * (first[k] - second[k]) > 0 for k in first)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("train_and_bound", 5),
        ("as_trained", 2),
        ("certified_digits", 2),
    ],
)
def test_what_is_promised_is_kept(name: str, count: int, tmp_path: Path) -> None:
    example = load("", name)
    first, second = example.main("tiny", tmp_path)
    assert len(first) == count
    assert kept(example.PROMISES, first, second)
    assert not kept(example.PROMISES, second, first)  # it can fail
