"""The examples at tiny scale keep their promises: what is certified or bounded lies above what was measured."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
from tests.examples.scripts import quick


@pytest.mark.parametrize(("name", "count"), [("train_and_bound", 5), ("certified_digits", 2), ("certificates", 4)])
def test_what_is_promised_is_kept(name: str, count: int) -> None:
    promised, measured = quick("", name)
    assert len(promised) >= count
    assert all(promised[key] > measured[key] for key in promised)
